"""The picture of trees: right edges, well-formed, every query named, nothing outside its frame."""

from __future__ import annotations

import random
import xml.etree.ElementTree as ET
from fractions import Fraction
from pathlib import Path

import pytest

from headrace.catalog.model import Project
from headrace.plan.shared import Tree
from headrace.service.explain import SharedTreeData, tree_data
from headrace.service.picture import html, svg
from headrace.service.sharing_picture import MOST_QUERIES, first_edges, tree_frames
from tests.unit.plan.building import READINGS
from tests.unit.plan.test_shared import counted, member, tree
from tests.unit.service.sample import project
from tests.unit.service.test_picture import _jobs

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("seed", range(20))
def test_first_edges_are_those_of_a_walk_along_time(seed: int) -> None:
    draw = random.Random(seed)
    windows = [(draw.randint(1, 40), draw.randint(1, 12)) for _ in range(draw.randint(1, 5))]
    walked = [t for t in range(2000) if any(t % s in (0, r % s) for r, s in windows)]
    assert first_edges(windows, 40) == walked[:40]


def _project(count: int) -> Project:
    return project(Path(), ("a", "b", *(f"q{i}" for i in range(count))))


def _data(count: int = 2) -> SharedTreeData:
    if count == 2:
        return tree_data(_project(0), "t0", tree())
    members = tuple(member(f"q{i}") for i in range(count))
    made = Tree("local", members, Fraction(1, 10), Fraction(1, 11), 5.0, 50.0, 20.0)
    return tree_data(_project(count), "t1", made)


def _texts(element: ET.Element) -> list[str]:
    return [t.text or "" for t in element.iter(f"{SVG}text")]


def test_what_a_tree_says() -> None:
    texts = _texts(ET.fromstring(svg([], [_data()])))
    for wanted in ("tree t0 on local: 2 queries", "readings where v > 2.5 by (k)", "a", "60s/10s", "50s/20s"):
        assert wanted in texts
    assert {"7 cores", "9 with a tree each", "11 as Spark's own windows"} <= set(texts)


def test_filters_and_roll_ups_are_marked_and_told() -> None:
    """Red: a filter of its own. Violet: coarser keys."""
    mixed = tree(member("a"), member("b", counted(rows=READINGS, keys=("k", "s"))))
    root = ET.fromstring(svg([], [tree_data(_project(0), "t0", mixed)]))
    fills = [r.get("fill") for r in root.iter(f"{SVG}rect")]
    assert (fills.count("#a24444"), fills.count("#6a3ca0")) == (1, 1)
    told = [t.text for t in root.iter(f"{SVG}title")]
    assert told[0] == "a: range 60s, slide 10s, sum(v) where v > 2.5, rolled up to (k)"
    assert told[1] == "b: range 60s, slide 10s, sum(v)"


def test_bars_are_as_long_as_costs() -> None:
    """One scale over all trees: 50 against 9."""
    root = ET.fromstring(svg([], [_data(), _data(3)]))
    grey = [float(r.get("width", "0")) for r in root.iter(f"{SVG}rect") if r.get("fill") == "#b9bfc8"]
    assert grey[1] / grey[0] == pytest.approx(50 / 9, rel=0.01)


def test_many_queries_are_counted_not_drawn() -> None:
    texts = _texts(ET.fromstring(svg([], [_data(MOST_QUERIES + 5)])))
    assert "... and 5 more queries" in texts
    assert f"q{MOST_QUERIES}" not in texts
    assert any(text.startswith("at most 0.1 fragments/s") for text in texts)


def test_nothing_leaves_its_frame() -> None:
    for frame in tree_frames([_data(), _data(9)]):
        for part in ET.fromstring(f"<g>{frame.body}</g>").iter():
            x, y = float(part.get("x", "0")), float(part.get("y", "0"))
            assert 0 <= x + float(part.get("width", "0")) <= frame.width
            assert 0 <= y + float(part.get("height", "0")) <= frame.height


def test_trees_stand_above_the_jobs(tmp_path: Path) -> None:
    drawn = ET.fromstring(svg(_jobs(tmp_path), [_data()]))
    tops = [float(g.get("transform", "").split(",")[1].rstrip(")")) for g in drawn.findall(f"{SVG}g")]
    assert len(tops) == 3
    assert tops[0] < tops[1] == tops[2]


def test_the_page_tells_the_trees_and_escapes_them(tmp_path: Path) -> None:
    data = _data()
    data["text"] = data["rows"] = "<script>"
    page = html("plan", _jobs(tmp_path), [data])
    assert "<script>" not in page and page.count("&lt;script&gt;") == 2
