"""How much arrives where, bottom-up: Eq. 1-3 of the paper, and the sizes of relations as in Ayad and
Naughton (AN04).

| operator | lambda_out | W |
|---|---|---|
| window of time | rate of the stream | rate * range |
| window of rows | rate of the stream | range |
| select, project | f * lambda | f * W |
| join | lambda_L * f_R * W_R + lambda_R * f_L * W_L | f * W_L * W_R |
| aggregate | l * g | g |

Where f_L and f_R of a join differ, the paper does not say which f its relation has; here it is their mean.
Where windows of different slides come together, l is that of the fastest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headrace.planners.federation.problem import Kind, Operator, Plan, Query, Sizes, Unit


def sizes_of(plan: Plan) -> tuple[Sizes, ...]:
    """What each operator gives, in the order of the plan."""
    known = dict(leaf_sizes(plan))
    for operator in plan.operators:
        known[operator.name] = given_by(operator, [known[name] for name in operator.inputs])
    return tuple(known[operator.name] for operator in plan.operators)


def leaf_sizes(problem: Plan | Query) -> Mapping[str, Sizes]:
    """Of windows and tables, by name."""
    rates = {stream.name: stream.rate for stream in problem.streams}
    known = {table.name: Sizes(0.0, table.rows, 0.0, table.width) for table in problem.tables}
    for window in problem.windows:
        rate = rates[window.stream]
        rows, slides = window.range, rate / window.slide
        if window.unit is Unit.TIME:
            rows, slides = rate * window.range, 1 / window.slide
        known[window.name] = Sizes(rate, rows, slides, window.width)
    return known


def given_by(operator: Operator, inputs: Sequence[Sizes]) -> Sizes:
    first, last = inputs[0], inputs[-1]
    slides = max(one.slides for one in inputs)
    width = sum(one.width for one in inputs) if operator.width is None else operator.width
    if operator.kind is Kind.AGGREGATE:
        rate, rows = slides * operator.groups, operator.groups
    elif operator.kind is Kind.JOIN:
        rate = first.rate * operator.right * last.rows + last.rate * operator.left * first.rows
        rows = (operator.left + operator.right) / 2 * first.rows * last.rows
    else:
        share = operator.selectivity if operator.kind is Kind.SELECT else 1.0
        rate, rows = share * first.rate, share * first.rows
    return Sizes(
        rate if operator.rate is None else operator.rate,
        rows if operator.size is None else operator.size,
        slides,
        width,
    )
