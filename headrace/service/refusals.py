"""What is refused before anything is written: foreign folders, endless drains."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.catalog.model import Project, RateSource
from headrace.errors import UserError
from headrace.plan.logical import LogicalPlan, streams_of
from headrace.plan.placed import PlacedPlan
from headrace.service.federated_records import live
from headrace.service.folders import check_owner, check_results
from headrace.service.layout import query_context, writes_files

Plans = Mapping[str, LogicalPlan]
"""The plan of each query, by its name."""


def plans_of(placed: PlacedPlan) -> dict[str, LogicalPlan]:
    """Of every query, wherever it runs."""
    plans = {job.query: job.plan for job in placed.jobs}
    plans |= {member.query: member.plan for tree in placed.trees for member in tree.members}
    return plans | {member.query: member.plan for job in placed.federated for member in live(job)}


def refuse_results(project: Project, plans: Plans) -> None:
    """Raises UserError for a results folder that holds what Headrace did not put there, or another query's
    results."""
    for name in plans:
        query = project.queries[name]
        if writes_files(query):
            context = query_context(project, name, query.site)
            check_results(context.results)
            check_owner(context)


def refuse_endless(project: Project, plans: Plans) -> None:
    """`--drain` needs an end: raises UserError for a query over Spark's rate source."""
    for query, plan in plans.items():
        for name in streams_of(plan):
            if isinstance(project.streams[name].source, RateSource):
                raise UserError(
                    f'query "{query}" reads stream "{name}", which never ends: it cannot be drained',
                    hint="Run without --drain, or name the other queries with --only.",
                )
