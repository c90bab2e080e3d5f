"""All that a query still needs at one host: the last resort of our planner.

Its programme sees the room of a link or a host for one step at a time, so that two streams may be planned
over a link that has room for one of them. The paper's heuristic counts everything that one host receives and
makes together, and whatever it admits is then admitted by ours too, given the same state and a query of not
too many streams.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from headrace.planners.admission.heuristic import OneHostSearch
from headrace.planners.admission.objective import lambdas_of
from headrace.planners.admission.problem import Stream, Weights
from headrace.planners.admission.state import State

EFFORT = 3000
"""Steps of a search: enough for all trees of a query of six streams, at worst a part of those of seven."""


class OneHost:
    def __init__(self, state: State, weights: Weights) -> None:
        self._state, self._lambdas = state, lambdas_of(state.problem, weights)

    def carry_out(self, stream: Stream) -> bool:
        """Deliver a stream from one host that receives or makes all it needs. False: nothing has changed."""
        return OneHostSearch(self._state, self._lambdas, stream, _after(EFFORT)).carry_out()


def _after(effort: int) -> Callable[[], bool]:
    """Whether it was asked more often than that: an end that does not depend on a clock."""
    asked = count()
    return lambda: next(asked) >= effort
