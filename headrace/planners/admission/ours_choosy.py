"""May refuse an expensive query that fits, so that more cheap ones can be admitted later. Only if asked for.

The rule of online knapsacks (Zhou, Chakrabarty, Lukose 2008): with a share z of all CPU in use, a query must
bring at least L (U/L)^z of priority for a unit of CPU, L and U the least and the most that queries have
brought so far. It starts with everything welcome and ends with only the best.
"""

from __future__ import annotations

import math

from headrace.planners.admission.problem import Query
from headrace.planners.admission.state import State

EASY = 0.85
"""The share of all CPU up to which every query is welcome."""


class Choosy:
    def __init__(self, state: State, free: float) -> None:
        """`free`: queries that take less CPU than this are always welcome."""
        self._state, self._free = state, free
        self._all_cpu = float(state.cpu_limit.sum())
        self._least, self._most = math.inf, 0.0

    def refusal(self, query: Query, cpu: float) -> str:
        """Why a query that fits and takes `cpu` more is not admitted; empty if it is."""
        if cpu < self._free or cpu <= 0.0 or not 0 < self._all_cpu < math.inf:
            return ""
        brings = query.priority / cpu
        self._least, self._most = min(self._least, brings), max(self._most, brings)
        used = (self._state.total_cpu - cpu) / self._all_cpu
        wanted = self._least * (self._most / self._least) ** max(0.0, (used - EASY) / (1.0 - EASY))
        if brings >= wanted:
            return ""
        return (
            f"fits but is expensive (choosy): it takes {cpu:.4g} CPU for a priority of {query.priority:g},"
            f" and with {used:.0%} of all CPU in use at most {query.priority / wanted:.4g} is spent on that"
        )
