"""What a right project file means."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from headrace.catalog import model
from headrace.catalog.columns import TYPES
from headrace.catalog.load import load_project
from headrace.catalog.model import FileSource, GeneratorSource, Project, RateSource, SinkKind
from headrace.catalog.translate import DURATION_KEYS, PERCENT_KEYS, SOURCES, keys_of
from headrace.errors import UserError
from headrace.plan.types import COLUMN_TYPES, DataType
from headrace.units import format_duration

FULL = """\
# A project that gives every section.
name: full house
streams:
  plugs:
    columns:
      ts: timestamp
      k: text
      v: float64
      n: long
    time: ts
    watermark: 1m 30s
    rate: 20
    site: edge
    source: {kind: files, path: data/in, format: csv, files_per_batch: 2, header: false, delimiter: ;}
  ticks:
    source: {kind: rate, rows_per_second: 5}
  made:
    columns: {ts: datetime, a: int, b: string, c: bool, d: date}
    time: ts
    source:
      kind: generator
      seed: 3
      start: 2024-05-01 12:00:00
      rows: 1000
      files: 4
      disorder: 250ms
      columns:
        a: {kind: uniform, low: 0, high: 9}
        b: {kind: zipf, skew: 1.2, values: [x, y, z], null_share: 0.5}
        c: {kind: choice, values: [true, false]}
        d: {kind: constant, value: 2024-05-01}
