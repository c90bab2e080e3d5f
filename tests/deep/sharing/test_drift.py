"""What to do when the rate changes, against all plans of small problems."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations, product

import numpy as np
import pytest

from headrace.planners.sharing.brute_force import optimum, plan_costs
from headrace.planners.sharing.drift import Decision, decide, matched, renamed, steps_to
from headrace.planners.sharing.online import MovePrice, Place, RunningPlan
from headrace.planners.sharing.problem import Assignment, Options, SharingProblem, WindowQuery
from tests.deep.sharing.clock import counting

QUICK = Options(seconds=0.01)
Nodes = tuple[tuple[tuple[int, ...], ...], ...]


def random_problem(seed: int, count: int, rate: float, capacities: tuple[float, ...]) -> SharingProblem:
    rng = np.random.default_rng(seed)
    slides = rng.choice([2, 3, 4, 5, 6, 8, 9, 10, 12, 15], size=count)
    queries = tuple(
        WindowQuery(f"q{i}", int(s * rng.integers(1, 9) + rng.integers(0, s)), int(s))
        for i, s in enumerate(slides)
    )
    return SharingProblem(rate, capacities, queries)


def partitions(items: Sequence[int]) -> Iterator[list[list[int]]]:
    if not items:
        yield []
        return
    for blocks in partitions(items[1:]):
        yield [[items[0]], *blocks]
        for i in range(len(blocks)):
            yield [*blocks[:i], [items[0], *blocks[i]], *blocks[i + 1 :]]


def all_plans(count: int, nodes: int) -> Iterator[Nodes]:
    for blocks in partitions(range(count)):
        for where in product(range(nodes), repeat=len(blocks)):
            yield tuple(
                tuple(tuple(sorted(b)) for b, w in zip(blocks, where, strict=True) if w == n)
                for n in range(nodes)
            )


def fewest_moves(old: Assignment, new: Nodes, queries: int) -> int:
    """By all ways to say which tree of a node continues which."""
    stay = 0
    for before, after in zip(old, new, strict=True):
        padded = [*before, *[()] * max(0, len(after) - len(before))]
        stay += max(
            (
                sum(len(set(a) & set(b)) for a, b in zip(after, order, strict=False))
                for order in permutations(padded)
            ),
            default=0,
        )
    return queries - stay


def running(problem: SharingProblem, seed: int) -> RunningPlan:
    """A plan made by chance: queries to random trees of random nodes."""
    rng = np.random.default_rng([seed, 7])
    trees: dict[tuple[int, int], list[int]] = {}
    for i in range(len(problem.queries)):
        trees.setdefault((int(rng.integers(problem.nodes)), int(rng.integers(2))), []).append(i)
    nodes = [[tree for (n, _), tree in sorted(trees.items()) if n == node] for node in range(problem.nodes)]
    return RunningPlan(problem, tuple(tuple(tuple(t) for t in trees) for trees in nodes))


def worth(problem: SharingProblem, assignment: Assignment) -> float:
    total, nodes = plan_costs(problem, assignment)
    load = max(cost / capacity for cost, capacity in zip(nodes, problem.capacities, strict=True))
    return total + load * sum(problem.capacities)


def decided(problem: SharingProblem, plan: RunningPlan, rate: float, price: MovePrice) -> Decision:
    return decide(plan, rate, price, QUICK, clock=counting())


@pytest.mark.parametrize("seed", range(12))
def test_the_bill_is_that_of_a_plan_and_near_the_least_of_all(seed: int) -> None:
    problem = random_problem(seed, 5, 3.0, (1.0, 1.0) if seed % 2 else (1.0, 2.0))
    plan = running(problem, seed)
    rate = [0.3, 30.0, 3.0][seed % 3]
    price = MovePrice(per_query=[0.0, 2.0, 20.0][seed // 4], horizon=4.0)
    decision = decided(problem, plan, rate, price)
    changed = SharingProblem(rate, problem.capacities, problem.queries)
    old = plan.assignment()
    for choice in decision.choices:
        trial = plan.fork()
        trial.set_rate(rate)
        trial.apply(choice.steps)
        assert choice.costs.worth == pytest.approx(worth(changed, trial.assignment()))
        assert choice.moved == fewest_moves(old, trial.assignment(), 5)
        assert choice.bill == pytest.approx(4.0 * choice.costs.worth + price.per_query * choice.moved)
    least = min(
        4.0 * worth(changed, new) + price.per_query * fewest_moves(old, new, 5) for new in all_plans(5, 2)
    )
    chosen = decision.chosen
    assert least * (1 - 1e-9) <= chosen.bill <= decision.choices[0].bill
    assert chosen.bill <= 1.06 * least
    decision.apply(plan)
    assert plan.costs() == pytest.approx(chosen.costs)


def test_a_dear_move_keeps_and_a_free_one_reaches_the_optimum() -> None:
    problem = random_problem(3, 6, 2.0, (1.0, 1.0))
    plan = running(problem, 3)
    changed = SharingProblem(40.0, problem.capacities, problem.queries)
    kept = decided(problem, plan, 40.0, MovePrice(1e9, 1.0))
    assert kept.chosen.name == "keep" and kept.chosen.moved == 0
    free = decided(problem, plan, 40.0, MovePrice(0.0, 1.0)).chosen
    best = optimum(changed)
    assert free.costs.worth == pytest.approx(min(total + load * 2 for total, load in best.front))


def test_break_even_is_where_the_bills_cross() -> None:
    problem = random_problem(5, 6, 1.0, (1.0, 1.0))
    plan = running(problem, 5)
    decision = decided(problem, plan, 60.0, MovePrice(25.0, 1000.0))
    chosen, keep = decision.chosen, decision.choices[0]
    when = decision.break_even(chosen)
    assert chosen.moved and when is not None
    bills = [t * c.costs.worth + 25.0 * c.moved for t in (when * 0.99, when * 1.01) for c in (keep, chosen)]
    assert bills[0] < bills[1] and bills[2] > bills[3]
    for horizon, name in ((when * 0.99, False), (when * 1.01, True)):
        again = decided(problem, plan, 60.0, MovePrice(25.0, horizon))
        bill = horizon * chosen.costs.worth + 25.0 * chosen.moved
        assert (bill < again.choices[0].bill) is name
        assert again.chosen.bill <= min(bill, again.choices[0].bill) + 1e-9


def test_a_rate_that_swings_is_not_followed_unless_both_moves_pay() -> None:
    problem = random_problem(8, 12, 2.0, (1.0, 1.0))
    plan = running(problem, 8)
    for price, still in ((MovePrice(0.0, 1.0), False), (MovePrice(1e5, 1.0), True)):
        trial = plan.fork()
        moved = 0
        for rate in (0.1, 200.0) * 3:
            decision = decided(problem, trial, rate, price)
            moved += decision.chosen.moved
            decision.apply(trial)
        assert (moved == 0) is still


@pytest.mark.parametrize("seed", range(30))
def test_names_are_chosen_for_the_fewest_moves(seed: int) -> None:
    rng = np.random.default_rng(seed)
    names = [f"q{i}" for i in range(7)]
    capacities = [1.0, 1.0, 1.0 if seed % 3 else 2.0]

    def plan() -> list[list[list[str]]]:
        nodes: list[list[list[str]]] = [[[] for _ in range(3)] for _ in range(3)]
        for name in names:
            nodes[rng.integers(3)][rng.integers(3)].append(name)
        return [[tree for tree in trees if tree] for trees in nodes]

    old, new = plan(), plan()
    numbers = iter(range(100))
    place_of = {
        name: place
        for node, trees in enumerate(old)
        for tree in trees
        for place in [Place(node, next(numbers))]
        for name in tree
    }
    target = renamed(place_of, new, capacities)
    stay = sum(target[name] == place_of[name] for name in names)
    as_numbers = [tuple(tuple(int(q[1:]) for q in tree) for tree in trees) for trees in old]
    best = 7
    for order in permutations(range(3)):
        if all(capacities[order[a]] == capacities[a] for a in range(3)):
            at = {order[a]: tuple(tuple(int(q[1:]) for q in t) for t in new[a]) for a in range(3)}
            best = min(best, fewest_moves(tuple(as_numbers), (at[0], at[1], at[2]), 7))
    assert 7 - stay == best
    for trees in new:
        assert len({target[tree[0]] for tree in trees}) == len(trees)
        assert all(len({target[name] for name in tree}) == 1 for tree in trees)
        assert len({target[tree[0]].node for tree in trees}) <= 1


@pytest.mark.parametrize("seed", range(20))
def test_matching_is_the_heaviest(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, columns = int(rng.integers(1, 6)), int(rng.integers(1, 6))
    weights = rng.integers(-3, 9, size=(rows, columns)).astype(float)
    wide = np.pad(weights, ((0, 0), (0, max(0, rows - columns))))
    found = matched(weights)
    assert len(set(found)) == rows
    best = max(wide[range(rows), list(p)].sum() for p in permutations(range(wide.shape[1]), rows))
    assert wide[range(rows), found].sum() == best


def test_no_steps_to_itself() -> None:
    problem = random_problem(1, 9, 3.0, (1.0, 1.0, 1.0))
    plan = running(problem, 1)
    swapped = [[plan.trees()[t] for t in plan.trees() if plan.grove.node[t] == n] for n in (2, 0, 1)]
    assert steps_to(plan, swapped) == []
