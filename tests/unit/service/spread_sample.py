"""Joins over sites with given capacities, and figures that can be added up by hand.

`a` comes from west: 100 rows a second, of which a join reads ts and k, 12 bytes. `b` comes from east: 50 rows
of ts, k and v, 20 bytes. They meet for 2 seconds and have 1,000 keys, so the join gives 100 * 50 * 2 / 1000 =
10 rows a second. What travels of it has all columns that the join reads: 12 + 20 bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from headrace.catalog.load import load_project
from headrace.catalog.model import Project

JOINED = "FROM a JOIN b ON a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 2 SECONDS"
PAIR = f"SELECT a.ts, b.v {JOINED}"
OF_A, OF_B, OF_JOIN = 1200.0, 1000.0, 320.0
"""Bytes per second of what is sent of each."""
HOMES = {"a": "west", "b": "east"}
STAR = {("west", "mid"): "latency: 10ms", ("east", "mid"): "latency: 10ms", ("mid", "south"): "latency: 10ms"}
SPREAD = "planner: {spread: true}\n"
_RATES = {"a": 100, "b": 50, "c": 20}


def text(
    queries: Mapping[str, tuple[str, str]],
    sites: Mapping[str, str],
    links: Mapping[tuple[str, str], str],
    homes: Mapping[str, str],
    more: str,
) -> str:
    lines = ["name: spread", "streams:"]
    for name, site in homes.items():
        lines += [f"  {name}:", "    columns: {ts: timestamp, k: int, v: double}", "    time: ts"]
        lines += [f"    rate: {_RATES[name]}", "    distinct: {k: 1000}", f"    site: {site}"]
        lines += [f"    source: {{kind: files, path: data/{name}, format: parquet}}"]
    lines += ["sites:", *(f"  {name}: {{{body}}}" for name, body in sites.items()), "links:"]
    lines += [f"  - {{between: [{x}, {y}], {body}}}" for (x, y), body in links.items()]
    lines += ["queries:" if queries else ""]
    lines += [f"  {name}: {{site: {site}, sql: '{sql}'}}" for name, (site, sql) in queries.items()]
    return "\n".join(lines) + "\n" + more


def write(
    folder: Path,
    queries: Mapping[str, tuple[str, str]],
    *,
    links: Mapping[tuple[str, str], str] = STAR,
    homes: Mapping[str, str] = HOMES,
    more: str = SPREAD,
    each: str = "",
    **sites: str,
) -> Project:
    """`sites` as YAML by name; those of the links are there anyway, with what `each` says."""
    every = dict.fromkeys([*homes.values(), *(end for link in links for end in link)], each) | sites
    for name in homes:
        (folder / "data" / name).mkdir(parents=True, exist_ok=True)
    (folder / "headrace.yaml").write_text(text(queries, every, links, homes, more))
    return load_project(folder)
