"""The paper's workload generator (section 7.1) and its 256 experiments (Table 2).

What the paper leaves open, and how it is read here:
- Zipf: skew 1 "is skewed towards large slides", so the largest has rank 1 and weight 1, the next 1/2, ...
- Overlap "drawn from a uniform distribution between one and the maximum": whole numbers (range = overlap *
  slide), or, as the other reading, real numbers (range = the nearest whole time unit). Both readings use the
  same draws, so the two workloads differ in nothing else.
- The three repeats are three workloads of the same parameters, not the same workload three times.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from headrace.planners.sharing.problem import SharingProblem, WindowQuery

Overlap = Literal["integer", "real"]
Generator = Literal["Nrm", "Div"]


@dataclass(frozen=True, slots=True, order=True)
class Parameters:
    """One line of Table 2's product, by the paper's names."""

    qnum: int
    nnum: int
    rate: int
    smax: int
    zskew: int
    omega: int
    gen: Generator

    def to_dict(self) -> dict[str, int | str]:
        values = (self.qnum, self.nnum, self.rate, self.smax, self.zskew, self.omega, self.gen)
        return dict(zip(NAMES, values, strict=True))

    @property
    def slides(self) -> tuple[int, ...]:
        """The slide lengths a query may have, ascending."""
        every = range(1, self.smax + 1)
        return tuple(every) if self.gen == "Nrm" else tuple(s for s in every if _is_prime(s))


NAMES = ("Qnum", "Nnum", "lambda", "Smax", "Zskew", "Omega", "Gen")

TABLE_2: tuple[tuple[int | str, ...], ...] = (
    (250, 500),
    (4, 8, 16, 32),
    (10, 100),
    (25, 50),
    (0, 1),
    (10, 100),
    ("Nrm", "Div"),
)

EXPERIMENT_2 = Parameters(qnum=250, nnum=4, rate=100, smax=25, zskew=1, omega=100, gen="Nrm")
"""The one whose node costs Figure 3 shows."""


def parameters_of(values: dict[str, int | str]) -> Parameters:
    """Raises KeyError, ValueError or TypeError when the values are no line of Table 2's product."""
    made = Parameters(*(values[name] for name in NAMES))  # type: ignore[arg-type]
    if made not in _GRID_SET:
        raise ValueError(f"{values} is none of the paper's experiments")
    return made


def grid() -> tuple[Parameters, ...]:
    """All 256 experiments, in the order of Table 2."""
    return tuple(Parameters(*values) for values in product(*TABLE_2))  # type: ignore[arg-type]


_GRID_SET = frozenset(grid())


def quick_grid() -> tuple[Parameters, ...]:
    """Sixteen of them: every 17th takes the high and the low half of the parameters through all combinations.
    Experiment 2 takes the place of the one that differs from it least, for Figure 3."""
    chosen = list(grid()[::17])
    if EXPERIMENT_2 not in chosen:
        nearest = max(range(len(chosen)), key=lambda i: _same(chosen[i], EXPERIMENT_2))
        chosen[nearest] = EXPERIMENT_2
    return tuple(chosen)


def _same(one: Parameters, other: Parameters) -> int:
    return sum(one.to_dict()[name] == other.to_dict()[name] for name in NAMES)


def workload(parameters: Parameters, repeat: int, overlap: Overlap = "integer") -> SharingProblem:
    """The same for the same arguments, on every machine: the seed is the parameters and the repeat."""
    rng = np.random.default_rng(np.random.SeedSequence(_entropy(parameters, repeat)))
    slides = rng.choice(parameters.slides, size=parameters.qnum, p=slide_weights(parameters))
    draws = rng.random(parameters.qnum)
    ranges = _ranges(slides, draws, parameters.omega, overlap)
    queries = tuple(
        WindowQuery(f"q{i}", int(length), int(slide))
        for i, (length, slide) in enumerate(zip(ranges, slides, strict=True))
    )
    return SharingProblem(float(parameters.rate), (1.0,) * parameters.nnum, queries, "paper")


def slide_weights(parameters: Parameters) -> NDArray[np.float64]:
    """How likely each of `parameters.slides` is."""
    rank = np.arange(len(parameters.slides), 0, -1, dtype=np.float64)
    weights = rank ** -float(parameters.zskew)
    return np.asarray(weights / weights.sum(), dtype=np.float64)


def _ranges(
    slides: NDArray[np.int64], draws: NDArray[np.float64], omega: int, overlap: Overlap
) -> NDArray[np.int64]:
    if overlap == "integer":
        return slides * (1 + np.floor(draws * omega).astype(np.int64))
    return np.maximum(1, np.rint(slides * (1.0 + draws * (omega - 1))).astype(np.int64))


def _entropy(parameters: Parameters, repeat: int) -> list[int]:
    values = [parameters.qnum, parameters.nnum, parameters.rate, parameters.smax, parameters.zskew]
    return [*values, parameters.omega, int(parameters.gen == "Div"), repeat]


def _is_prime(number: int) -> bool:
    return number > 1 and all(number % d for d in range(2, int(number**0.5) + 1))
