"""Connections, loads and faults of a table, against examples worked by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headrace.planners.distribution.problem import Link, Operator, Problem, Query, Site, Stream
from headrace.planners.distribution.usage import faults, overloaded, passed, usage

PLAN = Problem(
    (Site("a", cpu=2.0), Site("b", cpu=1.0)),
    (
        Operator("f", ("s",), cpu=0.5, rate=40.0),
        Operator("g", ("t",), cpu=0.25, rate=10.0),
        Operator("j", ("f", "g"), cpu=1.0, rate=20.0, state_bytes=600.0),
        Operator("k", ("j", "f"), cpu=0.5, rate=5.0, width=3.0),
    ),
    (Query("q", ("k",)), Query("r", ("j",), site="b")),
    (Stream("s", 100.0, site="a"), Stream("t", 50.0)),
    connection_cpu=0.01,
    row_cpu=0.001,
)
"""f and g feed j; k reads j and f. Results: of k outside, of j at b."""


def test_a_table_worked_by_hand() -> None:
    used = usage(PLAN, {"f": "a", "g": "a", "j": "b", "k": "b"})
    # Remote: t -> g, f -> j, g -> j, f -> k, k -> client. Not: s -> f (home a), j -> k, j -> r (wanted at b).
    assert (used.connections.streams, used.connections.between, used.connections.results) == (1, 3, 1)
    assert used.connections.total == 5
    assert used.connections.channels == 2  # f travels to b once for j and k
    a, b = used.sites["a"], used.sites["b"]
    assert (a.connections, b.connections) == (4, 4)
    assert used.max_connections == 4
    assert a.cpu == pytest.approx(0.75 + 4 * 0.01 + 0.001 * (50 + 40 + 10 + 40))
    assert b.cpu == pytest.approx(1.5 + 4 * 0.01 + 0.001 * (40 + 10 + 40 + 5))
    assert (a.load, b.load) == pytest.approx((a.cpu / 2, b.cpu))
    assert used.max_load == b.load
    assert (a.network, b.network) == (50.0, 15.0)
    assert (a.memory, b.memory) == (0.0, 600.0)
    assert used.links == {("a", "b"): 50.0}
    assert overloaded(used) == ("b",)


def test_the_sums_of_figures_19_and_20() -> None:
    """Six streams, 20 operators in a tree: cut into 12 pieces 17 connections, into 3 pieces 8."""
    chain = [f"o{i}" for i in range(20)]
    operators = [
        Operator(name, (*([chain[i - 1]] if i else []), *([f"s{i}"] if i < 6 else [])))
        for i, name in enumerate(chain)
    ]
    sites = tuple(Site(f"m{i}") for i in range(3))
    problem = Problem(sites, tuple(operators), (), tuple(Stream(f"s{i}", 40.0) for i in range(6)))
    many = {name: f"m{min(i, 11) % 3}" for i, name in enumerate(chain)}
    few = {name: f"m{i // 7}" for i, name in enumerate(chain)}
    assert usage(problem, many).connections.total == 17
    assert usage(problem, few).connections.total == 8


GOOD = {"f": "a", "g": "a", "j": "b", "k": "b"}


@pytest.mark.parametrize(
    ("table", "wrong"),
    [
        (GOOD, []),
        ({"f": "a", "g": "a", "j": "b"}, ["operator k has no site"]),
        ({**GOOD, "k": "c"}, ["operator k is at c, which does not exist"]),
        ({**GOOD, "x": "a"}, ["x has a site and is no operator"]),
    ],
)
def test_every_operator_has_one_site_that_exists(table: dict[str, str], wrong: list[str]) -> None:
    assert list(faults(PLAN, table)) == wrong


def test_a_site_that_does_not_answer_is_a_fault() -> None:
    dead = replace(PLAN, sites=(PLAN.sites[0], replace(PLAN.sites[1], alive=False)))
    texts = list(faults(dead, GOOD))
    assert texts == [f"operator {name} is at b, which does not answer" for name in "jk"]


def test_a_site_that_is_gone_is_never_the_fullest() -> None:
    """Else no table would be better than another as long as it is fuller than all."""
    gone = replace(PLAN, sites=(*PLAN.sites, Site("c", alive=False, cpu_other=0.9)))
    with_home = replace(gone, streams=(Stream("s", 9e9, site="c"), PLAN.streams[1]))
    table = dict.fromkeys("fgjk", "a")
    assert usage(gone, table).max_load == usage(PLAN, table).max_load
    used = usage(with_home, table)
    assert used.sites["c"].load > used.sites["a"].load == used.max_load
    assert used.max_connections == used.sites["a"].connections


def test_limits_are_told() -> None:
    sites = (replace(PLAN.sites[0], network=49.0, connections=4), replace(PLAN.sites[1], memory=599.0))
    tight = replace(PLAN, sites=sites, links=(Link("a", "b", 30.0), Link("b", "a", 0.0)))
    assert list(faults(tight, GOOD)) == [
        "site a has 49 rows a second of network, and 50 are taken",
        "site b has 599 bytes of memory, and 600 are taken",
        "the link from a to b takes 30, and 50 are sent",
    ]


def test_a_stream_that_is_read_elsewhere_leaves_its_home_once_for_each_site() -> None:
    sites = (Site("a", network=150.0), Site("b"), Site("c"))
    operators = tuple(Operator(f"o{i}", ("s", "t"), rate=1.0) for i in range(4))
    streams = (Stream("s", 100.0, site="a"), Stream("t", 7.0))
    problem = Problem(sites, operators, (), streams, (Link("a", "b", 99.0), Link("a", "c", 100.0)))
    table = {"o0": "a", "o1": "b", "o2": "b", "o3": "c"}
    used = usage(problem, table)
    assert used.links == {("a", "b"): 100.0, ("a", "c"): 100.0}
    assert [used.sites[name].network for name in "abc"] == [200.0, 0.0, 0.0]
    assert list(faults(problem, table)) == [
        "site a has 150 rows a second of network, and 200 are taken",
        "the link from a to b takes 99, and 100 are sent",
    ]


def test_nothing_goes_over_the_links_of_a_site_that_does_not_answer() -> None:
    links = (Link("a", "b", 0.0), Link("b", "a", 0.0))
    dead = replace(PLAN, sites=(PLAN.sites[0], replace(PLAN.sites[1], alive=False)), links=links)
    assert passed(dead, usage(dead, GOOD)) == {}
