"""What an error says, as text and as data."""

from __future__ import annotations

import pytest

from headrace.errors import EngineError, HeadraceError, InternalError, NotSupported, Span, UserError


def test_render_has_place_source_detail_and_hint_in_that_order() -> None:
    span = Span("q.sql", 2, 8, 13, "SELECT vlaue FROM s")
    error = UserError("no column vlaue", detail="in stream s", hint='Did you mean "value"?', span=span)
    assert error.render() == (
        "q.sql:2:8: no column vlaue\n"
        "    SELECT vlaue FROM s\n"
        "           ^^^^^\n"
        "in stream s\n"
        'hint: Did you mean "value"?'
    )


def test_render_of_a_bare_message_is_the_message() -> None:
    assert EngineError("Spark stopped").render() == "Spark stopped"


def test_a_place_without_its_line_is_named_but_not_drawn() -> None:
    assert UserError("wrong", span=Span("a.yaml", 1, 1, 2)).render() == "a.yaml:1:1: wrong"


@pytest.mark.parametrize(
    ("column", "end", "marks"),
    [(1, 4, "^^^"), (3, 3, "  ^"), (3, 1, "  ^"), (4, 99, "   ^"), (5, 9, "    ^")],
    ids=["whole", "empty", "backwards", "past the end", "after the end"],
)
def test_the_underline_is_never_empty_and_never_longer_than_the_line(
    column: int, end: int, marks: str
) -> None:
    assert Span("f", 1, column, end, "abcd").underlined().splitlines()[1] == marks


@pytest.mark.parametrize(
    ("line", "word", "below"),
    [
        ("\tFROM reading", "reading", "\t     ^^^^^^^"),
        ("名前 AS 値x", "値x", "        ^^^"),
        ("cafe\u0301 x", "x", "     ^"),
    ],
    ids=["tab", "wide", "combining"],
)
def test_the_underline_is_below_the_word_in_a_terminal(line: str, word: str, below: str) -> None:
    start = line.index(word) + 1
    assert Span("f", 1, start, start + len(word), line).underlined().splitlines()[1] == below


def test_to_dict_carries_everything_a_program_needs() -> None:
    error = NotSupported("UNION is not supported", hint="Declare two queries.", span=Span("q", 3, 5, 10))
    assert error.to_dict() == {
        "error": "not supported",
        "message": "UNION is not supported",
        "detail": "",
        "hint": "Declare two queries.",
        "place": {"file": "q", "line": 3, "column": 5},
    }
    assert InternalError("x").to_dict()["place"] is None


@pytest.mark.parametrize(
    ("kind", "code"), [(UserError, 2), (NotSupported, 2), (EngineError, 1), (InternalError, 1)]
)
def test_only_the_users_own_mistakes_exit_with_2(kind: type[HeadraceError], code: int) -> None:
    assert kind("m").exit_code == code
    assert isinstance(kind("m"), HeadraceError)


def test_a_refusal_is_a_user_error_and_a_bug_is_not() -> None:
    assert issubclass(NotSupported, UserError)
    assert not issubclass(InternalError, UserError)
    assert not issubclass(EngineError, UserError)
