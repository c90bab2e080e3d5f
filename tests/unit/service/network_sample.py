"""Projects on several sites, and rows for their streams."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa

from headrace.catalog.load import load_project
from headrace.catalog.model import Project
from headrace.plan.placed import PlacedPlan
from headrace.service.binding import plan_query
from headrace.service.placing import Placing, place_joins

COLUMNS = "{ts: timestamp, k: int, m: int, v: double, s: string}"
HOMES = {"a": "west", "b": "north", "c": "east", "d": "east"}
LINKS = (
    ("west", "mid", "10ms"),
    ("north", "mid", "4ms"),
    ("east", "mid", "6ms"),
    ("mid", "south", "20ms"),
    ("east", "south", "9ms"),
)
START = datetime(2024, 5, 1, tzinfo=UTC)


def project(
    folder: Path,
    queries: Mapping[str, tuple[str, str]],
    *,
    links: tuple[tuple[str, str, str], ...] = LINKS,
    homes: Mapping[str, str] = HOMES,
    more: str = "",
) -> Project:
    """Streams a to d; `queries` are site and SQL by name. Links are latencies."""
    lines = ["name: net", "streams:"]
    for number, (name, site) in enumerate(homes.items()):
        lines += [f"  {name}:", f"    columns: {COLUMNS}", "    time: ts", f"    rate: {10 * (number + 1)}"]
        lines += ["    distinct: {k: 5, m: 20}", f"    site: {site}"]
        lines += [f"    source: {{kind: files, path: data/{name}, format: parquet}}"]
    lines += ["tables:", "  rooms: {columns: {k: int, name: string}, rows: [[1, one], [2, two], [3, three]]}"]
    sites = dict.fromkeys([*homes.values(), *(end for link in links for end in link[:2])])
    lines += ["sites:", *(f"  {site}: {{}}" for site in dict.fromkeys([*sites, "south"]))]
    if links:
        lines += ["links:"]
        lines += [f"  - {{between: [{x}, {y}], latency: {latency}}}" for x, y, latency in links]
    lines += ["queries:"]
    for name, (site, sql) in queries.items():
        lines += [
            f"  {name}:",
            f"    site: {site}",
            "    sql: |",
            *(f"      {line}" for line in sql.split("\n")),
        ]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "headrace.yaml").write_text("\n".join(lines) + "\n" + more)
    return load_project(folder)


def whole(found: Project) -> PlacedPlan:
    """Every query as a job of its own."""
    return PlacedPlan(tuple(plan_query(found, query) for query in found.queries.values()))


def placing(found: Project, planner: str | None = None) -> Placing:
    placed = place_joins(found, whole(found), planner)
    assert placed is not None
    return placed


def rows(seed: int, count: int = 60) -> dict[str, pa.Table]:
    """Three minutes of each stream."""
    rng = np.random.default_rng(seed)
    return {name: _rows(rng, count) for name in HOMES} | {
        "rooms": pa.table({"k": pa.array([1, 2, 3], pa.int32()), "name": ["one", "two", "three"]})
    }


def _rows(rng: np.random.Generator, count: int) -> pa.Table:
    times = sorted(float(t) for t in rng.uniform(0, 180, count))
    return pa.table(
        {
            "ts": pa.array([START + timedelta(seconds=t) for t in times], pa.timestamp("us", tz="UTC")),
            "k": pa.array(rng.integers(0, 5, count), pa.int32(), mask=rng.random(count) < 0.1),
            "m": pa.array(rng.integers(0, 20, count), pa.int32()),
            "v": pa.array(rng.normal(0, 1, count), pa.float64()),
            "s": pa.array(rng.choice(["x", "y", "z"], count), pa.string()),
        }
    )
