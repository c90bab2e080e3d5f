"""How claims are judged. Gains hold where ours are at least nine tenths of the paper's, partly at half of
them or more; `same` means within 5 %."""

from __future__ import annotations

from collections.abc import Callable

from headrace.experiments.distribution.tables import Tables
from headrace.experiments.judged import Claim, Verdict

MakeClaim = Callable[[Tables], Claim]
NOT_RUN = "not run"
SAME = 0.95


def held(whole: bool, part: bool = False) -> Verdict:
    return "holds" if whole else ("partly" if part else "does not hold")


def gained(ours: float, paper: float) -> Verdict:
    return held(ours >= 0.9 * paper, ours >= paper / 2)
