"""Networks from text: what is read, and what is refused where."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import NotSupported, UserError
from headrace.planners.placement import loaders
from headrace.planners.placement.loaders import gml, graphml, latency_matrix, network_from
from headrace.planners.placement.network import prepare
from headrace.planners.placement.problem import Network

XMLNS = 'xmlns="http://graphml.graphdrawing.org/xmlns"'


def costs_of(network: Network) -> list[list[float]]:
    assert network.costs is not None
    return [[float(cost) for cost in row] for row in network.costs]


@pytest.mark.parametrize(
    "text",
    [
        "0\t1.5\t0\n2\t0\t3\n4\t5\t0\n",
        "0,1.5,\n2,0,3\n4,5,0",
        "0;1.5;-\n2;0;3\n4;5;0",
        "  0 1.5 nan\n2 0 3\n\n4   5 0",
        "# measured\n0 1.5 inf\n2 0 3\n4 5 9\n",
        "0\t1.5\t\t\n2\t0\t3\t\n4\t5\t0\t\n",
    ],
)
def test_matrices_of_all_kinds_are_the_same(text: str) -> None:
    network = latency_matrix(text)
    assert network.sites == (0, 1, 2)
    assert costs_of(network) == [[0, 1.5, inf], [2, 0, 3], [4, 5, 0]]


@pytest.mark.parametrize(
    "text",
    [
        "a,b\n0,1\n2,0",
        "site,a,b\na,0,1\nb,2,0",
        ",a,b\na,0,1\nb,2,0",
        '"a"\t"b"\n0\t1\n2\t0',
        "a b\na 0 1\nb 2 0",
    ],
)
def test_names(text: str) -> None:
    network = latency_matrix(text)
    assert network.sites == ("a", "b") and costs_of(network) == [[0, 1], [2, 0]]


def test_both_directions_alike_become_links() -> None:
    assert latency_matrix("0 1 0\n1 0 2\n0 2 0") == Network((0, 1, 2), ((0, 1, 1.0), (1, 2, 2.0)))


def test_symmetric_is_the_mean_of_what_was_measured() -> None:
    network = latency_matrix("0 1 0\n3 0 7\n0 0 0", symmetric=True)
    assert network == Network((0, 1, 2), ((0, 1, 2.0), (1, 2, 7.0)))


def test_not_measured_is_no_link_but_may_have_a_path() -> None:
    prepared = prepare(latency_matrix("0 1 0\n1 0 2\n9 2 0"))
    assert prepared.distance(0, 2) == 3.0
    assert prepared.distance(2, 0) == 3.0


@pytest.mark.parametrize(
    ("text", "message", "where"),
    [
        ("", "empty", (1, 1)),
        ("# nothing\n", "empty", (1, 1)),
        ("0 1\n1 x", '"x" is not a number', (2, 3)),
        ("0\t1\n# c\n-1.5\t0", "cannot be -1.5", (3, 1)),
        ("0 1\n1 1_0", "not a number", (2, 3)),
        ("0 1\n1", "not square: row 2 has 1", (2, 1)),
        ("0 1 2\n1 0 3", "not square: row 1 has 3", (1, 5)),
        ("a,b\n0,1\n1,0\n2,2", "not square: row 3", (4, 3)),
        ("a,b,c\n0,1,2\n1,0,3", "3 columns, 2 rows", (3, 1)),
        ("a,b,a\n0,1,2\n1,0,3\n2,3,0", '"a" is empty or there twice', (1, 1)),
        ("#\n,a,b\na,0,1\nc,1,0", 'should be "b"', (4, 1)),
        ("a b", "no rows", (1, 1)),
    ],
)
def test_wrong_matrices(text: str, message: str, where: tuple[int, int]) -> None:
    with pytest.raises(UserError, match=message) as caught:
        latency_matrix(text, file="m.tsv")
    span = caught.value.span
    assert span is not None and (span.file, span.line, span.column) == ("m.tsv", *where)


@given(st.integers(1, 6), st.integers(0, 2**32 - 1), st.sampled_from(["\t", ",", " ", ";"]))
def test_a_written_matrix_is_read_back(size: int, seed: int, separator: str) -> None:
    rng = np.random.default_rng(seed)
    costs = np.round(rng.uniform(0.1, 9, (size, size)), 3)
    np.fill_diagonal(costs, 0)
    network = latency_matrix("\n".join(separator.join(map(str, row)) for row in costs.tolist()))
    if np.array_equal(costs, costs.T):
        assert network.costs is None
    else:
        assert costs_of(network) == costs.tolist()


def written(kind: str, graph: nx.Graph) -> str:
    return "\n".join(nx.generate_graphml(graph) if kind == "graphml" else nx.generate_gml(graph))


@pytest.mark.parametrize("kind", ["graphml", "gml"])
@pytest.mark.parametrize("attribute", ["cost", "weight", "Latency"])
def test_undirected_graphs(kind: str, attribute: str) -> None:
    graph = nx.gnm_random_graph(12, 25, seed=4)
    for i, (a, b) in enumerate(graph.edges):
        graph[a][b][attribute] = 1.5 + i
    network = network_from(written(kind, graph), f"net.{kind}")
    assert [str(site) for site in network.sites] == [str(node) for node in graph]
    assert {(a, b): c for a, b, c in network.links} == {
        (min(a, b), max(a, b)): c for a, b, c in graph.edges(data=attribute)
    }


@pytest.mark.parametrize("kind", ["graphml", "gml"])
def test_directed_graphs_become_a_matrix(kind: str) -> None:
    graph = nx.DiGraph()
    graph.add_edge("a", "b", cost=1.0)
    graph.add_edge("b", "a", cost=2.0)
    graph.add_edge("b", "c", cost=3.0)
    graph.add_edge("c", "c", cost=9.0)
    network = network_from(written(kind, graph), f"net.{kind}")
    assert network.sites == ("a", "b", "c")
    assert costs_of(network) == [[0, 1, inf], [2, 0, 3], [inf, inf, 0]]


def test_of_parallel_links_the_cheapest() -> None:
    graph = nx.MultiGraph()
    for cost in (4.0, 2.0, 3.0):
        graph.add_edge("a", "b", cost=cost)
    assert graphml(written("graphml", graph)).links == ((0, 1, 2.0),)


def test_the_attribute_can_be_named() -> None:
    graph = nx.Graph()
    graph.add_edge("a", "b", cost=1.0, delay=7.0)
    assert graphml(written("graphml", graph), cost="delay").links == ((0, 1, 7.0),)
    with pytest.raises(UserError, match="no price") as caught:
        graphml(written("graphml", graph), cost="price")
    assert caught.value.hint == "Their attributes: cost, delay."


def test_labels_name_sites_unless_two_are_the_same() -> None:
    nodes = 'node [ id 5 label "{}" ] node [ id 7 label "{}" ]'
    edge = "edge [ source 5 target 7 cost 2 ]"
    assert gml(f"graph [ {nodes.format('x', 'y')} {edge} ]").sites == ("x", "y")
    assert gml(f"graph [ {nodes.format('x', 'x')} {edge} ]").sites == (5, 7)


TWO = '<node id="a"/><node id="b"/>'
KEY = '<key id="w" for="edge" attr.name="weight" attr.type="string"/>'


def xml(body: str, keys: str = KEY) -> str:
    return f'<graphml {XMLNS}>{keys}<graph edgedefault="undirected">{body}</graph></graphml>'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<graphml>", "is not XML"),
        ("<a/>", "is not a GraphML graph"),
        (xml(""), "has no sites"),
        (xml("<node/>"), "without an id"),
        (xml(TWO + '<edge source="a" target="b"/>'), "have no cost, weight or latency"),
        (xml(TWO + '<edge source="a" target="b"><data key="w">far</data></edge>'), 'weight is "far"'),
        (xml(TWO + '<edge source="a" target="b"><data key="w">0</data></edge>'), "must be above 0"),
        (xml(TWO + '<edge source="a" target="b"><data key="w">nan</data></edge>'), "must be above 0"),
        (xml(TWO + '<edge source="a" target="b"><data key="v">1</data></edge>'), "is not a GraphML graph"),
        (
            xml(
                TWO + '<node id="c"/><edge source="a" target="b"><data key="w">1</data></edge>'
                '<edge source="b" target="c"/>'
            ),
            "from b to c .* has no weight",
        ),
    ],
)
def test_wrong_graphml(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        graphml(text)


LAUGHS = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 10))


@pytest.mark.parametrize(
    "declared",
    [
        f'<!DOCTYPE x [<!ENTITY l0 "ha">{LAUGHS}]>',
        '<!DOCTYPE x [<!ENTITY l9 SYSTEM "file:///etc/passwd">]>',
        '<!DOCTYPE x SYSTEM "http://127.0.0.1:9/x.dtd">',
    ],
)
def test_entities_are_refused_before_they_are_expanded(declared: str) -> None:
    text = f'<?xml version="1.0"?>\n{declared}<graphml {XMLNS}>&l9;</graphml>'
    with pytest.raises(NotSupported, match="document type") as caught:
        graphml(text)
    assert caught.value.span is not None and caught.value.span.line == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not a GML graph"),
        ("graph [ node [ id 1 ]", "is not a GML graph"),
        ("graph [ " + "a [ " * 5000, "is not a GML graph"),
        ("graph [ ]", "has no sites"),
        ("graph [ node [ id 1 ] edge [ source 1 target 2 cost 1 ] ]", "is not a GML graph"),
        ("graph [ node [ id 1 ] node [ id 2 ] edge [ source 1 target 2 cost -1 ] ]", "must be above 0"),
    ],
)
def test_wrong_gml(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        gml(text)


def test_a_place_in_gml() -> None:
    with pytest.raises(UserError) as caught:
        gml("graph [\n  node [ id 1 ]\n  edge ]", file="n.gml")
    assert caught.value.span is not None and caught.value.span.where() == "n.gml:3:8"


def test_a_large_directed_graph_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loaders, "MOST_IN_MATRIX", 2)
    graph = nx.DiGraph([("a", "b", {"cost": 1.0}), ("b", "c", {"cost": 1.0})])
    with pytest.raises(NotSupported, match="too large"):
        graphml(written("graphml", graph))


@pytest.mark.parametrize("make", [lambda: network_from("", "net.pickle"), lambda: network_from("", "net")])
def test_unknown_kinds(make: Callable[[], Network]) -> None:
    with pytest.raises(NotSupported, match="no known kind"):
        make()


def test_the_kind_can_be_said() -> None:
    assert network_from("0 1\n1 0", "measured", format="txt").size == 2
