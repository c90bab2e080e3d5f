"""Who the members of a tree were, and with which edges and partial columns its kept fragments were made.

A tree may be started with other members than before. What it keeps does not name them, but a new member can
use the kept fragments only as far as these have its columns and are cut at the ends of its windows. So each
time the edges or the columns change, it is written down how far the fragments made before reach. From that
follows for a new member from when on all its windows are right (`valid_from`).

A member that leaves and comes back, or comes back as another query, goes by a new id: results of the earlier
one that are on their way are not taken for its own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from headrace.plan.placed import TreeJob
from headrace.runtime.windows.kept import Span, valid_from
from headrace.runtime.windows.opening import edge_classes, next_edges
from headrace.runtime.windows.runs import next_window
from headrace.runtime.windows.spec import QuerySpec, TreeSpec
from headrace.runtime.windows.tree import Validity, woven_spec

Edges = tuple[tuple[int, int], ...]
ALL = "*"
"""Stands among the columns where fragments have all rows of the tree, and not only those that some member
wanted."""


@dataclass(frozen=True, slots=True)
class Position:
    """How far a tree has come: no row later than `newest` was taken in, and no window that ends at the
    `watermark` or before is still to be given. Microseconds."""

    watermark: int
    newest: int


@dataclass(frozen=True, slots=True)
class Made:
    """Fragments made with these edges and columns start in [start, end); end None: they still are."""

    edges: Edges
    columns: frozenset[str]
    start: int | None = None
    end: int | None = None


@dataclass(frozen=True, slots=True)
class Known:
    """A member as it was taken in."""

    id: str
    fingerprint: str
    range: int
    slide: int
    valid_from: int | None

    @property
    def window(self) -> QuerySpec:
        return QuerySpec(self.id, self.range, self.slide, (), self.valid_from)


@dataclass(frozen=True, slots=True)
class History:
    members: Mapping[str, Known] = field(default_factory=dict)
    made: tuple[Made, ...] = ()
    serial: int = 0

    @property
    def valid(self) -> dict[str, Validity]:
        return {query: Validity(known.id, known.valid_from) for query, known in self.members.items()}

    def changed(self, tree: TreeJob, at: Position | None) -> History:
        """The history once the tree runs with these members; `at` None: it has taken in nothing yet."""
        prints = {m.query: m.fingerprint for m in tree.members}
        if prints == {query: known.fingerprint for query, known in self.members.items()}:
            return self
        before = () if at is None else self._until(at)
        serial = self.serial + 1
        spec = woven_spec(tree).tree
        columns = {query.id: _columns(spec, query) for query in spec.queries}
        members = {}
        for query in spec.queries:
            known = self.members.get(query.id)
            if known is None or known.fingerprint != prints[query.id]:
                start = None if at is None else _first(query, columns[query.id], before, at)
                name = query.id if serial == 1 else f"{query.id}@{serial}"
                known = Known(name, prints[query.id], query.range, query.slide, start)
            members[query.id] = known
        now = Made(tuple(edge_classes(spec.queries)), frozenset().union(*columns.values()))
        return History(members, _appended(before, now, self._horizon(at)), serial)

    def _horizon(self, at: Position | None) -> int | None:
        """Every fragment that starts here or later is kept."""
        if at is None:
            return None
        starts = [next_window(k.window, at.watermark) * k.slide for k in self.members.values()]
        return min(starts, default=at.watermark)

    def _until(self, at: Position) -> tuple[Made, ...]:
        """What was made up to now, without what is no longer kept."""
        horizon = self._horizon(at)
        assert horizon is not None
        found = []
        for made in self.made:
            end = made.end
            if end is None:
                end = int(next_edges(np.asarray([at.newest]), made.edges)[0])
            start = horizon if made.start is None else max(horizon, made.start)
            if start < end:
                found.append(replace(made, start=start, end=end))
        return tuple(found)

    def to_json(self) -> str:
        made = [asdict(one) | {"columns": sorted(one.columns)} for one in self.made]
        members = {query: asdict(known) for query, known in self.members.items()}
        return json.dumps({"members": members, "made": made, "serial": self.serial}, indent=1)

    @classmethod
    def from_json(cls, text: str) -> History:
        data = json.loads(text)
        members = {query: Known(**known) for query, known in data["members"].items()}
        return cls(members, tuple(map(_made, data["made"])), data["serial"])


def _made(data: Mapping[str, Any]) -> Made:
    edges = tuple((slide, offset) for slide, offset in data["edges"])
    return Made(edges, frozenset(data["columns"]), data["start"], data["end"])


def _appended(before: tuple[Made, ...], now: Made, horizon: int | None) -> tuple[Made, ...]:
    """Rows that come from now on may be as old as the oldest that is kept."""
    if before and before[-1].edges == now.edges and before[-1].columns == now.columns:
        return (*before[:-1], replace(before[-1], end=None))
    return (*before, replace(now, start=horizon))


def _columns(spec: TreeSpec, query: QuerySpec) -> frozenset[str]:
    """The partial columns that a query reads."""
    places = {place for output in query.outputs for place in output.partials}
    own = {spec.partials[place].name for place in places}
    return frozenset(own | {ALL if query.present is None else spec.partials[query.present].name})


def _first(query: QuerySpec, needs: frozenset[str], before: Sequence[Made], at: Position) -> int:
    """From when on a new member's windows are right, and still to be given."""
    spans, floor = [], 0
    for made in before:
        assert made.start is not None and made.end is not None
        spans.append(Span(made.start, made.end, made.edges))
        if not needs <= made.columns:
            # Fragments without its columns may lie anywhere before their end.
            floor = max(floor, made.end)
    now = max([at.newest, *(span.end for span in spans)])
    return valid_from(query, spans, now, max(floor, query.first_after(at.watermark) * query.slide))
