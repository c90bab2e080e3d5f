"""Which partial columns of a tree a query shares with others."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.plan.placed import TreeJob


@dataclass(frozen=True, slots=True)
class Parts:
    own: int
    """Partial columns that the query needs."""
    shared: int
    """How many of them another query needs too."""
    others: tuple[str, ...]
    """Those queries."""


def parts_of(tree: TreeJob, query: str) -> Parts:
    # Imported here: it brings the engine of trees with it.
    from headrace.runtime.windows.tree import woven_spec

    specs = woven_spec(tree).tree.queries
    names = [member.query for member in tree.members]
    needs = {
        name: {p for output in spec.outputs for p in output.partials}
        for name, spec in zip(names, specs, strict=True)
    }
    mine = needs.pop(query)
    others = tuple(name for name, theirs in needs.items() if mine & theirs)
    return Parts(len(mine), len(mine.intersection(set().union(*needs.values()))), others)
