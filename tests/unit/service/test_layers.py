"""On random graphs: no box on another, every arrow down, and no arrow through a box."""

from __future__ import annotations

from itertools import combinations, pairwise

from hypothesis import given
from hypothesis import strategies as st

from headrace.service.layers import Layout, Node, Place, lay_out


@st.composite
def graphs(draw: st.DrawFn) -> list[Node]:
    """Plans: every node but the last is read by a later one, some by several, as shared sub-plans are."""
    size = draw(st.integers(1, 9))
    inputs: list[set[int]] = [set() for _ in range(size)]
    for node in range(size - 1):
        readers = draw(st.sets(st.integers(node + 1, size - 1), min_size=1, max_size=2))
        for reader in readers:
            inputs[reader].add(node)
    heights = [draw(st.integers(20, 120)) for _ in range(size)]
    return [Node(f"n{i}", tuple(f"n{j}" for j in sorted(inputs[i])), 100, heights[i]) for i in range(size)]


def _touch(a: Place, b: Place) -> bool:
    across = a.x < b.x + b.width and b.x < a.x + a.width
    return across and a.y < b.bottom and b.y < a.bottom


@given(graphs())
def test_boxes_never_touch(nodes: list[Node]) -> None:
    layout = lay_out(nodes)
    assert set(layout.places) == {n.id for n in nodes}
    assert not [p for p in combinations(layout.places.values(), 2) if _touch(*p)]


@given(graphs())
def test_everything_is_inside_the_picture(nodes: list[Node]) -> None:
    layout = lay_out(nodes)
    for place in (*layout.places.values(), *(p for way in layout.arrows for p in way)):
        assert place.x >= -1e-6
        assert place.y >= -1e-6
        assert place.x + place.width <= layout.width + 1e-6
        assert place.bottom <= layout.height + 1e-6


@given(graphs())
def test_arrows_go_down_and_join_the_right_boxes(nodes: list[Node]) -> None:
    layout = lay_out(nodes)
    wanted = {(i, n.id) for n in nodes for i in n.inputs}
    names = {place: name for name, place in layout.places.items()}
    assert {(names[way[0]], names[way[-1]]) for way in layout.arrows} == wanted
    for way in layout.arrows:
        assert all(a.bottom < b.y for a, b in pairwise(way))


@given(graphs())
def test_no_arrow_passes_behind_a_box(nodes: list[Node]) -> None:
    layout = lay_out(nodes)
    for slot in _slots(layout):
        assert not [box for box in layout.places.values() if _touch(slot, box)]


def _slots(layout: Layout) -> list[Place]:
    """Where arrows go past a layer."""
    return [place for way in layout.arrows for place in way[1:-1]]


def test_a_chain_is_a_straight_line() -> None:
    nodes = [Node("a", (), 100, 40), Node("b", ("a",), 100, 60), Node("c", ("b",), 100, 20)]
    places = lay_out(nodes).places
    assert {p.middle for p in places.values()} == {50.0}
    assert [p.y for p in places.values()] == [0, 84, 188]
