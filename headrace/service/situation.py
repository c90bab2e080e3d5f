"""What `reconcile` is given and what it gives (service/deployment.py)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from headrace.catalog.model import Project, Query
from headrace.plan.channels import ChannelPlan
from headrace.plan.placed import Job, PlacedPlan, TreeJob, TreeMember
from headrace.service import admitting, binding, weaving
from headrace.service.spread_records import NOTHING, Spreader
from headrace.state.records import Deployment, Edits


@dataclass(frozen=True, slots=True)
class Planner:
    """Who decides, so that tests can."""

    plan_query: Callable[[Project, Query], Job] = binding.plan_query
    member_of: Callable[[Project, Query], TreeMember | str] = weaving.member_of
    place: Callable[[Project, Sequence[str], Collection[str]], PlacedPlan] = weaving.place
    best_tree: Callable[[Project, TreeMember, str | None, Sequence[TreeJob]], TreeJob | None] = (
        weaving.best_tree
    )
    spread: Spreader = admitting.spread_to_fit


@dataclass(frozen=True, slots=True)
class Situation:
    project: Project
    """With all edits."""
    deployment: Deployment
    edits: Edits
    names: frozenset[str]
    """The queries to run."""
    fresh: frozenset[str] = frozenset()
    """The ones to start over."""
    closed: frozenset[str] = frozenset()
    """Trees whose streams are closed: they have nothing left to give to a new member."""
    folders: frozenset[str] = frozenset()
    """The folders that are there for jobs, trees and members."""
    channels: frozenset[str] = frozenset()
    """The ones for channels."""
    homes: Mapping[str, str] = field(default_factory=dict)
    """Where moves have left jobs."""
    down: frozenset[str] = frozenset()
    """Sites that do not answer."""


@dataclass(frozen=True, slots=True)
class Wanted:
    deployment: Deployment
    placed: PlacedPlan
    """What should run, every query whole."""
    new: frozenset[str]
    """Queries that have got a place just now."""
    applied: dict[int, str | None]
    """The changes that are in it, and the tree of each."""
    forget: frozenset[str]
    """Queries of which nothing observed is to be kept."""
    notes: tuple[str, ...] = ()
    channels: ChannelPlan = NOTHING
    """The jobs and channels of the queries that are spread over sites, also of those that do not run now."""
    admitted: tuple[str, ...] = ()
    """Which queries are where admission has placed them, and why. They are among the notes too."""
    no_room: str = ""
    """Why there is no such place for queries that do not fit."""
