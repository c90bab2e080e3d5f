"""A project file damaged at random is loaded or refused with a place, and never breaks the loader."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from headrace.catalog.load import load_project
from headrace.catalog.starter import write_starter
from headrace.errors import UserError

PIECES = [
    "\t",
    ":",
    "- ",
    "{",
    "}",
    "[",
    "]",
    "'",
    '"',
    "#",
    "&a ",
    "*a",
    "|",
    ">",
    "!x ",
    "\n",
    "  ",
    "~",
    "-1",
]
PIECES += ["<<", "?", "%", "@", "true", "1e999", "x: y", "é", "\x00", "\u2028", ", ", "2024-05-01", "null"]


def damaged(text: str, rng: random.Random) -> str:
    """The text after one to three small changes."""
    for _ in range(rng.randint(1, 3)):
        start = rng.randrange(len(text))
        end = min(len(text), start + rng.choice([0, 0, 1, 3, 12]))
        text = text[:start] + rng.choice(["", *PIECES]) + text[end:]
    return text


@pytest.mark.parametrize("seed", range(4))
def test_damage_is_refused_in_words(tmp_path: Path, seed: int) -> None:
    file = write_starter(tmp_path, "p")[-1]
    whole, rng, refusals = file.read_text(), random.Random(seed), 0
    for _ in range(40):
        text = damaged(whole, rng)
        file.write_text(text)
        try:
            load_project(tmp_path)
        except UserError as error:
            refusals += 1
            assert error.span is not None and error.message
            assert 1 <= error.span.line <= text.count("\n") + 1
            assert error.span.column >= 1
            error.render()
    assert refusals > 10
