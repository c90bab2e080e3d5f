"""BIGINT sums next to the limits, against Python's integers: exactly right, or refused."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable

import numpy as np
import pytest

from headrace.errors import EngineError
from headrace.plan.types import Column, DataType
from headrace.runtime.windows.bigints import has_wrapped
from headrace.runtime.windows.weaver import Weaver
from tests.unit.runtime.windows.plain import Row, call, read
from tests.unit.runtime.windows.weaving import Member, Tree

LOW, HIGH = -(2**63), 2**63 - 1
KEYS = (Column("k", DataType.STRING),)
SUMS = (call("sum", "l"), call("avg", "l"), call("count"))
MEMBERS = (
    Member("tumbling", 4, 4, SUMS),
    Member("hopping", 12, 4, SUMS),
    Member("tiled", 32, 4, (call("sum", "l"), call("sum", "i"))),
    Member("rolled_up", 8, 4, SUMS, keys=()),
    Member("counting", 8, 4, (call("count"),), keys=()),
)
Groups = dict[object, list[int]]


def fits(values: Iterable[int]) -> bool:
    return LOW <= sum(values) <= HIGH


def row(time: int, value: int | None, key: str = "a") -> Row:
    return Row(time, (key,), {"l": value, "i": 2**31 - 1, "b": True})


def given(members: Iterable[Member], batches: list[list[Row]]) -> dict[str, dict[object, list[object]]]:
    """What a weaver gives of the batches, the last of which closes all windows."""
    tree = Tree(list(members), KEYS)
    weaver, specs = Weaver(tree.spec), {q.id: q for q in tree.spec.queries}
    weaver.advance(0)
    for rows in batches:
        weaver.take(tree.partials(rows))
    found = {}
    for name, batch in weaver.advance(1000).results:
        keys = 1 if specs[name].keys is None else 0
        found[name] = read(specs[name], keys, batch)
    return found


def random_rows(chance: random.Random) -> list[Row]:
    """In some fragments the last value brings the sum of a key next to a limit, on either side of it."""
    rows = []
    for start in range(0, 20, 4):
        key = chance.choice("ab")
        values = [_value(chance) for _ in range(chance.randint(1, 3))]
        there = sum(v for v in values if v is not None)
        last = chance.choice([LOW, HIGH]) + chance.randint(-2, 2) - there
        if chance.random() < 0.5 and LOW <= last <= HIGH:
            values.append(last)
        rows += [row(start + chance.randrange(4), v, key) for v in values]
    chance.shuffle(rows)
    return rows


def _value(chance: random.Random) -> int | None:
    if chance.random() < 0.1:
        return None
    edge = chance.choice([LOW, HIGH, 0, 0, 0, 2**62, -(2**62), 2**61, -(2**61), 2**53])
    return min(max(edge + chance.randint(-700, 700), LOW), HIGH)


def parts(members: Iterable[Member], batches: list[list[Row]]) -> Iterable[list[int]]:
    """Every sum that has to fit: of a batch, of a fragment, of a window."""
    summed = [m for m in members if any(c.function == "sum" for c in m.calls)]
    everything = [r for rows in batches for r in rows]
    for rows in [*batches, everything] if summed else []:
        yield from _grouped((r.time // 4, r.key, r) for r in rows).values()
    for member in summed:
        if member.keys is not None:
            yield from _grouped((r.time // 4, (), r) for r in everything).values()
        yield from windows(member, everything).values()


def windows(member: Member, rows: list[Row]) -> Groups:
    ends = [(s, r) for r in rows for s in member.windows(r) if s + member.range > 0]
    return _grouped((s, r.key if member.keys is None else (), r) for s, r in ends)


def _grouped(cells: Iterable[tuple[int, object, Row]]) -> Groups:
    found: Groups = defaultdict(list)
    for start, key, one in cells:
        value = one.values["l"]
        found[start, key] += [value] if isinstance(value, int) else []
    return found


def outcome(members: list[Member], batches: list[list[Row]]) -> bool:
    """Whether there are answers; they are looked at."""
    try:
        found = given(members, batches)
    except EngineError as error:
        assert "does not fit a BIGINT" in str(error)
        return False
    everything = [r for rows in batches for r in rows]
    for member in members:
        groups = windows(member, everything)
        assert found[member.name].keys() == groups.keys()
        for at, values in groups.items():
            for one, got in zip(member.calls, found[member.name][at], strict=True):
                if one == call("sum", "l"):
                    assert got == (sum(values) if values else None), (member, at)
                elif one.function == "avg" and values:
                    assert got == pytest.approx(sum(values) / len(values), abs=2**14)
    return True


def test_sums_are_right_or_refused() -> None:
    chance, seen = random.Random(5), {True: 0, False: 0}
    for _ in range(150):
        members, rows = chance.sample(MEMBERS, chance.randint(1, 3)), random_rows(chance)
        cut = chance.randint(1, len(rows) - 1)
        batches = [rows[:cut], rows[cut:]]
        expected = all(map(fits, parts(members, batches)))
        assert outcome(members, batches) is expected
        seen[expected] += 1
    assert min(seen.values()) > 25


@pytest.mark.parametrize(
    "values",
    [[HIGH], [LOW], [HIGH, -1, 1], [LOW, 1, -1], [2**62, 2**62 - 1], [-(2**62), -(2**62)], [HIGH, LOW]],
)
@pytest.mark.parametrize("spread", [0, 4])
def test_what_fits_is_given(values: list[int], spread: int) -> None:
    """In one fragment, and in one window of several."""
    rows = [row(1 + spread * k, v) for k, v in enumerate(values)]
    found = given([Member("q", 12, 12, SUMS), Member("cut", 4, 4, (call("count"),))], [rows])
    assert found["q"][0, ("a",)][0] == sum(values)


@pytest.mark.parametrize("values", [[2**62 + 511, 2**61 + 255, 2**61 - 641], [HIGH, 1], [LOW, -1]])
@pytest.mark.parametrize(
    ("spread", "batches", "told"),
    [
        (0, 1, "the sum o0 of query q does not fit a BIGINT within one fragment"),
        (0, 2, "the sum o0 of query q does not fit a BIGINT within one fragment"),
        (4, 1, "the sum o0 of query q does not fit a BIGINT"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(
    values: list[int], spread: int, batches: int, told: str
) -> None:
    rows = [row(1 + spread * k, v) for k, v in enumerate(values)]
    members = [Member("cut", 4, 4, (call("count"),)), Member("q", 12, 12, SUMS)]
    with pytest.raises(EngineError) as caught:
        given(members, [rows[k::batches] for k in range(batches)])
    assert str(caught.value) == told
    assert caught.value.__notes__ == ["hint: Cast the argument to DOUBLE, or drop the query."]


def test_of_queries_that_are_answered_together_the_right_one_is_named() -> None:
    """A gang makes the columns of both at once, the longer windows first; these hold a -5, and fit."""
    members = [Member("short@2", 32, 4, SUMS[:1]), Member("long", 40, 4, SUMS[:1])]
    rows = [row(397, -5), row(401, HIGH), row(429, 1), row(433, -5)]
    with pytest.raises(EngineError) as caught:
        given(members, [rows])
    assert str(caught.value) == "the sum o0 of query short does not fit a BIGINT"
    assert given(members[1:], [rows])


def test_all_readers_of_a_sum_are_named() -> None:
    members = [Member(f"q{k}", 4, 4, SUMS[:1]) for k in range(6)]
    with pytest.raises(
        EngineError, match=r"the sum o0 of query q0 \(also of q1, q2, q3 and 2 more\) does not"
    ):
        given(members, [[row(1, HIGH), row(1, 1)]])


def test_a_sum_over_keys_that_nobody_asks_for_may_leave_bigint() -> None:
    """The count without keys has fragments of its own, with the sums of the other query in them."""
    members = [Member("by_key", 4, 4, SUMS[:1]), Member("counting", 4, 4, (call("count"),), keys=())]
    found = given(members, [[row(1, HIGH, "a"), row(1, HIGH, "b")]])
    assert found["by_key"] == {(0, ("a",)): [HIGH], (0, ("b",)): [HIGH]}
    assert found["counting"] == {(0, ()): [2]}


@pytest.mark.parametrize("true", [HIGH, HIGH + 1, LOW, LOW - 1, 2**64, -(2**64), 2**80])
def test_many_large_values_do_not_lead_the_doubles_astray(true: int) -> None:
    """A million of them, whose partial sums are large: the doubles are off, but by far less than matters."""
    large = np.random.default_rng(1).integers(2**62, HIGH, 1 << 19)
    rest = np.full(1 << 18, true >> 18)
    every = np.concatenate([large, -large, rest, [true - (true >> 18 << 18)]])
    wrapped, real = np.add.accumulate(every)[-1:], np.add.accumulate(every.astype(np.float64))[-1:]
    assert float(real[0]) != true
    assert has_wrapped(wrapped, real) is not (LOW <= true <= HIGH)
