"""What a planner refuses to plan at all: a query that is wrong in itself."""

from __future__ import annotations

from collections.abc import Container

from headrace.errors import UserError
from headrace.planners.admission.problem import AdmissionProblem, Query


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
