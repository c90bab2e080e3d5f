"""A problem written in JSON: read strictly, and where it is wrong, with the place of the wrong value.

Ten thousand queries must load at once, so places are not kept while reading: only when something is wrong is
the text walked a second time, to where the value stands.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from headrace.errors import Span, UserError
from headrace.ids import did_you_mean

Trail = tuple[str | int, ...]
"""The keys and list positions that lead to a value: ("queries", 3, "slide")."""

STDIN = "-"
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)
_HALF = re.compile(r"\\u[dD][89a-fA-F]")
_LONGEST_LINE = 200
"""A longer line is not shown: a file made by a program often is one line."""
_MOST_DIGITS = 40
"""No number we read is longer, and Python refuses to convert numbers of thousands of digits."""


class Place(NamedTuple):
    trail: Trail
    key: tuple[int, int] | None
    """Where the key stands, for a value in an object."""
    value: tuple[int, int]
    """Where the value stands; of an object or a list, its opening bracket."""


class _GivenTwice(ValueError):
    pass


@dataclass(frozen=True, slots=True)
class ProblemFile:
    """A JSON text with the name to show for it."""

    name: str
    text: str

    def body(self) -> object:
        """The data. Raises UserError where the text is not JSON or gives a key twice."""
        try:
            data: object = json.loads(self.text, object_pairs_hook=_once, parse_int=_whole)
        except json.JSONDecodeError as error:
            raise UserError(
                f"not valid JSON: {error.msg[:1].lower()}{error.msg[1:]}", span=self._span(error.pos)
            ) from None
        except _GivenTwice:
            raise self._given_twice() from None
        except RecursionError:
            raise UserError(f"{self.name} is nested too deeply to be a problem") from None
        if _HALF.search(self.text):
            self._check_characters()
        return data

    def _check_characters(self) -> None:
        """Raises UserError at a text with half a character, which nothing can print."""
        for found in _TOKEN.finditer(self.text):
            if _HALF.search(found[0]) and not _printable(json.loads(found[0])):
                message = "this text has half of a character (a lone surrogate)"
                raise UserError(
                    message, hint="Write both halves, or neither.", span=self._span(*found.span())
                )

    def mapping(
        self, value: object, trail: Trail, required: Collection[str], optional: Collection[str] = ()
    ) -> dict[str, object]:
        """The object at `trail`, with all the required keys and none that is unknown."""
        if not isinstance(value, dict):
            raise self.wrong(trail, f"{shown(trail)} must be an object {{...}}, not {described(value)}")
        for key in value:
            if key not in required and key not in optional:
                hint = did_you_mean(key, (*required, *optional), "keys")
                raise self.wrong((*trail, key), f'unknown key "{key}" in {shown(trail)}', hint, at_key=True)
        for key in required:
            if key not in value:
                raise self.wrong(trail, f'"{key}" is missing in {shown(trail)}')
        return value

    def whole(self, value: object, trail: Trail, most: int) -> int:
        """A whole number from 1 to `most`; true is none, and neither is 1.0."""
        if type(value) is not int:
            raise self.wrong(trail, f"{shown(trail)} must be a whole number, not {described(value)}")
        if not 1 <= value <= most:
            bound = "at least 1" if value < 1 else f"at most {most}"
            raise self.wrong(trail, f"{shown(trail)} must be {bound}, not {described(value)}")
        return value

    def number(self, value: object, trail: Trail, least: float, most: float) -> float:
        """A finite number above 0, from `least` to `most`."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.wrong(trail, f"{shown(trail)} must be a number, not {described(value)}")
        if not math.isfinite(value) or value <= 0:
            raise self.wrong(trail, f"{shown(trail)} must be a finite number above 0, not {described(value)}")
        if not least <= value <= most:
            bound = f"at least {least:g}" if value < least else f"at most {most:g}"
            raise self.wrong(trail, f"{shown(trail)} must be {bound}, not {described(value)}")
        return float(value)

    def amount(self, value: object, trail: Trail, most: float, least: float = 0.0) -> float:
        """A finite number from 0 to `most`; not one between 0 and `least`."""
        if isinstance(value, int | float) and not isinstance(value, bool) and value == 0:
            return 0.0
        if isinstance(value, int | float) and not isinstance(value, bool) and not value > 0:
            raise self.wrong(trail, f"{shown(trail)} must be at least 0, not {described(value)}")
        if isinstance(value, float) and not math.isfinite(value):
            raise self.wrong(trail, f"{shown(trail)} must be a finite number, not {described(value)}")
        if isinstance(value, float) and 0 < value < least:
            message = f"{shown(trail)} must be 0 or at least {least:g}, not {described(value)}"
            raise self.wrong(trail, message)
        return self.number(value, trail, 0, most)

    def flag(self, value: object, trail: Trail) -> bool:
        if not isinstance(value, bool):
            raise self.wrong(trail, f"{shown(trail)} must be true or false, not {described(value)}")
        return value

    def items(self, value: object, trail: Trail, one: str = "") -> list[object]:
        """A list; where `one` says what of, not an empty one."""
        if not isinstance(value, list):
            raise self.wrong(trail, f"{shown(trail)} must be a list [...], not {described(value)}")
        if one and not value:
            raise self.wrong(trail, f"{shown(trail)} is empty", f"Give at least one {one}.")
        return value

    def entries(self, value: object, trail: Trail) -> dict[str, object]:
        """An object whose keys are names."""
        if not isinstance(value, dict):
            raise self.wrong(trail, f"{shown(trail)} must be an object {{...}}, not {described(value)}")
        if "" in value:
            raise self.wrong((*trail, ""), f"a name in {shown(trail)} is empty", at_key=True)
        return value

    def wrong(self, trail: Trail, message: str, hint: str = "", *, at_key: bool = False) -> UserError:
        """The error of the value at `trail`, at its place in the text."""
        span = None
        for place in places(self.text):
            if place.trail == trail:
                span = self._span(*(place.key if at_key and place.key else place.value))
                break
        return UserError(message, hint=hint, span=span)

    @contextmanager
    def placed(self, trail: Trail) -> Iterator[None]:
        """What a planner has against the value at `trail` is told at its key: planners know of no file."""
        try:
            yield
        except UserError as error:
            raise error if error.span else self.wrong(trail, error.message, error.hint, at_key=True) from None

    def _given_twice(self) -> UserError:
        seen: set[Trail] = set()
        for place in places(self.text):
            if place.trail in seen and place.key:
                message = f'the key "{place.trail[-1]}" is given twice in {shown(place.trail[:-1])}'
                return UserError(message, hint="Keep one of them.", span=self._span(*place.key))
            seen.add(place.trail)
        return UserError(f"{self.name} gives a key twice")

    def _span(self, start: int, end: int | None = None) -> Span:
        before = self.text.rfind("\n", 0, start) + 1
        after = self.text.find("\n", start)
        line = self.text[before : after if after >= 0 else len(self.text)].rstrip("\r")
        column = start - before + 1
        width = max(1, (end or start + 1) - start)
        number = self.text.count("\n", 0, start) + 1
        return Span(self.name, number, column, column + width, line if len(line) <= _LONGEST_LINE else "")


