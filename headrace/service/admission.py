"""Whether a new query fits: what all sites and links would carry with it, against what they have.

Compared is what would run: deployed queries stay where they are, the new one joins a tree as a run would let
it, and those that never ran are planned as the next run plans them. Queries that are spread over sites are
counted as the jobs and channels that they are cut into. A query is refused where a capacity that
counts (utilisation.py) would be exceeded and the query is to blame, also in part. What is over already does
not keep out a query that adds nothing to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from headrace.catalog.model import Project, Query
from headrace.errors import UserError
from headrace.plan.channels import ChannelPlan
from headrace.plan.placed import PlacedPlan
from headrace.service.binding import plan_query
from headrace.service.calibration_file import costs_of
from headrace.service.deployment import Planner, Situation, Wanted, reconcile
from headrace.service.federated_records import live, without
from headrace.service.keeper import closed_trees
from headrace.service.layout import state_file
from headrace.service.moving import at_homes, deployed_jobs, moves_of
from headrace.service.predict import NEVER
from headrace.service.spread_records import NOTHING, at_their_sites, running
from headrace.service.spreading import used_sites
from headrace.service.utilisation import ENGINE, TOLERANCE, Use, need_of, uses_of
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
    project: Project,
    query: Query,
    *,
    from_start: bool = False,
    movable: bool = False,
    force: bool = False,
    note: Callable[[str], object] = lambda _: None,
) -> list[str]:
    """What to say when the query is taken. Raises UserError where it does not fit, unless by `force`;
    touches nothing. `project` is without it; `movable`: it may be put on another site. `note` is told where
    its joins are, if it fits only because admission has placed them."""
    asking = _Asking(project, *_standing(project), from_start)
    wanted = asking.with_(query)
    found = asking.excess(query, wanted)
    binding = [one for one in found if one.use.counts]
    if binding and not force:
        raise asking.refusal(query, binding, wanted.no_room, movable=movable)
    for text in wanted.admitted:
        note(text)
    forced = [f"{need_of(one.use)}; added all the same" for one in binding]
    return forced + [_only_default(one.use) for one in found if not one.use.counts]


def over_lines(project: Project, placed: PlacedPlan, channels: ChannelPlan = NOTHING) -> list[str]:
    """What a plan would need that is not there, a line for each capacity that counts."""
    over = [use for use in uses_of(project, placed, channels) if use.over and use.counts]
    return [f"at the rates of the project file {need_of(use)}" for use in over]


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

    def with_(self, query: Query) -> Wanted:
        """What would run with the query."""
        return self._wanted(self._with(query), query)

    def excess(self, query: Query, wanted: Wanted) -> list[Excess]:
        """Capacities that the query exceeds, or makes worse."""
        after = [use for use in _uses(self._with(query), wanted) if use.over]
        if not after:
            return []
        before = {use.key: use.used for use in _uses(self.project, self._wanted(self.project))}
        found = (Excess(use, before.get(use.key, 0.0)) for use in after)
        return [one for one in found if one.use.used > one.before * (1 + TOLERANCE)]

    def _with(self, query: Query) -> Project:
        return self.project.model_copy(update={"queries": {**self.project.queries, query.name: query}})

    def _wanted(self, project: Project, query: Query | None = None) -> Wanted:
        """What would run. Queries that do not bind would not, and are left out."""
        try:
            return self._reconciled(project, query)
        except UserError:
            return self._reconciled(_sound(project), query)

    def _reconciled(self, project: Project, query: Query | None) -> Wanted:
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
        wanted = reconcile(situation, Planner())
        placed = at_homes(wanted.placed, self.homes, project.sites)
        channels = at_their_sites(wanted.channels, self.homes, project)
        return replace(wanted, placed=placed, channels=channels)

    # -- in words -----------------------------------------------------------------------------------

    def refusal(self, query: Query, found: Sequence[Excess], no_room: str, *, movable: bool) -> UserError:
        first, *others = found
        more = f" (and {len(others)} more)" if others else ""
        now = self._wanted(self.project)
        detail = [line for one in found for line in self._detail(one, now)]
        detail += [no_room] if no_room else []
        sites = dict.fromkeys(one.use.place for one in found if one.use.resource in ("cpu", "memory"))
        detail += [f"{site} was {NEVER}" for site in sites if costs_of(self.project, site)[1] is None]
        elsewhere = self._elsewhere(query) if movable else []
        hints = ["Drop what is not needed, or write into headrace.yaml what there really is."]
        hints += [f"It would fit with --site {' or --site '.join(elsewhere)}."] if elsewhere else []
        return UserError(
            f'query "{query.name}" does not fit: {need_of(first.use)}{more}',
            detail="\n".join(detail),
            hint=" ".join([*hints, "--force adds it all the same."]),
        )

    def _detail(self, one: Excess, now: Wanted) -> list[str]:
        use = one.use
        lines = [
            f"{_name(use)}: {use.words(one.before)} without the query, {use.words(use.used)} with it, "
            f"{use.words(use.limit)} in all; {use.words(one.missing)} would have to be freed"
        ]
        before = next((u for u in _uses(self.project, now) if u.key == use.key), None)
        if before is None or not before.used:
            return [*lines, "nothing else uses it"]
        most = list(before.jobs.items())[:_NAMED]
        told = "; ".join(f"{_job(now, job)} {use.words(value)}" for job, value in most)
        lines.append(f"most of it is used by: {told}")
        if all(len(_queries(now, job)) < 2 for job, _ in most):
            return lines
        freed = self._freed(before, now)[:_NAMED]
        alone = ", ".join(f"{name} {use.words(value)}" for name, value in freed)
        return [*lines, f"dropping a single query frees: {alone or 'nothing'}"]

    def _freed(self, use: Use, now: Wanted) -> list[tuple[str, float]]:
        """What each query alone would free, most first: members of a tree share what it takes, and so do the
        readers of a stream."""
        names = dict.fromkeys(name for job in use.jobs for name in _queries(now, job))
        found = []
        for name in list(names)[:_TRIED]:
            left = {u.key: u.used for u in _uses(self.project, _without(now, name))}
            found.append((name, use.used - left.get(use.key, 0.0)))
        return sorted((one for one in found if one[1] > use.used * TOLERANCE), key=lambda one: -one[1])

    def _elsewhere(self, query: Query) -> list[str]:
        others = used_sites(self.project)
        sites = [site.name for site in others if query.free or site.name != query.site]
        found = []
        for site in sites[:_SITES]:
            there = query.model_copy(update={"site": site, "free": False})
            moved = self.excess(there, self.with_(there))
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


def _uses(project: Project, now: Wanted) -> list[Use]:
    return uses_of(project, now.placed, now.channels)


def _without(now: Wanted, query: str) -> Wanted:
    """Makers that nobody reads any more are not counted either."""
    placed = now.placed
    jobs = tuple(job for job in placed.jobs if job.query != query)
    trees = []
    for tree in placed.trees:
        members = tuple(member for member in tree.members if member.query != query)
        trees += [replace(tree, members=members)] if members else []
    left = (without(job, {query}) for job in placed.federated)
    rest = PlacedPlan(jobs, tuple(trees), federated=tuple(job for job in left if live(job)))
    return replace(now, placed=rest)


def _queries(now: Wanted, job: str) -> list[str]:
    """Those that need a job: a maker's are all that read what it makes, directly or through others."""
    placed = now.placed
    of_units = {tree.id: [member.query for member in tree.members] for tree in placed.trees}
    of_units |= {one.id: [member.query for member in live(one)] for one in placed.federated}
    cut = running(placed, now.channels)
    if any(maker.id == job for maker in cut.makers):
        behind = [one.id for one in cut.downstream(job) if one.id in cut.ends]
        return [name for end in behind for name in of_units.get(end, [end])]
    return of_units.get(job, [] if job == ENGINE else [job])


def _job(now: Wanted, job: str) -> str:
    names = _queries(now, job)
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


def _only_default(use: Use) -> str:
    key = _KEYS.get(use.resource, "bandwidth")
    known = "" if use.resource == "link" else ", and the site was never calibrated"
    calibrate = "" if use.resource == "link" else ", or run `headrace calibrate`"
    return (
        f"{need_of(use)}; that is only the default of `{key}`{known}, so it is not held against the query: "
        f"write `{key}` into headrace.yaml{calibrate}"
    )
