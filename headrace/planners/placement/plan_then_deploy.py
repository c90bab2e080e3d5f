"""Plan, then deploy (Fig. 1a): the join order by intermediate results alone, then the best sites for it.

The strongest planner of its kind: given its order and what runs already, no placement is cheaper. What it
loses against the exact planner is only what the order loses by not seeing the network. A deployed stream is
read where it makes exactly what some part of the order makes.
"""

from __future__ import annotations

from headrace.planners.placement.deployed import Deployed
from headrace.planners.placement.fixed_order import Placer, added_cost, allowed_sites, fix_order, usable_sites
from headrace.planners.placement.network import Prepared
from headrace.planners.placement.problem import Options, Placed, PlacementProblem, Query
from headrace.planners.placement.spread import Spread


class PlanThenDeploy:
    name = "plan-then-deploy"

    def __init__(self, problem: PlacementProblem, prepared: Prepared, options: Options) -> None:
        self._problem = problem
        self._prepared = prepared
        self._allowed = allowed_sites(problem)
        large = None if prepared.dense else prepared.graph
        self._spread = None if large is None else Spread(large)

    def place(self, query: Query, deployed: Deployed) -> Placed:
        usable_sites(self._problem, self._prepared, query)  # Refuses a query that has no deployment.
        fixed = fix_order(self._problem, query, deployed)
        placer = Placer(self._prepared, fixed.rates, self._spread)
        anywhere = {join.mask: self._allowed for join in fixed.order.joins()}
        tree, _ = placer.place(fixed.order, fixed.ready, anywhere, query.sink)
        cost = added_cost(tree, query, fixed.rates, self._prepared)
        return Placed(query.id, tree, cost, fixed.examined + placer.examined)
