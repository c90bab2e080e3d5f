"""Sites, and moves between them: `headrace sites`, `sites up N`, `sites down`, `headrace move`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from headrace.cli.options import HERE, AsJson, ProjectPath
from headrace.cli.render import err, out, print_json, table
from headrace.errors import UserError
from headrace.service.project import Project, open_project

app = typer.Typer(
    help="Spark Connect servers on this machine, for development.",
    context_settings={"help_option_names": ["-h", "--help"]},
)

Folder = Annotated[
    Path | None, typer.Option("--dir", metavar="FOLDER", help="Where the servers live; .headrace/sites here.")
]
ProjectFolder = Annotated[Path, typer.Option("--project", metavar="PROJECT", help="The project's folder.")]


@app.callback(invoke_without_command=True)
def sites(
    context: typer.Context, folder: Folder = None, project: ProjectFolder = HERE, json: AsJson = False
) -> None:
    """Show the sites: the servers that were started here, and the Spark Connect sites of the project."""
    if context.invoked_subcommand is not None:
        return
    from headrace.service.sites import FOLDER, status

    rows = status(folder or project / FOLDER, _project(project))
    if json:
        print_json(rows)
        return
    if not rows:
        err().print("no sites run here; start some with: headrace sites up 2")
        return
    columns = ("site", "address", "state", "pid", "since", "answer", "memory", "cores", "jobs")
    shown = [
        (
            row.name,
            row.address,
            row.state,
            "" if row.pid is None else str(row.pid),
            row.since or "",
            "" if row.seconds is None or row.state != "answers" else f"{row.seconds:.2f} s",
            "" if row.memory is None else f"{row.memory / 2**20:,.0f} MiB",
            "" if row.cpu is None else f"{row.cpu:.2f}",
            ", ".join(row.jobs),
        )
        for row in rows
    ]
    out().print(table(columns, shown, right=frozenset({"pid", "answer", "memory", "cores"})))
    for row in rows:
        if row.state != "answers":
            err().print(f"{row.name} does not answer: {row.reason}", soft_wrap=True)


@app.command()
def up(
    count: Annotated[int, typer.Argument(metavar="N", help="How many servers.")],
    folder: Folder = None,
    memory: Annotated[str, typer.Option(help="The memory of each.")] = "2g",
    cores: Annotated[int, typer.Option(help="The cores of each.")] = 1,
    write: Annotated[
        bool, typer.Option("--write", help="Write them into headrace.yaml as the section `sites`.")
    ] = False,
    project: ProjectFolder = HERE,
    json: AsJson = False,
) -> None:
    """Start N Spark Connect servers on this machine; back when every one answers a query."""
    from headrace.service.sites import FOLDER, Up, as_yaml, check_writable, up, write_sites

    if write:
        check_writable(project)
    elif folder is None and not project.exists():
        raise UserError(
            f"there is no {project}", hint="Name a project, or a folder for the servers with --dir."
        )
    found = up(folder or project / FOLDER, Up(count, memory, cores), os.environ, _note)
    text = as_yaml(found)
    if json:
        print_json([{"name": one.name, "address": one.address, "pid": one.pid} for one in found])
    if write:
        path = write_sites(project, text)
        err().print(f"written into {path}")
    elif not json:
        err().print("For headrace.yaml:")
        out().print(text, end="")


@app.command()
def down(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Which; all of them.")
    ] = None,
    folder: Folder = None,
    project: ProjectFolder = HERE,
    json: AsJson = False,
) -> None:
    """Stop servers that were started here. Jobs that run there go on elsewhere, from their checkpoints."""
    from headrace.service.sites import FOLDER, down

    stopped = down(folder or project / FOLDER, names or ())
    if json:
        print_json({"stopped": stopped})
    else:
        out().print(f"stopped {', '.join(stopped)}" if stopped else "no sites run here")


def move(
    job: Annotated[str, typer.Argument(metavar="JOB", help="A tree, or a query that is a job of its own.")],
    site: Annotated[str, typer.Argument(metavar="SITE", help="Where it is to run.")],
    project: ProjectPath = HERE,
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Do not wait until it has moved.")] = False,
    timeout: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="How long to wait for the run.")
    ] = 300.0,
    json: AsJson = False,
) -> int:
    """Move a job to another site, also while it runs: it goes on there with all it has kept."""
    from headrace.service.moving import ask_move, told, wait_for_move

    asked = ask_move(project, job, site)
    record = wait_for_move(project, asked, 0.0 if no_wait else timeout)
    ok = record.state in ("asked", "moving", "moved")
    if json:
        print_json(record)
    else:
        (out() if ok else err()).print(told(record), soft_wrap=True)
    return 0 if ok else 1


def _note(text: str) -> None:
    err().print(text)


def _project(folder: Path) -> Project | None:
    """The project of a folder; None: there is none, or it is wrong, which is not what was asked."""
    if not folder.is_file() and not (folder / "headrace.yaml").is_file():
        return None
    try:
        return open_project(folder)
    except UserError as error:
        err().print(f"warning: the project is left out: {error.message}", soft_wrap=True)
        return None
