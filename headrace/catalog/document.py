"""A YAML text as plain data, and where in the text every part of it stands.

The text is composed to nodes (they carry exact start and end marks, and how a scalar was written) and
turned into data here, so that a message can point at any key or value. What is peculiar to this reading:
a key is always text; a date or time is left as the text that was written; a key given twice, a tag, a
number that is not finite and a list or mapping that holds itself are refused.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, ReusedAnchorWarning, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.reader import ReaderError

from headrace.errors import Span, UserError

Data = dict[str, "Data"] | list["Data"] | str | int | float | bool | None
Trail = tuple[str | int, ...]
"""The keys and list positions that lead to a part of the data."""

_TAG = "tag:yaml.org,2002:"
_AS_WRITTEN = frozenset({_TAG + "str", _TAG + "timestamp"})
_READ = frozenset(_TAG + kind for kind in ("int", "float", "bool", "null"))
_MOST_NODES = 200_000
"""Aliases can make a short text expand without bound; no real project comes near this."""


@dataclass(frozen=True, slots=True)
class _Place:
    key: Node | None
    value: Node


@dataclass(frozen=True, slots=True)
class ScalarPlace:
    """Where the characters of a scalar start, and whether its lines are lines of the file."""

    line: int
    column: int
    keeps_lines: bool


class Document:
    """A parsed YAML text. `file` is the name to show in messages."""

    def __init__(self, text: str, file: str) -> None:
        self.file = file
        self.lines = [line.rstrip("\r") for line in text.split("\n")]
        self._places: dict[Trail, _Place] = {}
        self._open: set[int] = set()
        self._yaml = YAML(typ="safe", pure=True)
        root = self._compose(text)
        try:
            self.data: Data = None if root is None else self._read(root, None, ())
        except RecursionError:
            raise self._too_deep() from None

    def at_key(self, trail: Trail) -> Span:
        """The key that leads to this part; for what is not there, the nearest thing around it that is."""
        place = self._nearest(trail)
        if place is None:
            return self._first_line()
        return self._span(place.value if place.key is None else place.key)

    def at_value(self, trail: Trail) -> Span:
        """The value itself where it is a scalar; the key for mappings, lists and empty values."""
        place = self._nearest(trail)
        if place is None or not isinstance(place.value, ScalarNode) or _is_blank(place.value):
            return self.at_key(trail)
        return self._span(place.value)

    def scalar(self, trail: Trail) -> ScalarPlace:
        """Where the text of a scalar starts. Only for a trail that leads to a scalar."""
        node = self._places[trail].value
        assert isinstance(node, ScalarNode)
        line, column = node.start_mark.line, node.start_mark.column
        if node.style == "|":
            return ScalarPlace(line + 2, self._block_indent(node) + 1, True)
        quoted = node.style in ("'", '"')
        one_line = node.style != ">" and node.end_mark.line == line
        return ScalarPlace(line + 1, column + (2 if quoted else 1), one_line)

    def _block_indent(self, node: ScalarNode) -> int:
        """Spaces that YAML takes off every line of a block: what the first line has more in the file."""
        for offset, content in enumerate(node.value.split("\n")):
            if content.strip():
                source = self.lines[node.start_mark.line + 1 + offset]
                return len(source) - len(content.rstrip("\r"))
        return 0

    def _compose(self, text: str) -> Node | None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ReusedAnchorWarning)
            try:
                node: Node | None = self._yaml.compose(text)
            except ReaderError as error:
                raise self._bad_character(text, error) from None
            except MarkedYAMLError as error:
                raise self._bad_syntax(error) from None
            except YAMLError as error:
                raise UserError(f"not valid YAML: {error}", span=self._first_line()) from None
            except RecursionError:
                raise self._too_deep() from None
        return node

    def _read(self, node: Node, key: Node | None, trail: Trail) -> Data:
        self._places[trail] = _Place(key, node)
        if len(self._places) > _MOST_NODES or id(node) in self._open:
            raise UserError("this alias makes the file endless", span=self._span(node))
        if isinstance(node, ScalarNode):
            return self._scalar(node)
        if node.tag not in (_TAG + "map", _TAG + "seq"):
            raise self._tagged(node)
        self._open.add(id(node))
        data = self._collection(node, trail)
        self._open.discard(id(node))
        return data

    def _collection(self, node: Node, trail: Trail) -> Data:
        if isinstance(node, MappingNode):
            entries = self._entries(node).items()
            return {name: self._read(value, key, (*trail, name)) for name, (key, value) in entries}
        return [self._read(item, None, (*trail, i)) for i, item in enumerate(node.value)]

    def _entries(self, node: MappingNode) -> dict[str, tuple[Node, Node]]:
        """The mapping by key; what `<<` merges in comes after, and gives way to what is written."""
        own: dict[str, tuple[Node, Node]] = {}
        merged: dict[str, tuple[Node, Node]] = {}
        for key, value in node.value:
            if key.tag == _TAG + "merge":
                merged = self._merged(value) | merged
                continue
            if not isinstance(key, ScalarNode):
                raise UserError("a key must be one word of text", span=self._span(key))
            if key.value in own:
                first = own[key.value][0].start_mark.line + 1
                raise UserError(
                    f'"{key.value}" is given twice',
                    hint=f"It is given on line {first} already: remove or rename one of them.",
                    span=self._span(key),
                )
            own[key.value] = (key, value)
        return own | {name: entry for name, entry in merged.items() if name not in own}

    def _merged(self, value: Node) -> dict[str, tuple[Node, Node]]:
        parts = value.value if isinstance(value, SequenceNode) else [value]
        result: dict[str, tuple[Node, Node]] = {}
        for part in reversed(parts):
            if not isinstance(part, MappingNode) or id(part) in self._open:
                raise UserError('"<<" must name a mapping by its alias', span=self._span(value))
            result |= self._entries(part)
        return result

    def _scalar(self, node: ScalarNode) -> Data:
        if node.tag in _AS_WRITTEN:
            return str(node.value)
        if node.tag not in _READ:
            raise self._tagged(node)
        try:
            value: Data = self._yaml.constructor.construct_object(node)
        except (ValueError, YAMLError):
            raise UserError(f'"{node.value}" cannot be read as a value', span=self._span(node)) from None
        if isinstance(value, float) and not math.isfinite(value):
            raise UserError(f"{node.value} is not a finite number", span=self._span(node))
        return value

    def _tagged(self, node: Node) -> UserError:
        hint = "Remove the tag: the types are known from the keys."
        return UserError(f'the YAML tag "{node.tag}" means nothing here', hint=hint, span=self._span(node))

    def _nearest(self, trail: Trail) -> _Place | None:
        for length in range(len(trail), 0, -1):
            if trail[:length] in self._places:
                return self._places[trail[:length]]
        return None

    def _span(self, node: Node) -> Span:
        start, end = node.start_mark, node.end_mark
        text = self.lines[start.line] if start.line < len(self.lines) else ""
        end_column = end.column if end.line == start.line else len(text.split(" #")[0].rstrip())
        return Span(self.file, start.line + 1, start.column + 1, max(end_column, start.column + 1) + 1, text)

    def _first_line(self) -> Span:
        for number, text in enumerate(self.lines, 1):
            if text.strip() and not text.lstrip().startswith("#"):
                return Span(self.file, number, 1, len(text) + 1, text)
        return Span(self.file, 1, 1, 2)

    def _at(self, line: int, column: int) -> Span:
        """A place by 0-based marks; a mark past the end is moved to the last character there is."""
        if line >= len(self.lines) or (line == len(self.lines) - 1 and not self.lines[line]):
            line = max((i for i, text in enumerate(self.lines) if text.strip()), default=0)
            column = max(len(self.lines[line]) - 1, 0)
        return Span(self.file, line + 1, column + 1, column + 2, self.lines[line])

    def _bad_character(self, text: str, error: ReaderError) -> UserError:
        before = text[: error.position]
        line = before.count("\n")
        span = self._at(line, len(before) - (before.rfind("\n") + 1))
        code = f"U+{ord(text[error.position]):04X}"
        return UserError(f"the character {code} is not allowed in YAML", hint="Remove it.", span=span)

    def _bad_syntax(self, error: MarkedYAMLError) -> UserError:
        problem, mark, begun = str(error.problem or error.context), error.problem_mark, error.context_mark
        message, hint = _plain_words(problem)
        # What is never closed is found at the end, but wrong at its beginning.
        if mark is None or (begun is not None and begun.line != mark.line and problem.startswith(_UNCLOSED)):
            mark, begun = begun, None
        span = self._first_line() if mark is None else self._at(mark.line, mark.column)
        detail = ""
        if begun is not None and begun.line + 1 != span.line:
            detail = f"What is wrong may have begun on line {begun.line + 1}."
        return UserError(message, detail=detail, hint=hint, span=span)

    def _too_deep(self) -> UserError:
        return UserError("the file is nested too deeply", span=self._first_line())


_UNCLOSED = ("found unexpected end of stream", "expected ',' or")
_SYNTAX: tuple[tuple[str, str, str], ...] = (
    ("found character '\\t'", "a tab cannot be used here", "Indent with spaces only."),
    (
        "mapping values are not allowed",
        "a second key cannot start here",
        "Check the indentation, and put a text that contains a colon in quotes.",
    ),
    ("found undefined alias", "the alias after * names no anchor", "Define it first with &, or quote the *."),
    ("found unexpected end of stream", "a quote is opened and never closed", "Close the quote."),
    ("another document", "the file holds more than one YAML document", 'Remove the line "---".'),
    ("that cannot start any token", "a value cannot start with this character", "Put the text in quotes."),
    (
        "expected ',' or",
        "a bracket or brace is not closed, or a comma is missing",
        "Close it, or add a comma.",
    ),
    ("<stream end>", "the file ends inside a bracket or brace", "Close it."),
    ("<block end>", "the indentation does not fit the lines above", "Align the keys of one mapping."),
    ("could not find expected ':'", "a colon is missing after this key", "Write key: value."),
)


def _plain_words(problem: str) -> tuple[str, str]:
    for fragment, message, hint in _SYNTAX:
        if fragment in problem:
            return message, hint
    return f"not valid YAML: {problem}", ""


def _is_blank(node: ScalarNode) -> bool:
    return node.style is None and not node.value
