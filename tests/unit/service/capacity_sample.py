"""A project of two or more sites with given capacities, and prices that make sums easy.

Stream `s` comes from `edge`: 1,000 rows a second of 20 bytes; `t` has other rows. A query without a window is
a job of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from headrace.catalog.load import load_project
from headrace.catalog.model import Project
from headrace.cost.windows import DEFAULTS
from headrace.service.calibration_file import save_calibration
from tests.unit.service.test_calibration_file import calibration

ALL = "SELECT ts, k, v FROM s"
"""20 kB/s."""
TWO = "SELECT ts, k FROM s"
"""12 kB/s."""
MINUTE = "SELECT k, count(*) AS n FROM s [RANGE 60 SECONDS SLIDE 10 SECONDS] GROUP BY k"
FIVE = "SELECT k, max(k) AS m FROM s [RANGE 5 MINUTES SLIDE 10 SECONDS] GROUP BY k"
FREE = dict.fromkeys(DEFAULTS.to_dict(), 1e-15)
"""A tree must cost something."""
EDGE_CORE = "links:\n  - {between: [edge, core]}\n"
_STREAM = """\
name: sized
streams:
  s:
    columns: {ts: timestamp, k: int, v: double}
    time: ts
    site: edge
    source: {kind: files, path: input, format: json}
  t:
    columns: {ts: timestamp, k: int}
    time: ts
    site: edge
    source: {kind: files, path: input, format: json}
"""


def text(
    sites: Mapping[str, str], queries: Mapping[str, tuple[str, str]], links: str = EDGE_CORE, more: str = ""
) -> str:
    """`sites` as YAML by name, `queries` as site and SQL."""
    lines = [_STREAM, "sites:\n", *(f"  {name}: {{{body}}}\n" for name, body in sites.items()), links]
    lines += ["queries:\n" if queries else ""]
    lines += [f"  {n}: {{site: {site}, sql: '{sql}'}}\n" for n, (site, sql) in queries.items()]
    return "".join(lines) + more


def write(
    folder: Path,
    queries: Mapping[str, tuple[str, str]],
    *,
    links: str = EDGE_CORE,
    more: str = "",
    **sites: str,
) -> Project:
    (folder / "input").mkdir(parents=True, exist_ok=True)
    written = text({"edge": "", "core": "", **sites}, queries, links, more)
    (folder / "headrace.yaml").write_text(written)
    return load_project(folder)


def priced(project: Project, site: str, **prices: float) -> None:
    """Calibrate a site: all is free but this."""
    found = calibration(costs=FREE | prices, endpoint=project.sites[site].endpoint)
    save_calibration(project, site, found)