tables:
  rooms:
    columns: {room: string, floor: int, area: double, since: timestamp}
    rows:
      - [attic, 2, 30, 2024-05-01 12:00:00]
      - [cellar, -1, 12.5, null]
  prices:
    columns: {item: string, price: double}
    source: {path: prices/*.json, format: json}
sites:
  edge: {endpoint: "local[1]", cpu: 1, memory: 512m, bandwidth: 1m}
  core: {endpoint: "sc://core:15002/;token=abc", memory: 16 GiB}
links:
  - {between: [edge, core], latency: 20ms, bandwidth: 10m}
queries:
  block:
    sql: |
      SELECT *
      FROM plugs
    site: core
    sink: {kind: csv, path: out/block}
  plain: {sql: SELECT 1, sink: console}
  from_file:
    file: queries/q.sql
    sink: json
planner:
  rewrite: false
  trigger: 5 seconds
"""


def load(folder: Path, text: str) -> Project:
    (folder / "headrace.yaml").write_text(text)
    return load_project(folder)


@pytest.fixture
def full(tmp_path: Path) -> Project:
    (tmp_path / "queries").mkdir()
    (tmp_path / "queries" / "q.sql").write_text("SELECT 2\n")
    (tmp_path / "prices").mkdir()
    (tmp_path / "prices" / "a.json").write_text("{}")
    return load(tmp_path, FULL)


def test_streams(full: Project) -> None:
    plugs = full.streams["plugs"]
    assert list(plugs.columns.items()) == [
        ("ts", DataType.TIMESTAMP),
        ("k", DataType.STRING),
        ("v", DataType.DOUBLE),
        ("n", DataType.BIGINT),
    ]
    assert (plugs.name, plugs.time, plugs.site, plugs.watermark, plugs.rate) == (
        "plugs",
        "ts",
        "edge",
        90_000_000,
        20.0,
    )
    source = plugs.source
    assert isinstance(source, FileSource)
    assert (source.path, source.format, source.files_per_batch) == ("data/in", "csv", 2)
    assert (source.header, source.delimiter) == (False, ";")


def test_rate_source_brings_its_columns(full: Project) -> None:
    ticks = full.streams["ticks"]
    assert ticks.columns == {"timestamp": DataType.TIMESTAMP, "value": DataType.BIGINT}
    assert ticks.time == "timestamp"
    assert ticks.source == RateSource(rows_per_second=5)


def test_rate_source_may_repeat_its_columns(tmp_path: Path) -> None:
    body = "{columns: {value: int64, timestamp: timestamp}, time: timestamp, source: {kind: rate}}"
    assert load(tmp_path, f"name: p\nstreams:\n  s: {body}\n").streams["s"].time == "timestamp"


def test_generator(full: Project) -> None:
    source = full.streams["made"].source
    assert isinstance(source, GeneratorSource)
    # 2024-05-01 12:00 UTC is 19,844 days and 12 hours after the epoch.
    assert source.start == (19_844 * 24 + 12) * 3600 * 1_000_000
    assert (source.seed, source.rows, source.files, source.disorder) == (3, 1000, 4, 250_000)
    assert source.columns["b"].values == ("x", "y", "z")
    assert source.columns["c"].values == (True, False)
    assert source.columns["d"].value == "2024-05-01"


def test_smart_plugs(tmp_path: Path) -> None:
    columns = "{house: int, household: int, plug: int, value: double, property: string, ts: timestamp}"
    source = "{kind: generator, shape: smart-plugs, houses: 2}"
    text = f"name: p\nstreams:\n  s: {{columns: {columns}, time: ts, source: {source}}}\n"
    found = load(tmp_path, text).streams["s"].source
    assert isinstance(found, GeneratorSource) and found.houses == 2


def test_tables(full: Project) -> None:
    rooms = full.tables["rooms"].rows
    assert rooms == (("attic", 2, 30.0, "2024-05-01 12:00:00"), ("cellar", -1, 12.5, None))
    assert [type(value) for value in rooms[0]] == [str, int, float, str]
    prices = full.tables["prices"]
    assert prices.rows is None and prices.source is not None and prices.source.kind == "files"


def test_network(full: Project) -> None:
    assert list(full.sites) == ["edge", "core", "local"]
    edge, core = full.sites["edge"], full.sites["core"]
    assert (edge.endpoint, edge.cpu, edge.memory, edge.bandwidth) == ("local[1]", 1.0, 512 << 20, 1 << 20)
    assert (core.endpoint, core.cpu, core.memory) == ("sc://core:15002/;token=abc", 2.0, 16 << 30)
    (link,) = full.links
    assert (link.between, link.latency, link.bandwidth) == (("edge", "core"), 20_000, 10 << 20)


def test_queries(full: Project, tmp_path: Path) -> None:
    block, plain, from_file = (full.queries[name] for name in ("block", "plain", "from_file"))
    assert block.sql == "SELECT *\nFROM plugs\n"
    assert (block.site, block.sink.kind, block.sink.path) == ("core", SinkKind.CSV, "out/block")
    assert (plain.sink.kind, plain.sink.path) == (SinkKind.CONSOLE, None)
    assert (from_file.sql, from_file.sink.kind) == ("SELECT 2\n", SinkKind.JSON)
    assert (from_file.sql_file, from_file.sql_line, from_file.sql_column) == (
        str(tmp_path / "queries" / "q.sql"),
        1,
        1,
    )


def test_the_rest(full: Project, tmp_path: Path) -> None:
    assert (full.name, full.root) == ("full house", tmp_path.resolve())
    assert (full.planner.rewrite, full.planner.trigger, full.planner.parallel) == (False, 5_000_000, 4)


def test_file_or_folder(tmp_path: Path) -> None:
    assert load(tmp_path, "name: p\n") == load_project(tmp_path / "headrace.yaml")


def test_least(tmp_path: Path) -> None:
    project = load(tmp_path, "name: p\nstreams:\nqueries: {}\nlinks:\n")
    assert (project.streams, project.tables, project.queries, project.links) == ({}, {}, {}, ())
    assert list(project.sites) == ["local"] and project.sites["local"].endpoint == "local[*]"


ONE_EACH = "streams:\n  s: {source: {kind: rate}}\nqueries:\n  q: {sql: SELECT 1}\n"


def test_who_names_no_site_is_free_where_jobs_are_distributed(tmp_path: Path) -> None:
    text = "name: p\nsites: {a: {region: north}, b: {}}\nqueries:\n"
    text += "  q: {sql: SELECT 1}\n  r: {sql: SELECT 1, site: a}\n"
    for pattern in ("off", "round_robin", "grouping", "ours"):
        found = load(tmp_path, f"{text}planner: {{distribution: {pattern}}}\n")
        assert [query.free for query in found.queries.values()] == [pattern != "off", False]
        assert [query.site for query in found.queries.values()] == ["a", "a"] and found.default_site == "a"
        assert [site.region for site in found.sites.values()] == ["north", "main", "main"]


@pytest.mark.parametrize(
    ("sites", "default"),
    [
        ("", "local"),
        ("sites: {}\n", "local"),
        ("sites: {b: {}, a: {}}\n", "b"),
        ("sites: {b: {}, local: {endpoint: 'local[3]'}}\n", "local"),
    ],
)
def test_default_site(tmp_path: Path, sites: str, default: str) -> None:
    project = load(tmp_path, f"name: p\n{sites}{ONE_EACH}")
    assert (project.streams["s"].site, project.queries["q"].site) == (default, default)
    assert "local" in project.sites
    if "local[3]" in sites:
        assert project.sites["local"].endpoint == "local[3]"


@pytest.mark.parametrize(
    "endpoint",
    [
        "local",
        "local[4]",
        "local[*]",
        "local[2,3]",
        "yarn",
        "spark://h:7077",
        "k8s://https://h:6443",
        "sc://h",
        "sc://h:15002",
        "sc://h:15002/;use_ssl=true;token=x",
    ],
)
def test_endpoints(tmp_path: Path, endpoint: str) -> None:
    assert (
        load(tmp_path, f"name: p\nsites: {{a: {{endpoint: '{endpoint}'}}}}\n").sites["a"].endpoint == endpoint
    )


SQL = [
    ("block", "    sql: |\n      SELECT x\n        FROM s\n"),
    ("indented block", "    sql: |2\n        SELECT x\n      FROM s\n"),
    ("stripped block with a comment", "    sql: |- # why\n         -- hello\n         SELECT x\n"),
    ("kept block", "    sql: |+\n     -- é\n     SELECT x\n\n"),
    ("blank lines first", "    sql: |\n\n\n      SELECT x\n"),
    ("plain", "    sql: SELECT x  # the SQL ends before this\n"),
    ("single quotes", "    sql: 'SELECT x'\n"),
    ("double quotes", '    sql: "SELECT x"\n'),
    ("on its own line", "    sql:\n      SELECT x\n"),
    ("after the site", "    site: local\n    sql: SELECT x\n"),
]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("body", [pytest.param(body, id=name) for name, body in SQL])
def test_places_in_sql_are_places_in_the_file(tmp_path: Path, body: str, newline: str) -> None:
    """The `x` of the SQL, found through sql_line and sql_column, is the `x` of the file."""
    text = f"name: p\nqueries:\n  q:\n{body}"
    (tmp_path / "headrace.yaml").write_bytes(text.replace("\n", newline).encode())
    query = load_project(tmp_path).queries["q"]
    before = query.sql[: query.sql.index("SELECT x")]
    line = query.sql_line + before.count("\n")
    column = query.sql_column + len(before) - (before.rfind("\n") + 1)
    assert text.split("\n")[line - 1][column - 1 :].startswith("SELECT x")
    assert query.sql_file == str(tmp_path / "headrace.yaml")


@pytest.mark.parametrize(("name", "kind"), TYPES.items())
def test_type_names_in_any_case(tmp_path: Path, name: str, kind: DataType) -> None:
    text = f"name: p\ntables:\n  t: {{columns: {{a: {name.upper()}}}, rows: []}}\n"
    assert load(tmp_path, text).tables["t"].columns == {"a": kind}


def test_every_column_type_has_its_own_name() -> None:
    assert all(TYPES[kind.value] == kind for kind in COLUMN_TYPES)
    assert DataType.INTERVAL not in TYPES.values()


def test_anchors_and_merges(tmp_path: Path) -> None:
    text = """\
name: p
streams:
  a: &base
    columns: {ts: timestamp, v: int}
    time: ts
    watermark: 1s
    source: {kind: files, path: a, format: json}
  b:
    watermark: 2s
    <<: *base
    source: {kind: files, path: b, format: json}
"""
    a, b = load(tmp_path, text).streams.values()
    assert (b.columns, b.time, b.watermark) == (a.columns, "ts", 2_000_000)
    assert isinstance(b.source, FileSource) and b.source.path == "b"


def test_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "headrace.yaml").write_bytes(b"\xef\xbb\xbfname: p\n")
    assert load_project(tmp_path).name == "p"


def test_paths_that_only_look_alike_are_fine(tmp_path: Path) -> None:
    text = """\
name: p
streams:
  s: {columns: {ts: timestamp}, time: ts, source: {kind: files, path: data/*.json, format: json}}
queries:
  a: {sql: SELECT 1, sink: {path: data/out}}
  b: {sql: SELECT 1, sink: {path: data/output}}
  c: {sql: SELECT 1, sink: {path: s3://bucket/c}}
  d: {sql: SELECT 1, sink: memory}
"""
    assert len(load(tmp_path, text).queries) == 4


def test_durations_of_the_model_are_known_to_the_loader() -> None:
    """A duration that is missing from DURATION_KEYS would read a bare 10 as microseconds."""
    kinds: list[type[BaseModel]] = [
        model.Stream,
        model.Link,
        model.PlannerChoices,
        model.Rebalance,
        model.Site,
        *SOURCES.values(),
    ]
    durations = {
        name
        for kind in kinds
        for name in keys_of(kind)
        if any(getattr(extra, "func", None) is format_duration for extra in written(kind.model_fields[name]))
    }
    assert durations == DURATION_KEYS


def written(field: FieldInfo) -> list[object]:
    """How the values of a field are written, be it one that may be left empty."""
    inner = [part for option in get_args(field.annotation) for part in get_args(option)[1:]]
    return [*field.metadata, *inner]


def test_percentages_of_the_model_are_known_to_the_loader() -> None:
    """One that is missing from PERCENT_KEYS would read 0.8 as less than one percent."""
    [mark] = get_args(model.Percent)[1:]
    found = {name for name, field in model.Rebalance.model_fields.items() if mark in written(field)}
    assert found == PERCENT_KEYS


def test_the_rules_of_rebalancing(tmp_path: Path) -> None:
    text = """\
name: p
streams:
  s: {columns: {ts: timestamp}, time: ts, source: {kind: files, path: data, format: json}}
sites: {east: {}, west: {}}
queries: {q: {sql: SELECT ts FROM s}}
planner:
  rebalance:
    {policy: balance, model: memory, every: 10 s, percent_difference: 20%, jobs: [q], sites: [west],
     state: {least: 1m, most: 500m}, degraded: 5 %, least_gain: 0, full: 90%, horizon: 5 minutes, margin: 3,
     rest: 2 minutes, patience: 0}
"""
    found = load(tmp_path, text).planner.rebalance
    assert (found.policy, found.model, found.every) == ("balance", "memory", 10_000_000)
    assert (found.percent_difference, found.degraded, found.least_gain, found.full) == (20, 5, 0, 90)
    assert (found.jobs, found.sites) == (("q",), ("west",))
    assert (found.state.least, found.state.most) == (1 << 20, 500 << 20)
    assert (found.horizon, found.margin, found.rest, found.patience) == (300_000_000, 3, 120_000_000, 0)
    assert load(tmp_path, text.partition("planner:")[0]).planner.rebalance == model.Rebalance()


def test_names_are_whole_names() -> None:
    """pydantic searches for a pattern: without an anchor, "a b" passes because "b" does."""
    with pytest.raises(ValueError, match="pattern"):
        model.Site(name="a b")


def test_folder_without_permission_is_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "headrace.yaml").mkdir()
    with pytest.raises(UserError, match="cannot be read"):
        load_project(tmp_path)
