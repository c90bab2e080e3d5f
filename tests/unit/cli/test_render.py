"""What is printed of names and values that anybody may have written."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from headrace.cli.render import print_error, table, visible
from headrace.errors import UserError

ESCAPE = "\x1b[31mred\x07\x00"


@pytest.mark.parametrize("text", ["plain", "Grüße, 東京", "two\nlines", "a\ttab", "\U0001f600"])
def test_what_is_text_stays(text: str) -> None:
    assert visible(text) == text


def test_a_terminal_does_not_obey_a_name() -> None:
    console = Console(file=io.StringIO(), width=80)
    console.print(table(("site",), [(ESCAPE,)]))
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert r"\x1b[31mred\x07\x00" in shown and "\x1b" not in shown


def test_nor_one_in_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    print_error(UserError(f"site {ESCAPE} is not there"), as_json=False)
    shown = capsys.readouterr().err
    assert r"site \x1b[31mred\x07\x00 is not there" in shown and "\x00" not in shown
