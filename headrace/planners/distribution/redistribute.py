"""Algorithm 5: look at the costs, and where they differ enough, ask a policy for moves.

    operators of sites that are gone -> elsewhere, whatever the rules
    costs within the percent difference (ours: and some site not full) -> nothing
    policy -> moves -> the new table is valid, or nothing is moved

Observations go in before (`observed.with_observations`): policies see a problem as it was found to be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from headrace.errors import UserError
from headrace.planners.distribution.balance import balance
from headrace.planners.distribution.costs import CostModel, CostTable
from headrace.planners.distribution.degradation import degradation
from headrace.planners.distribution.evacuate import evacuate
from headrace.planners.distribution.pays import pays
from headrace.planners.distribution.problem import Problem
from headrace.planners.distribution.rules import Decision, History, Rules
from headrace.planners.distribution.running import Running

Policy = Callable[[Running], str]
POLICIES: Mapping[str, Policy] = {"pays": pays, "balance": balance, "degradation": degradation}


def redistribute(
    problem: Problem,
    policy: str,
    model: CostModel,
    rules: Rules | None = None,
    history: History | None = None,
    now: float = 0.0,
) -> Decision:
    """One round, at time `now`. Raises UserError where an operator has no site yet or no site answers."""
    rules, history = rules or Rules(), history or History()
    check_table(problem)
    running = Running(problem, model, rules, history, now)
    before = running.snapshot()
    why = evacuate(running)
    uneven = _looked_at(before, policy, rules)
    since = (history.uneven_since if history.uneven_since is not None else now) if uneven else None
    if running.moves:
        pass  # What was saved from a lost site settles first.
    elif not uneven:
        why = why or _even(before, rules)
    elif since is not None and now - since < rules.patience:
        why = f"uneven for {now - since:.3g} s, and {rules.patience:.3g} s are waited for"
    else:
        why = " ".join(filter(None, (why, POLICIES[policy](running))))
    after = running.snapshot()
    moved = {name: now for move in running.moves for name in move.operators}
    baseline = _baseline(history, running, before, after)
    remembered = History(baseline, _recent(history, rules, now) | moved, None if moved else since)
    return Decision(policy, tuple(running.moves), running.table, before, after, why, remembered)


def _looked_at(costs: CostTable, policy: str, rules: Rules) -> bool:
    """Line 4 of Algorithm 5. Ours also looks at sites that are even because all of them are too full: there
    is nothing to even out, but there may be connections to save."""
    if rules.percent_difference >= 100:
        return False
    full = policy == "pays" and all(site.cost > rules.full for site in costs.sites.values())
    return full or costs.difference > rules.percent_difference / 100


def check_table(problem: Problem) -> None:
    """Every operator runs somewhere, and some site answers. Raises UserError."""
    if not problem.alive:
        raise UserError("no site answers, so nothing can be moved")
    for operator in problem.operators:
        site = problem.table.get(operator.id)
        if site is None:
            hint = "Distribute first: the table must have every operator."
            raise UserError(f'operator "{operator.id}" runs nowhere yet', hint=hint)
        if site not in problem.site:
            raise UserError(f'operator "{operator.id}" runs at "{site}", which does not exist')


def _even(costs: CostTable, rules: Rules) -> str:
    if rules.percent_difference >= 100:
        return "a percent difference of 100 means never"
    return (
        f"the costs of the sites differ by {costs.difference:.1%} of a full site, "
        f"not by more than {rules.percent_difference:g} %"
    )


def _baseline(history: History, running: Running, before: CostTable, after: CostTable) -> dict[str, float]:
    """What to compare a site with later: its cost when it was last changed, or first seen."""
    touched = {site for move in running.moves for site in (move.source, move.target)}
    return {
        site: after.sites[site].cost if site in touched else history.baseline.get(site, cost.cost)
        for site, cost in before.sites.items()
    }


def _recent(history: History, rules: Rules, now: float) -> dict[str, float]:
    """Those that still rest: nothing older is remembered, or the history would grow without end."""
    return {name: at for name, at in history.moved.items() if now - at < rules.rest}
