"""Places in JSON texts: every value is found where a decoder of its own would read it."""

from __future__ import annotations

import json
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import UserError
from headrace.service.problem_file import ProblemFile, places, read_file, shown
from tests.searches import examples

_SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=6)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=12,
)


def _count(value: object) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(_count(part) for part in inner)


@settings(max_examples=examples(150), deadline=None)
@given(_VALUES, st.sampled_from([None, 0, 3]), st.booleans())
def test_every_value_is_found_at_its_place(value: Any, indent: int | None, escaped: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=escaped)
    found = list(places(text))
    assert len(found) == _count(value)
    for place in found:
        at_trail = reduce(lambda part, step: part[step], place.trail, value)
        assert json.JSONDecoder().raw_decode(text, place.value[0])[0] == at_trail
        if place.key is not None:
            assert json.loads(text[slice(*place.key)]) == place.trail[-1]


def test_shown_as_people_write_it() -> None:
    assert shown(("queries", 3, "slide")) == "queries[3].slide"
    assert shown(()) == "the problem"


@pytest.mark.parametrize(
    ("text", "line", "column", "says"),
    [
        ("", 1, 1, "not valid JSON: expecting value"),
        ('{"a": 1,\n "b" 2}', 2, 6, "not valid JSON: expecting ':' delimiter"),
        ('{"a": {"x": 1,\n"y": 2, "x": 3}}', 2, 9, 'the key "x" is given twice in a'),
        ('[{"k": 1}, {"k": 1,\n\t"k": 2}]', 2, 2, 'the key "k" is given twice in [1]'),
    ],
)
def test_not_json(text: str, line: int, column: int, says: str) -> None:
    with pytest.raises(UserError) as wrong:
        ProblemFile("p.json", text).body()
    assert says in wrong.value.message
    assert wrong.value.span is not None
    assert (wrong.value.span.line, wrong.value.span.column) == (line, column)


def test_nesting_without_end() -> None:
    with pytest.raises(UserError, match="nested too deeply"):
        ProblemFile("p.json", "[" * 200_000).body()


def test_numbers_of_any_length_are_read() -> None:
    body = ProblemFile("p.json", "[" + "9" * 10_000 + ", -12]").body()
    assert isinstance(body, list)
    assert body[0] > 10**39 and body[1] == -12


def test_a_long_line_is_not_shown() -> None:
    file = ProblemFile("p.json", json.dumps({"pad": "x" * 300, "rate": 0}))
    assert (span := file.wrong(("rate",), "no").span) is not None
    assert span.text == "" and span.column > 300


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "latin.json").write_bytes(b'{\n"a": "\xe9"}')
    for name, says in (
        ("none.json", "there is no file"),
        ("", "is a folder, not a problem file"),
        ("latin.json/x", "cannot be read: Not a directory"),
        ("a\0b", "cannot be read"),
        ("latin.json", "byte 0xe9 is not UTF-8 text"),
    ):
        with pytest.raises(UserError, match=says):
            read_file(f"{tmp_path}/{name}")


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path) -> None:
    (tmp_path / "p.json").write_bytes(b"\xef\xbb\xbf[1]")
    assert read_file(f"{tmp_path}/p.json").body() == [1]
