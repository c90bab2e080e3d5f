"""A member that comes to a running tree is told the earliest instant from which its windows are right."""

from __future__ import annotations

import random

import pytest

from headrace.catalog.model import FileSource, Format, Query, Stream
from headrace.plan.placed import TreeJob, TreeMember, shape_of
from headrace.plan.types import DataType
from headrace.rewrite.driver import rewrite
from headrace.rewrite.merge_projections import merge_projections
from headrace.rewrite.normalise_windows import normalise_windows
from headrace.rewrite.push_filters import push_filters
from headrace.runtime.windows.history import History, Position
from headrace.runtime.windows.tree import woven_spec
from headrace.service.members import weavable
from headrace.sql.bind import bind_query
from tests.searches import examples

SECOND = 1_000_000
STREAM = Stream(
    name="s",
    columns={"ts": DataType.TIMESTAMP, "k": DataType.INT, "v": DataType.DOUBLE},
    time="ts",
    watermark=5 * SECOND,
    source=FileSource(path="in", format=Format.PARQUET),
)


def member(name: str, size: int, slide: int, what: str = "sum(v)", where: str = "TRUE") -> TreeMember:
    hop = f"TABLE(HOP(TABLE s, DESCRIPTOR(ts), INTERVAL '{slide}' SECOND, INTERVAL '{size}' SECOND))"
    sql = f"SELECT window_end, k, {what} AS x FROM {hop} WHERE {where} GROUP BY window_start, window_end, k"
    bound = bind_query(Query(name=name, sql=sql), {"s": STREAM}, {})
    plan = rewrite(bound, (push_filters, normalise_windows, merge_projections))
    aggregate = weavable(plan)
    assert not isinstance(aggregate, str)
    return TreeMember(name, plan, aggregate)


BASE = shape_of((member("base", 10, 10), member("other", 10, 10, where="k > 3")))


def tree(*members: TreeMember) -> TreeJob:
    return TreeJob("t", "local", BASE, members)


def at(watermark: float) -> Position:
    """All rows up to five seconds after the watermark were taken in."""
    return Position(int(watermark * SECOND), int((watermark + 5) * SECOND))


def test_the_first_members_give_all_their_windows() -> None:
    found = History().changed(tree(member("a", 10, 10), member("b", 7, 3)), None)
    assert {query: known.valid_from for query, known in found.members.items()} == {"a": None, "b": None}
    assert found.changed(tree(member("a", 10, 10), member("b", 7, 3)), at(100)) is found


@pytest.mark.parametrize(
    ("new", "first"),
    [
        # Ends at edges that were always there, in a range that was kept: at once.
        (member("x", 20, 10), 90),
        # Longer than what was kept, which goes back to 90.
        (member("x", 60, 10), 90),
        # The edges of 4 s are there only from the end of the fragment that holds 105 on, which is 110.
        (member("x", 8, 4), 112),
        # Another column, or other rows, than was kept.
        (member("x", 20, 10, "max(v)"), 110),
        (member("x", 20, 10, where="k > 3"), 110),
    ],
)
def test_kept_fragments_serve_a_new_member_as_far_as_they_can(new: TreeMember, first: int) -> None:
    old = member("a", 20, 10)
    found = History().changed(tree(old), None).changed(tree(old, new), at(100))
    assert found.members["x"].valid_from == first * SECOND
    assert found.members["a"].valid_from is None


def test_a_column_that_was_dropped_meanwhile_is_not_relied_on() -> None:
    sums, tops = member("a", 20, 10), member("b", 20, 10, "max(v)")
    found = History().changed(tree(sums, tops), None).changed(tree(sums), at(100))
    again = found.changed(tree(sums, tops), at(101))
    assert again.members["b"].valid_from == 110 * SECOND
    assert again.members["b"].id != History().changed(tree(sums, tops), None).members["b"].id


def test_a_history_survives_as_text() -> None:
    found = History().changed(tree(member("a", 20, 10)), None)
    found = found.changed(tree(member("a", 20, 10), member("b", 8, 4)), at(50))
    assert History.from_json(found.to_json()) == found


@pytest.mark.parametrize("seed", range(examples(12)))
def test_no_window_that_is_promised_ends_inside_a_kept_fragment(seed: int) -> None:
    """Every instant is a row, and is cut by the edges that were in force when it came: at least 5 s before
    the watermark reached it, or later."""
    rng = random.Random(seed)
    pool = [member(f"q{k}", rng.randint(4, 40), 1, rng.choice(["sum(v)", "max(v)"])) for k in range(6)]
    pool = [
        member(m.query, max(s, m.window.spec.range // SECOND), s) for m in pool for s in [rng.randint(1, 12)]
    ]
    history, watermark, cut = History(), 60, dict[int, tuple[int, int]]()
    running: list[TreeMember] = []
    come = 0
    for _ in range(6):
        running = rng.sample(pool, rng.randint(1, 4))
        history = history.changed(tree(*running), at(watermark) if come else None)
        edges = sorted({e for m in running for e in _edges(m)})
        come, before = watermark + rng.randint(5, 30) + 5, come
        for t in range(before and before + 1, come + 1):
            cut[t] = (max(e for e in edges if e <= t), min(e for e in edges if e > t))
        watermark = come - 5
        for one in running:
            first = history.members[one.query].valid_from
            for start in range(0, 200, one.window.spec.slide // SECOND):
                if first is not None and start * SECOND < first:
                    continue
                for end in (start, start + one.window.spec.range // SECOND):
                    assert not any(a < end < b for a, b in cut.values() if first is not None), (one, end)


def _edges(one: TreeMember) -> set[int]:
    size, slide = one.window.spec.range // SECOND, one.window.spec.slide // SECOND
    return {e for k in range(-60, 400) for e in (k * slide, k * slide + size)}


def test_the_spec_of_a_member_with_conditions_and_fewer_keys() -> None:
    found = woven_spec(tree(member("a", 20, 10), member("b", 20, 10, "count(*)", "k > 3 AND v < 2"))).tree
    plain, filtered = found.queries
    assert plain.present is None and plain.keys is None
    assert filtered.present == filtered.outputs[0].partials[0]