def check_ids(file: ProblemFile, ids: Sequence[str | None], items: list[object]) -> None:
    """Raises UserError where two queries have one id. None: the item is no query."""
    first: dict[str, int] = {}
    for number, name in enumerate(ids):
        if name is None:
            continue
        if name in first:
            trail: Trail = ("queries", number)
            item = items[number]
            trail = (*trail, "id") if isinstance(item, dict) and "id" in item else trail
            hint = f"queries[{first[name]}] has it too; a query without an id gets q and its number."
            raise file.wrong(trail, f'two queries have the id "{name}"', hint)
        first[name] = number


def read_file(path: str) -> ProblemFile:
    """The text of a file, or of standard input for `-`. Raises UserError."""
    name = "<standard input>" if path == STDIN else path
    try:
        raw = sys.stdin.buffer.read() if path == STDIN else Path(path).read_bytes()
    except FileNotFoundError:
        raise UserError(f"there is no file {path}", hint="Use - to read standard input.") from None
    except IsADirectoryError:
        raise UserError(f"{path} is a folder, not a problem file") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UserError(f"{path} cannot be read: {reason}") from None
    try:
        return ProblemFile(name, raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        column = error.start - raw.rfind(b"\n", 0, error.start)
        span = Span(name, line, column, column + 1)
        message = f"byte 0x{raw[error.start]:02x} is not UTF-8 text"
        raise UserError(message, hint="Save the file as UTF-8.", span=span) from None


def places(text: str) -> Iterator[Place]:
    """Every value of a valid JSON text, in the order of the text."""
    trail: list[str | int | None] = []  # what is being filled in each open bracket; None: a key comes next
    key: tuple[int, int] | None = None
    for found in _TOKEN.finditer(text):
        token = found[0]
        if token in ("}", "]"):
            trail.pop()
        elif token == ",":
            at = trail[-1]
            trail[-1] = at + 1 if isinstance(at, int) else None
        elif token != ":" and trail and trail[-1] is None:
            trail[-1], key = json.loads(token), found.span()
        elif token != ":":
            yield Place(tuple(part for part in trail if part is not None), key, found.span())
            key = None
            if token in ("{", "["):
                trail.append(None if token == "{" else 0)


def shown(trail: Trail) -> str:
    """A trail as people read it: `queries[3].slide`."""
    text = ""
    for part in trail:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text or "the problem"


def described(value: object) -> str:
    """A value as a message names it."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _MOST_DIGITS else f"{text[:_MOST_DIGITS]}..."


def _printable(text: str) -> bool:
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _GivenTwice
    return found


def _whole(digits: str) -> int:
    return int(digits[: _MOST_DIGITS + 1])
