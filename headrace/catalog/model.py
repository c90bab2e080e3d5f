"""What a project declares, as checked data. Read from headrace.yaml by `catalog.load`.

Durations are whole microseconds, sizes bytes, rates rows per second; the file says `10 seconds`, `4g`.
Checks that need more than one field of one object are in `catalog.check`.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer

from headrace.errors import Span
from headrace.ids import NAME
from headrace.plan.types import Column, DataType, Schema
from headrace.units import format_duration, parse_duration, parse_instant, parse_percent, parse_size


def _duration(value: object) -> object:
    return parse_duration(value) if isinstance(value, str) else value


def _size(value: object) -> object:
    return parse_size(value) if isinstance(value, str) else value


def _percent(value: object) -> object:
    return parse_percent(value) if isinstance(value, str) else value


def _instant(value: object) -> object:
    return parse_instant(value) if isinstance(value, str) else value


Duration = Annotated[int, BeforeValidator(_duration), PlainSerializer(format_duration, when_used="json")]
Size = Annotated[int, BeforeValidator(_size)]
Percent = Annotated[float, BeforeValidator(_percent)]
Instant = Annotated[int, BeforeValidator(_instant)]
Name = Annotated[str, Field(pattern="^" + NAME.pattern.replace(r"\Z", "$"))]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Format(StrEnum):
    PARQUET = "parquet"
    JSON = "json"
    CSV = "csv"


class FileSource(_Model):
    """A folder (or glob) of files; new files are read as they appear."""

    kind: Literal["files"] = "files"
    path: str
    format: Format
    files_per_batch: int | None = Field(default=None, ge=1)
    """At most this many new files in one micro-batch; None: all there are."""
    header: bool = True
    """CSV only: whether the first line of a file names the columns."""
    delimiter: str = Field(default=",", min_length=1, max_length=1)


class Distribution(_Model):
    """How the generator draws one column. Exactly the fields of its `kind` may be given."""

    kind: Literal["uniform", "normal", "choice", "zipf", "sequence", "constant"]
    low: float | None = None
    high: float | None = None
    mean: float | None = None
    stddev: float | None = None
    values: tuple[str | int | float | bool, ...] | None = None
    skew: float | None = None
    value: str | int | float | bool | None = None
    null_share: float = Field(default=0.0, ge=0.0, le=1.0)


class GeneratorSource(_Model):
    """Seeded rows, the same on every machine, written as Parquet files that the job then reads."""

    kind: Literal["generator"] = "generator"
    seed: int = 0
    start: Instant = 0
    rows: int = Field(default=100_000, ge=1)
    files: int = Field(default=10, ge=1)
    """The rows are spread over so many files, in order of arrival."""
    files_per_batch: int | None = Field(default=None, ge=1)
    disorder: Duration = 0
    """A row arrives at most this much later than a row with a later event time."""
    shape: Literal["columns", "smart-plugs"] = "columns"
    columns: dict[str, Distribution] = Field(default_factory=dict)
    """`shape: columns`: a distribution for every column but the event time, which advances by 1/rate."""
    houses: int = Field(default=4, ge=1)
    households: int = Field(default=2, ge=1)
    plugs: int = Field(default=3, ge=1)
    """`shape: smart-plugs`: houses x households each x plugs each; every plug reports load and work."""
    interval: Duration = 1_000_000
    """`shape: smart-plugs`: time between two readings of one plug."""


class RateSource(_Model):
    """Spark's rate source: columns `timestamp` and `value`, for ever."""

    kind: Literal["rate"] = "rate"
    rows_per_second: int = Field(default=10, ge=1)


Source = Annotated[FileSource | GeneratorSource | RateSource, Field(discriminator="kind")]


class Stream(_Model):
    name: Name
    columns: dict[str, DataType]
    time: str
    watermark: Duration = Field(default=0, ge=0)
    rate: float = Field(default=1000.0, gt=0)
    distinct: dict[str, Annotated[int, Field(ge=1)]] = Field(default_factory=dict)
    """How many different values a column has, for the planner; a guess is taken for the others."""
    site: Name = "local"
    source: Source

    @property
    def schema_(self) -> Schema:
        return Schema(Column(n, t) for n, t in self.columns.items())


class Table(_Model):
    """A static table: files, or rows written in the project file."""

    name: Name
    columns: dict[str, DataType]
    source: FileSource | None = None
    rows: tuple[tuple[str | int | float | bool | None, ...], ...] | None = None

    @property
    def schema_(self) -> Schema:
        return Schema(Column(n, t) for n, t in self.columns.items())


class Site(_Model):
    name: Name
    endpoint: str = "local[*]"
    """`local[N]`, a Spark master URL, or a Spark Connect address `sc://host:port`."""
    cpu: float = Field(default=2.0, gt=0)
    memory: Size = Field(default=4 << 30, gt=0)
    bandwidth: Size = Field(default=125_000_000, gt=0)
    """Bytes per second in, and the same out."""
    region: Name = "main"
    """Sites of one region are managed together: jobs are evened out inside of it first."""
    storage: str | None = None
    """A folder in which jobs at this site keep their checkpoints; None: in the project's folder."""


class Link(_Model):
    between: tuple[Name, Name]
    latency: Duration = Field(default=1_000, ge=0)
    bandwidth: Size = Field(default=125_000_000, gt=0)
    cost: float | None = Field(default=None, ge=0)
    """What a byte costs on this link, for placement; None: its latency in seconds."""


class SinkKind(StrEnum):
    PARQUET = "parquet"
    JSON = "json"
    CSV = "csv"
    CONSOLE = "console"
    MEMORY = "memory"


