"""What operators of window queries cost on Spark and on DuckDB: prices as data, and unit costs made of them.

The federation planner (planners/federation) wants of each operator the seconds for one arriving row on Spark
(c), and for one held row on DuckDB. What an operator really does is more than that: Spark copies a row into
every window it lies in and keeps state by window and group; DuckDB reads a window's rows once for all slides
of a micro-batch, and makes each window of its panes. So the work of a second is counted here, priced, and
divided by the rows of a second: a unit cost is an average, as in the paper (5.1), and holds for the rates
that it was made for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields

from headrace.cost.windows import seen
from headrace.errors import InternalError

ROW_BYTES = 24.0
"""What moving a row costs whatever is in it, as so many bytes more."""


@dataclass(frozen=True, slots=True)
class FederationCosts:
    """CPU seconds of one unit of work each, on one site."""

    spark_filter: float
    """Each row that a filter, a projection or a join with a table looks at, on Spark."""
    spark_batch: float
    """Each aggregate or join of windows on Spark, in each micro-batch: shuffle, commit of its state."""
    spark_row: float
    """Each row that an aggregate on Spark takes."""
    spark_copy: float
    """Each row and window it lies in, for an aggregate or a join on Spark of windows that overlap."""
    spark_state: float
    """Each window and group that a micro-batch touches in the state of Spark."""
    spark_join: float
    """Each row of a window, and again for each window it lies in, that a join of windows on Spark takes."""
    duck_filter: float
    """Each row that a filter, or a join with a table, on DuckDB looks at."""
    duck_scan: float
    """Each row of the window tables that an aggregate on DuckDB reads, in each statement."""
    duck_pane: float
    """Each pane, group and window that are merged on DuckDB."""
    duck_join: float
    """Each row and window that a join on DuckDB takes."""
    statement: float
    """Each statement, whatever it does."""
    transfer_in: float
    """Each byte from Spark into the window tables."""
    transfer_out: float
    """Each byte of results back to Spark or to the sink."""

    def __post_init__(self) -> None:
        for name, value in self.to_dict().items():
            if not (math.isfinite(value) and value >= 0):
                raise InternalError(f"FederationCosts: {name} is {value}")

    def to_dict(self) -> dict[str, float]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, float]) -> FederationCosts:
        """Raises InternalError for another set of names: figures of another version mean other things."""
        names = {field.name for field in fields(cls)}
        if set(data) != names:
            raise InternalError(f"FederationCosts: names differ in {', '.join(sorted(names ^ set(data)))}")
        return cls(**data)


DEFAULTS = FederationCosts(
    spark_filter=5e-8,
    spark_batch=0.95,
    spark_row=1e-7,
    spark_copy=1e-7,
    spark_state=4.5e-6,
    spark_join=5.7e-6,
    duck_filter=1e-9,
    duck_scan=1e-8,
    duck_pane=1e-9,
    duck_join=1.2e-8,
    statement=0.24,
    transfer_in=9e-9,
    transfer_out=1.4e-8,
)
"""For a site that was never calibrated: those that come closest to the CPU seconds of the 60 runs of
docs/experiments/federation.md that kept up (2 cores AMD EPYC); half of them by 15 %. The runs do not tell
spark_filter, spark_row, duck_filter, duck_pane and transfer_out from nothing: these are guesses. Elsewhere
orders of magnitude, no more."""


@dataclass(frozen=True, slots=True)
class Input:
    """What one input brings to an operator."""

    rate: float
    """Rows a second (lambda)."""
    rows: float
    """Rows in its relation (W)."""
    slides: float
    """Windows that end in a second (l)."""
    copies: float = 1.0
    """Windows that an arriving row lies in; 1 where the rows belong to one window each, as results do."""


@dataclass(frozen=True, slots=True)
class Unit:
    """Seconds for one row: arriving on Spark, and held on DuckDB at each slide."""

    spark: float
    held: float


Work = dict[str, float]
"""How much of each kind of work there is in a second, by the names of FederationCosts."""


def filter_work(given: Input) -> tuple[Work, Work]:
    """Once for each row that comes, on either engine: what passes is kept in the window tables."""
    return {"spark_filter": given.rate}, {"duck_filter": given.rate}


def aggregate_work(
    given: Input, groups: float, batches: float, *, mergeable: bool = True
) -> tuple[Work, Work]:
    """Right above a window, or above rows that belong to one window each. Functions that cannot be merged
    (distinct counts, medians) read a window's rows at every slide."""
    # The windows that are open for the rows of one batch, which spans one batch's time.
    windows = given.copies + given.slides / batches
    touched = windows * seen(groups, given.rate * given.copies / batches / windows)
    spark = {
        "spark_batch": batches,
        "spark_row": given.rate,
        "spark_copy": _copied(given),
        "spark_state": touched * batches,
    }
    if given.copies <= 1:
        return spark, {"duck_scan": given.rate}
    if not mergeable:
        return spark, {"duck_scan": given.rows * given.slides}
    # A statement reads each row once; a window is then made of as many panes as a row has windows.
    panes = given.slides * given.copies * seen(groups, given.rows / given.copies)
    return spark, {"duck_scan": given.rows * min(batches, given.slides), "duck_pane": panes}


def join_work(given: Input, batches: float) -> tuple[Work, Work]:
    """One side of a join of windows; the fixed part is in both sides, half each."""
    each = given.rate * given.copies
    held = given.rows * given.slides if given.copies > 1 else given.rate
    return {"spark_batch": batches / 2, "spark_copy": _copied(given), "spark_join": each}, {"duck_join": held}


def _copied(given: Input) -> float:
    """Spark copies rows only where windows overlap."""
    return given.rate * given.copies if given.copies > 1 else 0.0


def unit(work: tuple[Work, Work], given: Input, costs: FederationCosts) -> Unit:
    """The average of a second's work over the rows of that second. Nothing is charged where nothing comes."""
    spark, duck = (price(one, costs) for one in work)
    held = given.rows * given.slides
    return Unit(spark / given.rate if given.rate else 0.0, duck / held if held else 0.0)


def price(work: Work, costs: FederationCosts) -> float:
    prices = costs.to_dict()
    return sum(amount * prices[name] for name, amount in work.items())
