"""Where trees would run if they could be moved: the dearest first, to the site that is then the least loaded.

A tree runs where its queries give their answers, until it is moved, so this is only told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from headrace.catalog.model import Project, Site
from headrace.plan.shared import Tree


def used_sites(project: Project) -> tuple[Site, ...]:
    """Where trees can run. `local` is always in the catalog; where it was not declared and nothing is there,
    it is no place to send work to."""
    named = {query.site for query in project.queries.values()} | {s.site for s in project.streams.values()}
    default = Site(name="local")
    sites = [site for site in project.sites.values() if site.name in named or site != default]
    return tuple(sites) or tuple(project.sites.values())


def spread(trees: Sequence[Tree], sites: Sequence[Site]) -> list[Tree]:
    """The trees where the most loaded site has less to do; as they are where that does not help. What a tree
    costs is taken to be the same everywhere."""
    capacity = {site.name: site.cpu for site in sites}
    moved: dict[tuple[str, ...], Tree] = {}
    load = dict.fromkeys(capacity, 0.0)
    for tree in sorted(trees, key=lambda tree: -tree.cost):
        site = min(load, key=lambda name: load[name] + tree.cost / capacity[name])
        load[site] += tree.cost / capacity[site]
        moved[tree.queries] = replace(tree, site=site)
    better = heaviest(list(moved.values()), capacity) < heaviest(trees, capacity)
    return [moved[tree.queries] for tree in trees] if better else list(trees)


def heaviest(trees: Sequence[Tree], capacity: Mapping[str, float]) -> float:
    """The load of the most loaded site."""
    load = dict.fromkeys(capacity, 0.0)
    for tree in trees:
        load[tree.site] += tree.cost / capacity[tree.site]
    return max(load.values(), default=0.0)


def advice(project: Project, trees: Mapping[str, Tree]) -> list[str]:
    """Which trees would be better off on another site; `trees` by name."""
    sites = used_sites(project)
    if len(sites) < 2 or not trees or project.distributes:
        return []
    wanted = spread(list(trees.values()), sites)
    moves = [
        f"{name} would be moved from {tree.site} to {better.site}"
        for (name, tree), better in zip(trees.items(), wanted, strict=True)
        if tree.site != better.site
    ]
    why = (
        "to even out the load of the sites: headrace move TREE SITE, or planner: {distribution: ours} where"
        " queries name no site"
    )
    return [f"{'; '.join(moves)} {why}"] if moves else []
