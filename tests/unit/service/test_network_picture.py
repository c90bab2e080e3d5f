"""The map of a network: well formed, complete, the same every time; near what is cheap, wide what is much."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from itertools import combinations
from math import hypot
from pathlib import Path
from xml.etree import ElementTree

import networkx as nx
import numpy as np
import pytest

from headrace.errors import UserError
from headrace.service.network_picture import (
    MOST_SITES,
    Flow,
    NetworkMap,
    Spot,
    Table,
    Wire,
    amount,
    draw,
    draw_html,
    draw_svg,
)
from headrace.service.placing_labels import Box, Label, put_labels
from headrace.service.placing_layout import lay_out_network

SVG = "{http://www.w3.org/2000/svg}"


def network(size: int, seed: int = 1) -> NetworkMap:
    """A ring with chords, some streams, joins and sinks, and data on cheapest paths."""
    rng = np.random.default_rng(seed)
    graph = nx.connected_watts_strogatz_graph(size, 4, 0.2, seed=seed) if size > 4 else nx.path_graph(size)
    for a, b in graph.edges:
        graph[a][b]["cost"] = float(rng.uniform(1, 20))
    flows = []
    for number in range(max(2, size // 8)):
        a, b = rng.choice(size, 2, replace=False)
        path = nx.dijkstra_path(graph, int(a), int(b), weight="cost")
        rate = float(rng.uniform(1, 1e5))
        flows.append(Flow(tuple(f"n{i}" for i in path), rate, f"stream {number}"))
    spots = tuple(
        Spot(
            f"n{i}",
            ("flights",) if i % 7 == 0 else (),
            ("a, b for q",) * (i % 3) if i % 5 == 0 else (),
            ("q",) if i % 6 == 1 else (),
        )
        for i in range(size)
    )
    wires = tuple(Wire(f"n{a}", f"n{b}", cost) for a, b, cost in graph.edges(data="cost"))
    return NetworkMap("a map", spots, wires, tuple(flows), "B/s", ("a note",))


def root(text: str) -> ElementTree.Element:
    return ElementTree.fromstring(text)


def titles(text: str) -> list[str]:
    return [title.text or "" for title in root(text).iter(f"{SVG}title")]


@pytest.mark.parametrize("size", [1, 2, 3, 20, 128])
def test_every_site_and_link_is_there(size: int) -> None:
    found = network(size) if size > 1 else NetworkMap("one", (Spot("n0"),), (), ())
    text = draw_svg(found)
    told = titles(text)
    for spot in found.spots:
        assert sum(title.split("\n")[0] == spot.name for title in told) == 1
    for wire in found.wires:
        assert f"{wire.a} - {wire.b}: cost {wire.cost:.4g}" in told
    shown = [element.text for element in root(text).iter(f"{SVG}text")]
    if size <= 20:
        assert {spot.name for spot in found.spots} <= set(shown)


def test_the_same_every_time() -> None:
    assert draw_svg(network(60)) == draw_svg(network(60))


def test_all_that_passes_a_link_is_told_and_wider_with_more() -> None:
    flows = (
        Flow(("a", "b", "c"), 900.0, "much"),
        Flow(("b", "c"), 100.0, "some more"),
        Flow(("c", "b"), 10.0, "back"),
    )
    wires = (Wire("a", "b", 1.0), Wire("b", "c", 1.0))
    text = draw_svg(NetworkMap("x", (Spot("a"), Spot("b"), Spot("c")), wires, flows, "B/s"))
    groups = {
        (group.find(f"{SVG}title").text or "").split("\n")[0]: group  # type: ignore[union-attr]
        for group in root(text).iter(f"{SVG}g")
        if group.find(f"{SVG}line") is not None and group.find(f"{SVG}title") is not None
    }
    assert set(groups) == {"a to b: 900 B/s", "b to c: 1 kB/s", "c to b: 10 B/s"}
    wide = {name: float(group.find(f"{SVG}line").attrib["stroke-width"]) for name, group in groups.items()}  # type: ignore[union-attr]
    assert wide["b to c: 1 kB/s"] > wide["a to b: 900 B/s"] > wide["c to b: 10 B/s"]
    assert any("much\nsome more" in title for title in titles(text))


def test_names_cannot_break_out() -> None:
    evil = '<script>alert("x")</script>&'
    text = draw_svg(NetworkMap(evil, (Spot(evil, (evil,), (evil,), (evil,)),), (), ()))
    assert "<script>" not in text
    assert root(text) is not None
    page = draw_html(NetworkMap(evil, (Spot("a"),), (), ()), [Table(evil, (evil,), ((evil,),))])
    assert "<script>" not in page


class _Balanced(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta",):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Opens nothing."""

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_page_is_well_formed_and_needs_nothing_else() -> None:
    page = draw_html(network(20), [Table("joins", ("join", "site"), (("j1", "n3"),))])
    parser = _Balanced()
    parser.feed(page)
    assert parser.open == []
    assert "<td>j1</td><td>n3</td>" in page
    assert re.findall(r"(?:src|href)=", page) == []
    assert "prefers-color-scheme:dark" in page


