"""Commands that change which queries a project has, also while it runs: add, drop."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from headrace.cli.options import HERE, AsJson, ProjectPath
from headrace.cli.render import err, out, print_json
from headrace.errors import UserError
from headrace.service.changes import TIMEOUT_SECONDS, NewQuery, Result, add_query, drop_queries, wait_for

NoWait = Annotated[bool, typer.Option("--no-wait", help="Do not wait until a run that is on has taken it.")]
Timeout = Annotated[float, typer.Option(min=0, metavar="SECONDS", help="How long to wait for the run.")]


@dataclass(frozen=True, slots=True)
class Said:
    """What a command was told when it asked."""

    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the new query.")],
    project: ProjectPath = HERE,
    sql: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Its SQL; - reads standard input. Left out: take back a dropped one."
        ),
    ] = None,
    sink: Annotated[str, typer.Option(help="parquet, json, csv, console or memory.")] = "parquet",
    path: Annotated[str | None, typer.Option(help="The folder of its results.")] = None,
    site: Annotated[str | None, typer.Option(help="The site it runs on.")] = None,
    from_start: Annotated[
        bool, typer.Option("--from-start", help="Read the input from its beginning, in a tree of its own.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Add it also where a site or a link is too small for it.")
    ] = False,
    no_wait: NoWait = False,
    timeout: Timeout = TIMEOUT_SECONDS,
    json: AsJson = False,
) -> int:
    """Add a query to the project, also while it runs. One that does not fit is refused."""
    text = None if sql is None else _read_sql(sql)
    new = NewQuery(name, text, sink, path, site, from_start)
    warnings, notes = list[str](), list[str]()
    change = add_query(project, new, force=force, warn=warnings.append, note=notes.append)
    for warning in warnings:
        err().print(f"warning: {warning}", soft_wrap=True)
    for line in () if json else notes:
        out().print(line, soft_wrap=True)
    said = Said(tuple(warnings), tuple(notes))
    return _tell(project, [change], 0.0 if no_wait else timeout, said, as_json=json)


def drop(
    names: Annotated[list[str], typer.Argument(metavar="NAME... [PROJECT]", help="The queries to drop.")],
    no_wait: NoWait = False,
    timeout: Timeout = TIMEOUT_SECONDS,
    json: AsJson = False,
) -> int:
    """Take queries out of the project, also while it runs. Their results stay on disk."""
    project = HERE
    if len(names) > 1 and _is_project(names[-1]):
        *names, last = names
        project = Path(last)
    changes = drop_queries(project, list(dict.fromkeys(names)))
    return _tell(project, changes, 0.0 if no_wait else timeout, as_json=json)


def _is_project(text: str) -> bool:
    """Whether the last argument is the project, and not one more name."""
    path = Path(text)
    return "/" in text or text in (".", "..") or path.is_file() or (path / "headrace.yaml").is_file()


def _read_sql(file: str) -> str:
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_bytes().decode("utf-8-sig")
    except OSError as error:
        hint = "Give the file that holds the SQL of the query, or - for standard input."
        raise UserError(f"{file} cannot be read: {error.strerror}", hint=hint) from None
    except UnicodeDecodeError:
        raise UserError(f"{file} is not UTF-8 text", hint="Save it as UTF-8.") from None
    if not text.strip():
        where = "standard input" if file == "-" else file
        raise UserError(f"{where} is empty", hint="The SQL of the query is expected there.")
    return text


def _tell(
    project: Path, changes: list[int], timeout: float, said: Said | None = None, *, as_json: bool
) -> int:
    """Wait for the changes and say what became of them; 2 where one was refused, 1 where one has failed."""
    said = said or Said()
    results = [
        replace(one, warnings=said.warnings, notes=said.notes) for one in wait_for(project, changes, timeout)
    ]
    if as_json:
        print_json(results)
    for result in results:
        if not as_json:
            _print(result)
    if not all(result.ok for result in results):
        return 2
    return 1 if any(result.failed for result in results) else 0


def _print(result: Result) -> None:
    (out() if result.ok else err()).print(result.text, soft_wrap=True)