class Sink(_Model):
    kind: SinkKind = SinkKind.PARQUET
    path: str | None = None
    """Folder for file sinks; by default `results/<query>`."""


EngineName = Literal["spark", "duckdb"]
"""The engines of plan/federated.py, held equal by a test."""


class Query(_Model):
    name: Name
    sql: str
    site: Name = "local"
    free: bool = False
    """It names no site, and `planner.distribution` gives it one. `site` is then where it is planned as if
    all such queries were at one place."""
    sink: Sink = Sink()
    engine: Literal["auto", "spark", "duckdb"] | None = None
    """Who does its operators: the planner chooses (`auto`), or one engine does all. None: it is in a tree
    where it can be, and otherwise as `planner.federation` says."""
    engines: tuple[EngineName, ...] | None = None
    """An engine for each operator that has a choice, inputs first (plan/federated.py), for experiments."""
    engines_place: Span | None = None
    """Where the list stands, for messages."""
    sql_file: str = ""
    """The file the SQL came from, for messages."""
    sql_line: int = 1
    sql_column: int = 1
    """Where the SQL text starts in that file."""


Optimiser = Literal[
    "headrace",
    "G_RAND",
    "G_RR",
    "G_TL",
    "W_RAND",
    "W_RR",
    "W_TL",
    "W_TN",
    "W_I",
    "WG_RAND",
    "WG_RR",
    "WG_TL",
    "WG_TN",
    "WG_I",
    "WEAVE_SHARE",
    "INSERT_THEN_WEAVE",
]
"""Who can make the trees: the names in planners/sharing, which the catalog does not see. A test holds them
equal; a wrong name is then found at its place in the file."""


Placement = Literal[
    "exact",
    "joint",
    "top-down",
    "bottom-up",
    "npc",
    "relaxation",
    "in-network",
    "plan-then-deploy",
    "exhaustive",
]
"""Who can place joins on sites: the names in planners/placement, held equal by a test too."""


class StateRange(_Model):
    """How much state a job may have; `most` None: any amount."""

    least: Size = Field(default=0, ge=0)
    most: Size | None = Field(default=None, ge=0)


class Rebalance(_Model):
    """By which rules jobs are moved from full sites to others: Table 5 of the paper, and below what is ours.
    What they mean is said where they are used, in planners/distribution/rules.py. Percentages are of 100."""

    policy: Literal["ours", "balance", "degradation"] = "ours"
    model: Literal["cpu", "memory", "network", "combined"] = "cpu"
    every: Duration = 30_000_000
    """Between two decisions of a service."""
    percent_difference: Percent = Field(default=10.0, ge=0, le=100)
    jobs: tuple[Name, ...] | None = None
    """Queries whose jobs may be moved; None: all."""
    sites: tuple[Name, ...] | None = None
    state: StateRange = StateRange()
    degraded: Percent = Field(default=10.0, ge=0)
    least_gain: Percent = Field(default=5.0, ge=0, le=100)
    """Costs are measured, and vary: with much less, jobs would follow the noise."""
    full: Percent = Field(default=80.0, gt=0, le=100)
    horizon: Duration = Field(default=600_000_000, gt=0)
    margin: float = Field(default=2.0, ge=1)
    rest: Duration = Field(default=60_000_000, ge=0)
    patience: Duration | None = Field(default=None, ge=0)
    """None: until the next decision."""


class PlannerChoices(_Model):
    rewrite: bool = True
    """Apply the rewrite rules (off: run the query as bound)."""
    shuffle_partitions: int = Field(default=2, ge=1)
    trigger: Duration = Field(default=0, ge=0)
    """Time between micro-batches; 0: as fast as they go."""
    parallel: int = Field(default=4, ge=1)
    """How many jobs `run --drain` keeps going at once."""
    sharing: bool = True
    """Plan which window queries share a tree."""
    optimiser: Optimiser = "headrace"
    """The sharing optimiser; `headrace solve sharing --list` names them."""
    balance: float = Field(default=1.0, ge=0, le=100)
    """Least total * maximum^balance: 0 is the lowest total cost, more leans to evenly loaded sites."""
    federation: Literal["off", "auto", "spark", "duckdb"] = "off"
    """What becomes of queries that are in no tree and name no engine: a job on Spark (`off`), a split that
    the planner chooses (`auto`), or all of it on one engine."""
    distribution: Literal["off", "round_robin", "grouping", "ours"] = "off"
    """How jobs of queries that name no site are distributed over the sites (off: all are at the first)."""
    placement: Placement = "exact"
    """Who places joins of streams on sites; `headrace solve placement --list` names them."""
    spread: bool = False
    """Run joins of streams where `plan` places them, and cut streams of other sites where they come from
    (off: every query whole at its site)."""
    rebalance: Rebalance = Rebalance()
    """The rules of `serve --rebalance` and of `rebalance`; commands may be given others."""


class Project(_Model):
    """A whole project file, names resolved."""

    name: str
    root: Path
    """The folder of headrace.yaml; relative paths start here."""
    streams: dict[str, Stream]
    tables: dict[str, Table]
    sites: dict[str, Site]
    links: tuple[Link, ...]
    queries: dict[str, Query]
    planner: PlannerChoices = PlannerChoices()

    @property
    def default_site(self) -> str:
        """Where streams and queries are that name no site: the first one declared, if `local` is not among
        them. It is always in the catalog, and last where it was not declared."""
        local = Site(name="local")
        declared = [name for name, site in self.sites.items() if site != local]
        return "local" if "local" in declared or not declared else declared[0]

    @property
    def distributes(self) -> bool:
        return self.planner.distribution != "off"
