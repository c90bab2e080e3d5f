"""A paper's claims and an issue's bars, as every report shows them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from headrace.experiments.shown import TextTable

Verdict = Literal["holds", "partly", "does not hold", "not compared"]
_WORDS: dict[Verdict, tuple[str, str]] = {
    "holds": ("holds", "hold"),
    "partly": ("holds partly", "hold partly"),
    "does not hold": ("does not hold", "do not hold"),
    "not compared": ("could not be compared", "could not be compared"),
}
"""Of one claim, and of several."""


@dataclass(frozen=True, slots=True)
class Claim:
    text: str
    where: str
    """In the paper."""
    paper: str
    ours: str
    verdict: Verdict
    why: str = ""


@dataclass(frozen=True, slots=True)
class Bar:
    text: str
    wanted: str
    here: str
    met: bool
    seeds: int


def statement(claims: Sequence[Claim]) -> str:
    """Which claims hold, in plain words."""
    count = Counter(claim.verdict for claim in claims)
    told = ", ".join(
        f"{count[verdict]} {words[count[verdict] > 1]}" for verdict, words in _WORDS.items() if count[verdict]
    )
    return f"Of {len(claims)} claims of the paper: {told}."


def claims_table(claims: Sequence[Claim]) -> TextTable:
    rows = tuple((c.text, c.where, c.paper, c.ours, c.verdict) for c in claims)
    columns = ("claim", "where", "paper", "here", "verdict")
    return TextTable("Claims", columns, rows, statement(claims), left=5)


def reasons(claims: Sequence[Claim], note: str = "") -> str:
    """What was found beside the verdicts, as Markdown; nothing where nothing was."""
    lines = [f"- **{c.text}** ({c.verdict}). {c.why}" for c in claims if c.why]
    head = ["### What the runs show beside each claim", "", *([note, ""] if note else [])]
    return "\n".join([*head, *lines]) if lines else ""


def bars_table(bars: Sequence[Bar], last: str, note: str) -> TextTable:
    """`last`: what the number in the last column counts."""
    rows = tuple((b.text, b.wanted, b.here, "yes" if b.met else "no", str(b.seeds)) for b in bars)
    return TextTable("The issue's bars", ("bar", "wanted", "here", "met", last), rows, note)
