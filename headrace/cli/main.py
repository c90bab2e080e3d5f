"""The `headrace` command: its list of commands, and what every failure looks like.

exit 0    done
exit 1    a job failed, an engine failed, results differ, or a bug of ours (with a traceback)
exit 2    the input is wrong: the message says where, what, and what would be right
exit 130  interrupted
"""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from functools import cache
from typing import Annotated

import typer
from typer.main import get_command

from headrace.cli import (
    commands_calibrate,
    commands_change,
    commands_experiment,
    commands_project,
    commands_run,
    commands_serve,
    commands_sites,
    commands_solve,
)
from headrace.cli.render import err, print_error, print_json
from headrace.errors import HeadraceError, InternalError, UserError
from headrace.service.project import VERSION

app = typer.Typer(
    name="headrace",
    help="Continuous SQL queries on Spark Structured Streaming, planned together.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

for _command in (
    commands_project.init,
    commands_project.doctor,
    commands_project.check,
    commands_project.plan,
    commands_project.explain,
    commands_calibrate.calibrate,
    commands_run.run,
    commands_serve.serve,
    commands_serve.status,
    commands_serve.rebalance,
    commands_change.add,
    commands_change.drop,
    commands_sites.move,
    commands_project.queries,
    commands_run.results,
    commands_run.reference,
    commands_solve.solve,
    commands_experiment.experiment,
):
    app.command()(_command)
app.add_typer(commands_sites.app, name="sites")


_REFUSALS = frozenset(
    {
        errno.EACCES,
        errno.EPERM,
        errno.EROFS,
        errno.ENOSPC,
        errno.EEXIST,
        errno.EISDIR,
        errno.ENOTDIR,
        errno.ENAMETOOLONG,
        errno.ELOOP,
    }
)
"""What a file system says when it is not our fault. A file that is not there can be: that stays a bug."""


def _print_version(asked: bool) -> None:
    if asked:
        sys.stdout.write(f"headrace {VERSION}\n")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Continuous SQL queries on Spark Structured Streaming, planned together."""


def main(arguments: Sequence[str] | None = None) -> None:
    """The entry point: runs a command and ends the process with its exit code."""
    args = list(sys.argv[1:] if arguments is None else arguments)
    code = _guarded(args)
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has gone (`headrace plan | head`). Python would complain once more while it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if arguments is None and "grpc" in sys.modules:
        # Python's end closes the channels of Spark Connect sessions, and that waits for calls whose threads
        # are gone by then: for ever, where a server died or hangs. All that must be on disk is.
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


@cache
def _all_commands() -> Callable[..., object]:
    """All commands with their options. Made once: it takes 25 ms, and who calls `main` may call it often."""
    return get_command(app)


def _guarded(args: list[str]) -> int:
    """The exit code of a command, its errors shown."""
    as_json = "--json" in args
    try:
        code = _all_commands()(args, standalone_mode=False, prog_name="headrace")
        return code if isinstance(code, int) else 0
    except InternalError as error:
        return _bug(error, as_json=as_json)
    except HeadraceError as error:
        print_error(error, as_json=as_json)
        return error.exit_code
    except typer.TyperException as error:
        return _usage(error, as_json=as_json)
    except (typer.Abort, KeyboardInterrupt):
        err().print("interrupted")
        return 130
    except BrokenPipeError:
        return 1
    except OSError as error:
        if error.errno not in _REFUSALS or not error.filename:
            return _bug(error, as_json=as_json)
        print_error(UserError(f"cannot use {error.filename}: {error.strerror}"), as_json=as_json)
        return UserError.exit_code
    except Exception as error:
        return _bug(error, as_json=as_json)


def _usage(error: typer.TyperException, *, as_json: bool) -> int:
    """A wrong command line. Asking for nothing shows the help, which is no error to explain."""
    message = error.format_message()
    if as_json:
        print_json({"error": "usage error", "message": message, "detail": "", "hint": "", "place": None})
    elif message:
        err().print(f"usage error: {message}\nTry: headrace --help", soft_wrap=True)
    return error.exit_code


def _bug(error: Exception, *, as_json: bool) -> int:
    """Our own fault: everything that helps to find it."""
    known = error if isinstance(error, HeadraceError) else InternalError(f"{type(error).__name__}: {error}")
    traceback.print_exception(error, file=sys.stderr)
    print_error(known, as_json=as_json)
    err().print("This is a bug in Headrace. Please report it, with the lines above.")
    return 1


if __name__ == "__main__":
    main()
