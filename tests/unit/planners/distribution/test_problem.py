"""Problems refuse to exist in a wrong state, and know their own shape."""

from __future__ import annotations

import pytest

from headrace.planners.distribution.problem import Operator, Problem, Query, Site, Stream

SITES = (Site("a"), Site("b"))


def test_shared_operators_belong_to_both_queries() -> None:
    problem = Problem(
        SITES,
        (
            Operator("top", ("mid",)),
            Operator("mid", ("low", "s")),
            Operator("low", ("s",)),
            Operator("other", ("low",)),
            Operator("lone", ("s",)),
        ),
        (Query("x", ("top",)), Query("y", ("other",))),
        (Stream("s", 10.0),),
    )
    assert problem.members == {"x": {"top", "mid", "low"}, "y": {"other", "low"}}
    assert problem.plans == (("top", "mid", "low"), ("other",), ("lone",))
    assert problem.readers["low"] == ("mid", "other")
    order = problem.order
    assert order.index("low") < order.index("mid") < order.index("top")
    assert len(problem.edges) == 6 + 2  # inputs and results


def test_rows_are_counted_as_often_as_they_are_read() -> None:
    twice = Problem(
        SITES, (Operator("f", ("s",), rate=4.0), Operator("j", ("f", "f"))), (), (Stream("s", 7.0),)
    )
    assert twice.rows_in == {"f": 7.0, "j": 8.0}
    assert twice.readers["f"] == ("j", "j")


@pytest.mark.parametrize(
    ("operators", "queries", "message"),
    [
        ((Operator("o", ("s",)), Operator("o", ("s",))), (), 'operator or stream "o" is given twice'),
        ((Operator("s", ("s",)),), (), 'operator or stream "s" is given twice'),
        ((Operator("o", ("t",)),), (), 'operator "o" reads "t", which does not exist'),
        ((Operator("o", ("p",)), Operator("p", ("o",))), (), 'operator "o" reads itself, directly or not'),
        (
            (Operator("h", ("s", "g")), Operator("f", ("g",)), Operator("g", ("f",))),
            (),
            'operator "g" reads itself, directly or not',
        ),
        ((Operator("o", ("s",)),), (Query("q", ("s",)),), 'query "q" gives "s", which is no operator'),
    ],
)
def test_what_is_no_plan_is_refused(
    operators: tuple[Operator, ...], queries: tuple[Query, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Problem(SITES, operators, queries, (Stream("s", 1.0),))
