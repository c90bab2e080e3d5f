"""Who asked for what: queries that are wrong in themselves, and those that are admitted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container

from headrace.errors import UserError
from headrace.planners.admission.problem import AdmissionProblem, Query, Stream
from headrace.planners.admission.state import State


class Admitted:
    """Queries that run on a state. A stream is delivered as long as one of them wants it."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._streams: dict[str, Stream] = {}
        self._wanted: Counter[Stream] = Counter()

    def __contains__(self, query_id: object) -> bool:
        return query_id in self._streams

    def add(self, query: Query) -> None:
        self._streams[query.id] = query.streams
        self._wanted[query.streams] += 1

    def remove(self, query_id: str) -> None:
        """Take a query out, and all that only it needed."""
        stream = self._streams.pop(query_id, None)
        if stream is None:
            raise UserError(f'query "{query_id}" is not admitted')
        self._wanted[stream] -= 1
        if not self._wanted[stream]:
            host = self._state.deliveries[stream]
            self._state.undeliver(stream)
            self._state.drop_unused(host, stream)
        self._state.forget()


def check_query(problem: AdmissionProblem, query: Query, admitted: Container[str]) -> None:
    """Raises UserError: its id is taken, it asks for nothing, or for streams that do not exist."""
    if query.id in admitted:
        raise UserError(f'query "{query.id}" is admitted already')
    if not query.streams:
        raise UserError(f'query "{query.id}" has no stream')
    unknown = sorted(query.streams - problem.streams.keys())
    if unknown:
        known = ", ".join(sorted(problem.streams)[:10])
        raise UserError(f'stream "{unknown[0]}" does not exist', hint=f"Streams of this problem: {known}.")
