"""What is run: the optimiser on the paper's templates, and splits of CQ1-CQ6 at rising rates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headrace.experiments.federation.queries import QUERIES
from headrace.service.throughput_choice import DUCKDB, LOWER, NAMED, ROOT, SELECT, SPARK, UPPER

CHOSEN = "chosen"
ALL = "all"
RATES = (1000, 2000, 5000, 10000, 20000, 40000, 80000)
"""Rows a second. The paper's go to 40,000."""
QUICK_RATES = (1000, 2000, 40000)
LOW_RATES = (300, 100)
"""At which Spark alone is run where it does not keep up with the lowest of the others."""
SPLITS = (CHOSEN, SPARK, DUCKDB, ROOT, UPPER)
QUICK_SPLITS = (CHOSEN, SPARK, DUCKDB)
KNOWN_SPLITS = (CHOSEN, ALL, *NAMED)
CALIBRATE, DEFAULT = "calibrate", "default"

TABLE_2: Mapping[int, tuple[int, float, float]] = {
    2: (11, 12.3, 13.2),
    5: (312, 908.6, 977.1),
    8: (8411, 61335.5, 61436.0),
}
"""Ways -> plans examined with pruning, milliseconds of phase two and of both, as the paper reports them."""
TABLE_3: Mapping[str, float] = {"cq1": 9.0, "cq2": 8.8, "cq3": 12.27, "cq4": 11.66, "cq5": 23.8, "cq6": 64.1}
CHAINS = (4, 10)
"""Plans of unary operators alone."""
DECOMPOSED = 15
"""Operators in a piece, as the paper proposes."""

__all__ = ["DUCKDB", "LOWER", "NAMED", "QUERIES", "ROOT", "SELECT", "SPARK", "UPPER"]


@dataclass(frozen=True)
class Setting:
    rates: tuple[int, ...] = RATES
    queries: tuple[str, ...] = tuple(QUERIES)
    splits: tuple[str, ...] = SPLITS
    costs: str = CALIBRATE
    """`default`, `calibrate`, or a calibration.json."""
    measured: int = 6
    """Batches."""
    limit: float = 420.0
    repeats: int = 10
    cores: int = 2
    memory: str = "6g"
    quick: bool = False

    @classmethod
    def small(cls) -> Setting:
        return cls(
            QUICK_RATES, splits=QUICK_SPLITS, costs=DEFAULT, measured=3, limit=120.0, repeats=3, quick=True
        )

    @property
    def command(self) -> str:
        usual = Setting.small() if self.quick else Setting()
        words = ["headrace experiment federation", *(["--quick"] if self.quick else [])]
        for name in ("rates", "queries", "splits", "costs", "limit"):
            mine = getattr(self, name)
            if mine != getattr(usual, name):
                words += [f"--{name}", ",".join(map(str, mine)) if isinstance(mine, tuple) else f"{mine}"]
        return " ".join(words)
