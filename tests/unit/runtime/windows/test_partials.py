from __future__ import annotations

import pytest

from headrace.errors import InternalError, NotSupported
from headrace.plan.expr import AggregateCall
from headrace.plan.types import Column, DataType
from headrace.runtime.windows import Output, Partial, PartialKind, QuerySpec, TreeSpec, needs_of, unsupported
from tests.unit.runtime.windows.plain import CALLS, call

T, K = DataType, PartialKind


def test_queries_share_partial_columns() -> None:
    """avg and sum of one DOUBLE share its sum; avg, count and a variance its count."""
    needs = needs_of(
        [
            [("a", call("avg", "x")), ("s", call("sum", "x"))],
            [("c", call("count", "x")), ("v", call("var_samp", "x")), ("d", call("stddev_pop", "x"))],
        ]
    )
    assert [p.kind for p in needs.partials] == [K.SUM, K.COUNT, K.MEAN, K.M2]
    assert [[o.partials for o in outputs] for outputs in needs.outputs] == [
        [(0, 1), (0,)],
        [(1,), (1, 2, 3), (1, 2, 3)],
    ]


def test_an_average_of_bigints_does_not_take_their_bigint_sum() -> None:
    """The sum may overflow where the average does not. Of INTs it cannot, and it is shared."""
    wide = needs_of([[("a", call("avg", "l")), ("s", call("sum", "l"))]])
    assert [(p.kind, p.type) for p in wide.partials] == [
        (K.SUM, T.DOUBLE),
        (K.COUNT, T.BIGINT),
        (K.SUM, T.BIGINT),
    ]
    assert len(needs_of([[("a", call("avg", "i")), ("s", call("sum", "i"))]]).partials) == 2


def test_a_name_says_what_is_computed_whatever_else_there_is() -> None:
    alone = needs_of([[("m", call("max", "x"))]]).partials[0]
    among = needs_of([[(f"o{k}", c) for k, c in enumerate(CALLS)]]).partials
    assert alone in among
    assert len({p.name for p in among}) == len(among)


def test_what_cannot_be_answered_is_refused_by_name() -> None:
    median = AggregateCall("median", call("sum", "x").arg)
    assert unsupported(median) == "not supported: median"
    assert not any(map(unsupported, (*CALLS, call("approx_count_distinct", "s"))))
    with pytest.raises(NotSupported, match="median"):
        needs_of([[("d", median)]])


def test_a_tree_goes_through_json() -> None:
    needs = needs_of([[(f"o{k}", c) for k, c in enumerate(CALLS)]])
    query = QuerySpec("ä", 7, 3, needs.outputs[0], valid_from=-5)
    spec = TreeSpec((Column("k", T.STRING), Column("n", T.DATE)), needs.partials, (query,))
    assert TreeSpec.from_json(spec.to_json()) == spec


def test_a_wrong_tree_cannot_be_made() -> None:
    partial = Partial("p", K.COUNT, T.BIGINT)
    with pytest.raises(InternalError, match="twice"):
        TreeSpec((Column("p", T.INT),), (partial,), ())
    with pytest.raises(InternalError, match="slide 0"):
        QuerySpec("q", 1, 0, ())
    with pytest.raises(InternalError, match="not there"):
        TreeSpec((), (partial,), (QuerySpec("q", 1, 1, (Output("o", "count", (1,), T.BIGINT),)),))
