"""Queries bound to the project, one by one or many with all their errors.

A query that does not bind spoils the whole plan: half a project is never run. The first error is raised,
and says how many more queries are wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from headrace.catalog.model import Project, Query
from headrace.errors import UserError
from headrace.plan.logical import LogicalPlan
from headrace.plan.placed import Job
from headrace.rewrite.driver import rewrite
from headrace.sql.bind import bind_query
from headrace.units import counted

T = TypeVar("T")


def bind(project: Project, query: Query) -> LogicalPlan:
    """The plan of a query as it is written, before any rewriting."""
    return bind_query(query, project.streams, project.tables)


def plan_query(project: Project, query: Query) -> Job:
    """The query as a job of its own."""
    plan = bind(project, query)
    return Job(query.name, query.name, query.site, rewrite(plan) if project.planner.rewrite else plan)


def for_each(queries: Iterable[Query], make: Callable[[Query], T]) -> list[T]:
    """What `make` gives for every query. Raises the first UserError and counts the others."""
    made: list[T] = []
    errors: list[tuple[str, UserError]] = []
    for query in queries:
        try:
            made.append(make(query))
        except UserError as error:
            errors.append((query.name, error))
    if errors:
        raise _first(errors)
    return made


def _first(errors: list[tuple[str, UserError]]) -> UserError:
    name, first = errors[0]
    notes = [f'in query "{name}"', first.detail]
    if len(errors) > 1:
        others = ", ".join(other for other, _ in errors[1:6]) + (", ..." if len(errors) > 6 else "")
        more = counted(len(errors) - 1, "more query is", "more queries are")
        notes.append(f"{more} wrong: {others}")
    detail = "\n".join(note for note in notes if note)
    return type(first)(first.message, detail=detail, hint=first.hint, span=first.span)
