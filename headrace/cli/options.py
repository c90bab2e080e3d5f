"""Arguments and options that several commands share, so that they read the same everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ProjectPath = Annotated[
    Path, typer.Argument(metavar="[PROJECT]", help="The project's folder, or its headrace.yaml.")
]
QueryName = Annotated[str, typer.Argument(metavar="QUERY", help="Name of a query of the project.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Svg = Annotated[Path | None, typer.Option(metavar="FILE", help="Write a picture of the plan.")]
Html = Annotated[Path | None, typer.Option(metavar="FILE", help="Write a page with picture and plan text.")]
Limit = Annotated[int, typer.Option(min=0, help="Show so many rows, the newest; 0: all.")]
Only = Annotated[list[str] | None, typer.Option(metavar="QUERY", help="Only this query; may be repeated.")]

HERE = Path()
