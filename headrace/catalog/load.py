"""headrace.yaml -> Project. Reads files, runs nothing, and either gives a whole project or one error.

Three stages, each with all its findings before the next begins: the text as a document (`document`), the
document as objects (`sections`), the objects against each other (`check`). The error is the finding that
stands first in the file, and says how many more there are.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from headrace.catalog.check import check_project
from headrace.catalog.document import Document
from headrace.catalog.model import Project
from headrace.catalog.problems import Problem, first_error
from headrace.catalog.sections import Reader
from headrace.errors import Span, UserError

PROJECT_FILE = "headrace.yaml"


def load_project(path: Path) -> Project:
    """The project of a headrace.yaml, or of the folder that holds one. Raises UserError."""
    file = path / PROJECT_FILE if path.is_dir() else path
    document = Document(_read_text(file), str(file))
    if document.data is None:
        raise _nothing_in(file)
    reader = Reader(document, file.parent)
    project = reader.project()
    _raise_first(reader.problems, document)
    _raise_first(check_project(project), document)
    return project


def _raise_first(problems: Iterable[Problem], document: Document) -> None:
    error = first_error(problems, document)
    if error is not None:
        raise error


def _read_text(file: Path) -> str:
    try:
        raw = file.read_bytes()
    except FileNotFoundError:
        raise UserError(
            f"there is no {file}", hint="Run `headrace init` to make a starter project."
        ) from None
    except OSError as error:
        hint = "Give a project file, or the folder that holds one, which you may read."
        raise UserError(f"{file} cannot be read: {error.strerror}", hint=hint) from None
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _not_utf8(file, raw, error.start) from None


def _not_utf8(file: Path, raw: bytes, position: int) -> UserError:
    before = raw[:position]
    column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8-sig", "replace")) + 1
    span = Span(str(file), before.count(b"\n") + 1, column, column + 1)
    return UserError(
        f"byte 0x{raw[position]:02x} is not UTF-8 text", hint="Save the file as UTF-8.", span=span
    )


def _nothing_in(file: Path) -> UserError:
    hint = "Run `headrace init` in another folder to see a starter project."
    return UserError("the project file is empty", hint=hint, span=Span(str(file), 1, 1, 2))
