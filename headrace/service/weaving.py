"""Which queries run together: trees of window queries, jobs that are split over engines, and a job for each
query that can be in neither.

`place` makes the trees of queries that were never deployed; `best_tree` finds the deployed tree that takes a
new query at the lowest added price.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from headrace.catalog.model import Project
from headrace.plan.placed import PlacedPlan, TreeJob, TreeMember, TreeShape
from headrace.plan.shared import SharedPlan, Tree
from headrace.service.binding import plan_query
from headrace.service.federating import split_jobs
from headrace.service.loads import Loads
from headrace.service.members import member_of
from headrace.service.sharing import calibrated, share

__all__ = ["best_tree", "member_of", "place"]


def place(project: Project, names: Sequence[str], taken: Collection[str] = ()) -> PlacedPlan:
    """The named queries from nothing. Every query that can be in a tree is in one, alone where it has no
    partner. `taken` are ids that no tree may get. Raises the first UserError and counts the others."""
    return placed(project, share(project, names), taken) if names else PlacedPlan(())


def placed(project: Project, shared: SharedPlan, taken: Collection[str] = ()) -> PlacedPlan:
    used = {*taken, *project.queries}
    trees = tuple(_tree_job(tree, used) for tree in shared.trees)
    jobs = tuple(plan_query(project, project.queries[one.query]) for one in shared.unshared)
    plain, split = split_jobs(project, jobs, used)
    return PlacedPlan(plain, trees, federated=split)


def _tree_job(tree: Tree, used: set[str]) -> TreeJob:
    return TreeJob(tree_id(tree.shape, used), tree.site, tree.shape, tree.members)


def tree_id(shape: TreeShape, used: set[str]) -> str:
    """An id for a new tree that is not in `used`, which then holds it."""
    first = f"tree-{shape.fingerprint[:8]}"
    found, number = first, 2
    while found in used:
        found, number = f"{first}-{number}", number + 1
    used.add(found)
    return found


def best_tree(
    project: Project, member: TreeMember, site: str | None, trees: Sequence[TreeJob]
) -> TreeJob | None:
    """The deployed tree that should take a new query: the one that it makes least dearer, at this site, or
    at any (None). None: none can, since rows and keys of a tree are fixed when it is made. A tree of its own
    would read the stream from the beginning; that is not weighed here."""
    able = [tree for tree in trees if site in (None, tree.site) and tree.shape.takes(member)]
    costs = calibrated(project)

    def added(tree: TreeJob) -> float:
        loads = Loads(project, tree.site, (*tree.members, member), costs(tree.site))
        return loads.price((*tree.members, member)).total - loads.price(tree.members).total

    return min(able, key=added, default=None)
