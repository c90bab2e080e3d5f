"""`headrace plan` of a project on several sites: the deployment in words, as JSON and as a map."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.unit.cli.entry import call, make_project
from tests.unit.service.network_sample import project

Capture = pytest.CaptureFixture[str]
JOIN = "FROM a [RANGE 30 SECONDS] AS a JOIN b [RANGE 20 SECONDS] AS b ON a.k = b.k"
QUERIES = {
    "pair": ("south", f"SELECT a.ts, a.v, b.s {JOIN}"),
    "again": ("south", f"SELECT a.ts, b.m {JOIN} WHERE a.s = 'x'"),
    "one": ("south", "SELECT v FROM c WHERE k = 2"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return project(tmp_path / "net", QUERIES).root


def test_the_deployment_in_words(folder: Path, capsys: Capture) -> None:
    done = call(capsys, "plan", folder, "--brief")
    assert (done.code, done.err) == (0, "")
    assert "placement: 1 join for 2 queries at 1 site (exact, each query as cheaply as can be" in done.out
    assert "B in flight instead of" in done.out
    assert "join-" in done.out and "pair, again" in done.out
    assert "it reads one stream" in done.out
    assert "`run` keeps each query whole at its own site" in done.out
    assert "of its bandwidth" not in done.out
    assert "west - mid" in call(capsys, "plan", folder).out


def test_as_json(folder: Path, capsys: Capture) -> None:
    placement = call(capsys, "plan", folder, "--json").json["placement"]
    (join,) = placement["joins"]
    assert join["queries"] == ["pair", "again"] and join["streams"] == ["a", "b"]
    assert join["text"].splitlines()[-1].startswith("n4 := IntervalJoin n1 n3: on a/k = b/k within ")
    assert placement["planner"] == "exact" and placement["certified"]
    assert placement["cost"] < placement["alone_cost"] <= placement["at_sinks_cost"]
    assert [whole["job"] for whole in placement["whole"]] == ["one"]


@pytest.mark.parametrize("planner", ["plan-then-deploy", "top-down"])
def test_another_planner(folder: Path, capsys: Capture, planner: str) -> None:
    best = call(capsys, "plan", folder, "--json").json["placement"]
    other = call(capsys, "plan", folder, "--json", "--placement", planner).json["placement"]
    assert other["planner"] == planner and not other["certified"]
    assert other["cost"] >= best["cost"] * (1 - 1e-9)


def test_maps(folder: Path, tmp_path: Path, capsys: Capture) -> None:
    svg, html = tmp_path / "map.svg", tmp_path / "map.html"
    assert call(capsys, "plan", folder, "--map", svg).code == 0
    assert call(capsys, "plan", folder, "--map", html, "--json").code == 0
    told = [e.text or "" for e in ElementTree.parse(svg).iter("{http://www.w3.org/2000/svg}title")]
    assert any("joins a, b for pair, again" in title for title in told)
    assert "<h2>joins</h2>" in html.read_text()


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("--map", "{tmp}/map.png"), "neither an .svg nor an .html"),
        (("--map", "{tmp}/no/map.svg"), "there is no such folder"),
        (("--placement", "exat"), 'Did you mean "exact"?'),
        (("--placement", ""), "no placement planner"),
    ],
)
def test_bad_options(folder: Path, tmp_path: Path, capsys: Capture, args: tuple[str, ...], says: str) -> None:
    done = call(capsys, "plan", folder, *(arg.replace("{tmp}", str(tmp_path)) for arg in args))
    assert (done.code, done.out) == (2, "")
    assert says in done.err
    assert not list(tmp_path.glob("map.*"))


def test_explain_says_where_a_query_is_joined(folder: Path, capsys: Capture) -> None:
    placed = call(capsys, "explain", "again", folder).out.split("\nplacement\n")[1].splitlines()
    assert placed[0].startswith("join-") and placed[0].endswith(", also for pair")
    assert placed[1].startswith("result at south: join-")
    whole = call(capsys, "explain", "one", folder).out.split("\nplacement\n")[1].splitlines()
    assert whole == ["whole at south: it reads one stream; c from east 600 B/s"]


def test_one_site_has_no_map(tmp_path: Path, capsys: Capture) -> None:
    single = make_project(tmp_path / "p")
    done = call(capsys, "plan", single, "--map", tmp_path / "map.svg")
    assert (done.code, done.out) == (2, "")
    assert "no network to draw" in done.err
    assert not (tmp_path / "map.svg").exists()
    assert "placement" not in call(capsys, "plan", single, "--json").json


def test_who_runs_where(tmp_path: Path, capsys: Capture) -> None:
    """Which site each job gets, in words and as data."""
    head = "name: p\nplanner: {distribution: grouping}\nsites: {a: {region: north}, b: {region: south}}\n"
    head += "streams:\n  s: {columns: {ts: timestamp, v: int}, time: ts, "
    head += "source: {kind: files, path: in, format: json}}\nqueries:\n"
    queries = "".join(f"  q{i}: {{sql: SELECT ts FROM s WHERE v > {i}}}\n" for i in range(3))
    (tmp_path / "headrace.yaml").write_text(f"{head}{queries}  p: {{site: b, sql: SELECT ts FROM s}}\n")
    told = call(capsys, "plan", str(tmp_path), "--brief").out
    assert "distribution by grouping: 4 jobs on 2 sites in 2 regions, " in told
    assert "p names it" in told and "(south)" in told and "grouping: as many jobs at each site" in told
    data = call(capsys, "plan", str(tmp_path), "--json").json["distribution"]
    assert [job["site"] for job in data["jobs"]] == ["a", "a", "b", "b"]
    assert [(site["site"], site["jobs"]) for site in data["sites"]] == [("a", 2), ("b", 2)]
