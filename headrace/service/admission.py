"""Whether a new query fits: what all sites and links would carry with it, against what they have.

Compared is what would run: deployed queries stay where they are, the new one joins a tree as a run would let
it, and those that never ran are planned as the next run plans them. A query is refused where a capacity that
counts (utilisation.py) would be exceeded and the query is to blame, also in part. What is over already does
not keep out a query that adds nothing to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from headrace.catalog.model import Project, Query
from headrace.errors import UserError
from headrace.plan.placed import PlacedPlan
from headrace.service.binding import plan_query
from headrace.service.calibration_file import costs_of
from headrace.service.deployment import Planner, Situation, reconcile
from headrace.service.federated_records import live, without
from headrace.service.keeper import closed_trees
from headrace.service.layout import state_file
from headrace.service.moving import at_homes, deployed_jobs, moves_of
from headrace.service.predict import NEVER
from headrace.service.spreading import used_sites
from headrace.service.utilisation import ENGINE, TOLERANCE, Use, uses_of
from headrace.state.records import Change, Deployment, Edits
from headrace.state.store import Store

_NAMED = 3
"""So many jobs, queries and sites are named in a refusal."""
_TRIED = 40
"""So many queries are taken out, one at a time, to see what that would free."""
_SITES = 8
"""On so many other sites the query is tried."""


@dataclass(frozen=True, slots=True)
class Excess:
    """A capacity that is not enough, with the new query."""

    use: Use
    before: float
    """What is used without it."""

    @property
    def missing(self) -> float:
        return self.use.used - self.use.limit


def ask(
    project: Project, query: Query, *, from_start: bool = False, movable: bool = False, force: bool = False
) -> list[str]:
    """What to say when the query is taken. Raises UserError where it does not fit, unless by `force`;
    touches nothing. `project` is without it; `movable`: it may be put on another site."""
    asking = _Asking(project, *_standing(project), from_start)
    found = asking.excess(query)
    binding = [one for one in found if one.use.counts]
    if binding and not force:
        raise asking.refusal(query, binding, movable=movable)
    forced = [f"{_need(one.use)}; added all the same" for one in binding]
    return forced + [_only_default(one.use) for one in found if not one.use.counts]


def over_lines(project: Project, placed: PlacedPlan) -> list[str]:
    """What a plan would need that is not there, a line for each capacity that counts."""
    over = [use for use in uses_of(project, placed) if use.over and use.counts]
    return [f"at the rates of the project file {_need(use)}" for use in over]


def _standing(project: Project) -> tuple[Deployment, Edits, frozenset[str], dict[str, str]]:
    """What is deployed and asked for, the trees that take nobody, and where moves have left jobs. No state
    file is made."""
    path = state_file(project)
    if not path.exists():
        return Deployment(), Edits(), frozenset(), {}
    with Store(path) as store, moves_of(project) as moves:
        deployment = store.deployment()
        jobs = deployed_jobs(deployment)
        homes = {job: site for job, site in moves.homes().items() if job in jobs}
        return deployment, store.edits(), closed_trees(store, deployment), homes


@dataclass(frozen=True, slots=True)
class _Asking:
    project: Project
    deployment: Deployment
    edits: Edits
    closed: frozenset[str]
    homes: Mapping[str, str]
    from_start: bool

    def excess(self, query: Query) -> list[Excess]:
        """Capacities that the query exceeds, or makes worse."""
        project = self._with(query)
        after = [use for use in uses_of(project, self._wanted(project, query)) if use.over]
        if not after:
            return []
        before = {use.key: use.used for use in uses_of(self.project, self._wanted(self.project))}
        found = (Excess(use, before.get(use.key, 0.0)) for use in after)
        return [one for one in found if one.use.used > one.before * (1 + TOLERANCE)]

    def _with(self, query: Query) -> Project:
        return self.project.model_copy(update={"queries": {**self.project.queries, query.name: query}})

    def _wanted(self, project: Project, query: Query | None = None) -> PlacedPlan:
        """What would run. Queries that do not bind would not, and are left out."""
        try:
            return self._reconciled(project, query)
        except UserError:
            return self._reconciled(_sound(project), query)

    def _reconciled(self, project: Project, query: Query | None) -> PlacedPlan:
        edits = self.edits if query is None else _asked(self.edits, query.name, from_start=self.from_start)
        # No folders: a query that was changed is counted as it is now, and not refused here.
        situation = Situation(
            project,
            self.deployment,
            edits,
            frozenset(project.queries),
            closed=self.closed,
            homes=self.homes,
        )
        return at_homes(reconcile(situation, Planner()).placed, self.homes, project.sites)

    # -- in words -----------------------------------------------------------------------------------

    def refusal(self, query: Query, found: Sequence[Excess], *, movable: bool) -> UserError:
        first, *others = found
        more = f" (and {len(others)} more)" if others else ""
        running = self._wanted(self.project)
        detail = [line for one in found for line in self._detail(query, one, running)]
        sites = dict.fromkeys(one.use.place for one in found if one.use.resource in ("cpu", "memory"))
        detail += [f"{site} was {NEVER}" for site in sites if costs_of(self.project, site)[1] is None]
        elsewhere = self._elsewhere(query) if movable else []
        hints = ["Drop what is not needed, or write into headrace.yaml what there really is."]
        hints += [f"It would fit with --site {' or --site '.join(elsewhere)}."] if elsewhere else []
        return UserError(
            f'query "{query.name}" does not fit: {_need(first.use)}{more}',
            detail="\n".join(detail),
            hint=" ".join([*hints, "--force adds it all the same."]),
        )

    def _detail(self, query: Query, one: Excess, running: PlacedPlan) -> list[str]:
        use = one.use
        lines = [
            f"{_name(use)}: {use.words(one.before)} without the query, {use.words(use.used)} with it, "
            f"{use.words(use.limit)} in all; {use.words(one.missing)} would have to be freed"
        ]
        before = next((u for u in uses_of(self.project, running) if u.key == use.key), None)
        if before is None or not before.used:
            return [*lines, "nothing else uses it"]
        most = list(before.jobs.items())[:_NAMED]
        told = "; ".join(f"{_job(running, job)} {use.words(value)}" for job, value in most)
        lines.append(f"most of it is used by: {told}")
        if all(len(_queries(running, job)) < 2 for job, _ in most):
            return lines
        freed = self._freed(before, running)[:_NAMED]
        alone = ", ".join(f"{name} {use.words(value)}" for name, value in freed)
        return [*lines, f"dropping a single query frees: {alone or 'nothing'}"]

    def _freed(self, use: Use, running: PlacedPlan) -> list[tuple[str, float]]:
        """What each query alone would free, most first: members of a tree share what it takes."""
        names = [name for job in use.jobs for name in _queries(running, job)]
        found = []
        for name in names[:_TRIED]:
            left = {u.key: u.used for u in uses_of(self.project, _without(running, name))}
            found.append((name, use.used - left.get(use.key, 0.0)))
        return sorted((one for one in found if one[1] > use.used * TOLERANCE), key=lambda one: -one[1])

    def _elsewhere(self, query: Query) -> list[str]:
        others = used_sites(self.project)
        sites = [site.name for site in others if query.free or site.name != query.site]
        found = []
        for site in sites[:_SITES]:
            moved = self.excess(query.model_copy(update={"site": site, "free": False}))
            found += [] if any(one.use.counts for one in moved) else [site]
        return found[:_NAMED]


def _sound(project: Project) -> Project:
    return project.model_copy(
        update={"queries": {name: query for name, query in project.queries.items() if _binds(project, query)}}
    )


def _binds(project: Project, query: Query) -> bool:
    try:
        plan_query(project, query)
    except UserError:
        return False
    return True


def _asked(edits: Edits, name: str, *, from_start: bool) -> Edits:
    """As if the command had been given."""
    change = Change(0, "add", name, from_start, "pending", "", None, None, None, "", None)
    return replace(edits, pending=(*edits.pending, change))


def _without(placed: PlacedPlan, query: str) -> PlacedPlan:
    jobs = tuple(job for job in placed.jobs if job.query != query)
    trees = []
    for tree in placed.trees:
        members = tuple(member for member in tree.members if member.query != query)
        trees += [replace(tree, members=members)] if members else []
    left = (without(job, {query}) for job in placed.federated)
    return PlacedPlan(jobs, tuple(trees), federated=tuple(job for job in left if live(job)))


def _queries(placed: PlacedPlan, job: str) -> list[str]:
    of_trees = {tree.id: [member.query for member in tree.members] for tree in placed.trees}
    of_trees |= {one.id: [member.query for member in live(one)] for one in placed.federated}
    return of_trees.get(job, [] if job == ENGINE else [job])


def _job(placed: PlacedPlan, job: str) -> str:
    names = _queries(placed, job)
    if names in ([], [job]):
        return job
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{job} ({', '.join(names[:_NAMED])}{more})"


def _name(use: Use) -> str:
    """What is used, as a noun."""
    if use.resource == "link":
        return f"the link {use.place}"
    return f"{_NOUNS[use.resource]} {use.place}"


_NOUNS = {"cpu": "cores of", "memory": "memory of", "in": "bytes into", "out": "bytes out of"}
_KEYS = {"cpu": "cpu", "memory": "memory"}
_NEEDS = {
    "cpu": "{place} would need {used} and has {limit}",
    "memory": "{place} would need {used} of memory and has {limit}",
    "in": "{place} would take in {used} and has bandwidth for {limit}",
    "out": "{place} would send out {used} and has bandwidth for {limit}",
    "link": "the link {place} would carry {used} and has bandwidth for {limit}",
}


def _need(use: Use) -> str:
    words = {"used": use.words(use.used), "limit": use.words(use.limit)}
    return _NEEDS[use.resource].format(place=use.place, **words)


def _only_default(use: Use) -> str:
    key = _KEYS.get(use.resource, "bandwidth")
    known = "" if use.resource == "link" else ", and the site was never calibrated"
    calibrate = "" if use.resource == "link" else ", or run `headrace calibrate`"
    return (
        f"{_need(use)}; that is only the default of `{key}`{known}, so it is not held against the query: "
        f"write `{key}` into headrace.yaml{calibrate}"
    )