def test_by_the_ending_of_the_file() -> None:
    found = network(3)
    assert draw(found, Path("x.svg")).startswith("<svg")
    assert draw(found, Path("x.HTML")).startswith("<!doctype html>")
    with pytest.raises(UserError, match="neither"):
        draw(found, Path("x.png"))


def test_large_networks_are_drawn_in_part() -> None:
    size = 3 * MOST_SITES
    wires = tuple(Wire(f"n{i}", f"n{i + 1}", 1.0) for i in range(size - 1))
    spots = tuple(Spot(f"n{i}", sinks=("q",) if i == 500 else ()) for i in range(size))
    flows = (Flow(tuple(f"n{i}" for i in range(400, 501)), 5.0, "far"),)
    text = draw_svg(NetworkMap("x", spots, wires, flows))
    assert f"{size - 101} of {size} sites are not drawn" in text
    assert any(title.startswith("n450") for title in titles(text))


def test_a_complete_network_shows_only_what_data_passes() -> None:
    names = [f"n{i}" for i in range(20)]
    wires = tuple(Wire(a, b, 1.0) for a, b in combinations(names, 2))
    found = NetworkMap("x", tuple(map(Spot, names)), wires, (Flow(("n0", "n7"), 1.0, "w"),))
    assert sum(" - " in title for title in titles(draw_svg(found))) == 1


def test_cheap_is_near() -> None:
    """On a line of sites what costs more is farther; on random trees the page agrees with the costs."""
    places = lay_out_network(6, [(i, i + 1, 1.0 + i) for i in range(5)], (900, 500), 20)
    far = [hypot(*(place - places[0])) for place in places]
    assert far == sorted(far)
    for seed in range(5):
        assert _agreement(seed) > 0.8


def _agreement(seed: int) -> float:
    """Rank correlation of cost and distance on the page, over all pairs."""
    rng = np.random.default_rng(seed)
    size = 25
    links = [(i, int(rng.integers(i)), float(rng.uniform(1, 10))) for i in range(1, size)]
    graph = nx.Graph()
    graph.add_weighted_edges_from(links)
    costs = dict(nx.all_pairs_dijkstra_path_length(graph))
    places = lay_out_network(size, links, (900, 700), 20)
    pairs = list(combinations(range(size), 2))
    far = [costs[a][b] for a, b in pairs]
    seen = [hypot(*(places[a] - places[b])) for a, b in pairs]
    first, second = (np.argsort(np.argsort(values)) for values in (far, seen))
    return float(np.corrcoef(first, second)[0, 1])


@pytest.mark.parametrize("links", [[], [(0, 1, 0.0)], [(0, 1, 5.0), (2, 3, 5.0)]])
def test_sites_stand_apart_inside_the_page(links: list[tuple[int, int, float]]) -> None:
    """Also without links, with links that cost nothing, and in two parts."""
    places = lay_out_network(8, links, (900, 600), 50)
    assert np.isfinite(places).all()
    assert (places >= -1e-6).all() and (places[:, 0] <= 900.001).all() and (places[:, 1] <= 600.001).all()
    gaps = [hypot(*(places[a] - places[b])) for a, b in combinations(range(8), 2)]
    assert min(gaps) > 40


def test_labels_do_not_cover_each_other() -> None:
    labels = [
        Label(f"site{i}", ("a stream",), 100.0 + 40 * (i % 6), 100.0 + 34 * (i // 6), 8) for i in range(24)
    ]
    discs = [Box(label.x - 8, label.y - 8, label.x + 8, label.y + 8) for label in labels]
    put = put_labels(labels, discs, [], (800, 600), must=False)
    boxes = [Box(x, y - 10, x + label.width, y - 10 + label.height) for label, x, y in put]
    assert len(put) > 8
    assert not any(a.meets(b) for a, b in combinations(boxes, 2))
    assert not any(box.meets(disc) for box in boxes for disc in discs)
    assert len(put_labels(labels, discs, [], (800, 600), must=True)) == 24


def test_labels_keep_off_lines() -> None:
    label = Label("name", (), 100.0, 100.0, 5.0)
    below = ((100.0, 100.0), (100.0, 300.0))
    ((_, x, y),) = put_labels([label], [], [below], (400, 400), must=True)
    assert not (x < 100 < x + label.width and y > 100)


def test_amounts() -> None:
    assert amount(0.5, "B/s") == "0.5 B/s"
    assert amount(1234.5, "B/s") == "1.23 kB/s"
    assert amount(2.5e9) == "2.5 G"
