"""Whatever is typed, the answer is a plan or a UserError: never a traceback, never an InternalError."""

from __future__ import annotations

import random
import re

import pytest

from headrace.errors import NotSupported
from tests.cases.test_cases import CASES, outcome
from tests.searches import examples
from tests.unit.sql.binding import bind

_WORD = re.compile(r"\w+|'[^']*'|[^\w\s]")
TEXTS = [text for case in CASES for text in case.texts]
WORDS = sorted({word for text in TEXTS for word in _WORD.findall(text)})


def _mutated(text: str, rng: random.Random) -> str:
    """One word left out, changed, said twice, or everything after it cut off."""
    found = list(_WORD.finditer(text))
    if not found:
        return text
    place = rng.choice(found)
    before, word, after = text[: place.start()], place.group(), text[place.end() :]
    return rng.choice(
        (before + after, f"{before}{rng.choice(WORDS)}{after}", f"{before}{word} {word}{after}", before)
    )


@pytest.mark.parametrize("seed", range(examples(8)))
def test_broken_texts_give_user_errors(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(150):
        text = rng.choice(TEXTS)
        for _ in range(rng.randint(1, 3)):
            text = _mutated(text, rng)
        assert outcome(text)


def test_deep_nesting_is_refused() -> None:
    with pytest.raises(NotSupported, match="nested too deeply"):
        bind(f"SELECT {'(' * 3000}1{')' * 3000} AS x FROM clicks")
