"""Loads against counts made by hand; prices against what they are said to be of."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headrace.catalog.model import Project, Site
from headrace.cost.windows import DEFAULTS, WindowCosts, predict
from headrace.plan.placed import TreeMember
from headrace.service.loads import SCANNED, Loads
from tests.unit.service.test_sharing import project
from tests.unit.service.test_weaving import member

MINUTE = "[RANGE 1 MINUTE SLIDE 1 MINUTE]"
SQL = {
    "sum": f"SELECT k, sum(v) AS x FROM files {MINUTE} GROUP BY k",
    "both": "SELECT k, sum(v) AS x, max(v) AS y FROM files [RANGE 90 SECONDS SLIDE 1 MINUTE] GROUP BY k",
    "three": f"SELECT sum(v) AS x FROM files {MINUTE} WHERE k = 3",
    "high": f"SELECT max(v) AS x, count(*) AS n FROM files {MINUTE} WHERE k = 3 AND v > 1.0",
    "count": f"SELECT count(*) AS n FROM files {MINUTE} WHERE k = 4",
}
FREE = WindowCosts.from_dict(dict.fromkeys(DEFAULTS.to_dict(), 0.0))


def made(
    *names: str, costs: WindowCosts = DEFAULTS, of: Project | None = None
) -> tuple[Loads, list[TreeMember]]:
    """The sample's stream gives 1000 rows a second; a column has 100 values."""
    found = of or project({})
    members = [member(found, name, SQL[name]) for name in names]
    return Loads(found, "local", members, costs), members


@pytest.mark.parametrize(
    ("names", "rate", "arguments", "edges", "groups"),
    [
        (["sum"], 1000, 1, 1 / 60, 100),
        (["sum", "both"], 1000, 1, 2 / 60, 100),
        # A filter that all have is not counted in arguments: the rows are filtered before.
        (["three"], 10, 1, 1 / 60, 1),
        # v of rows with k = 3, and how many of them there are; and v of all rows.
        (["sum", "three"], 1000, 3, 1 / 60, 100),
        # v where k = 3; v, and how many, where v > 1.0 too.
        (["three", "high"], 1000 * (1 - 0.99 * (1 - 1 / 300)), 3, 1 / 60, 1),
        (["three", "count"], 1000 * (1 - 0.99 * 0.99), 3, 1 / 60, 1),
    ],
)
def test_loads_by_hand(names: list[str], rate: float, arguments: int, edges: float, groups: float) -> None:
    loads, members = made(*names)
    load = loads.load(members)
    assert (load.rate, load.edge_rate) == pytest.approx((rate, edges))
    assert (load.arguments, load.groups, len(load.queries)) == (arguments, groups, len(names))
    assert float(loads.edges(members).high) == pytest.approx(edges)


def test_every_member_gets_its_own_rows_whatever_tree_it_is_in() -> None:
    alone, one = made("three")
    together, all_ = made("sum", "three")
    wanted = [one_.rate * q.selectivity for one_ in [alone.load(one)] for q in one_.queries]
    load = together.load(all_)
    assert load.rate * load.queries[1].selectivity == pytest.approx(wanted[0])


def test_rows_that_are_filtered_away_are_still_read() -> None:
    loads, members = made("three", costs=replace(FREE, row=1.0))
    assert loads.cores(members) == pytest.approx(10 + 990 * SCANNED)


def test_one_bucket_leaves_cores_idle() -> None:
    """Four buckets on a site of eight cores: three of them have nothing to do."""
    big = project({}, (Site(name="local", cpu=8),), shuffle_partitions=4)
    costs = replace(FREE, cell=1.0, row=1.0)
    loads, members = made("sum", "three", costs=costs, of=big)
    assert loads.price(members[:1]).idle == 0.0
    cells = predict(loads.load(members), costs).parts["cell"]
    assert loads.price(members).idle == pytest.approx(3 * cells)


def test_memory_is_priced_by_what_a_site_has() -> None:
    half = project({}, (Site(name="local", cpu=8, memory=1000),))
    loads, members = made("sum", costs=replace(FREE, fragment_memory=1.0), of=half)
    price = loads.price(members)
    assert price.memory > 0
    assert (price.total, price.held) == pytest.approx((price.memory * 8 / 1000,) * 2)


def test_a_plain_window_copies_every_row_into_its_windows() -> None:
    loads, (one, both) = made("sum", "both", costs=replace(FREE, expanded_row=1.0))
    assert (loads.plain(one), loads.plain(both)) == pytest.approx((1000, 1500))
