"""A tree as the bucket engine needs it: columns with names that do not depend on who asks for them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from headrace.plan import logical as lp
from headrace.plan.expr import TRUE, AggregateCall, Case, Expr, conjunction
from headrace.plan.placed import TreeJob, TreeMember, TreeShape
from headrace.plan.text import format_expr
from headrace.plan.types import Column
from headrace.runtime.windows.opening import Argument, arguments_of
from headrace.runtime.windows.partials import needs_of
from headrace.runtime.windows.spec import Output, Partial, QuerySpec, TreeSpec

_PRESENT = "__present"


@dataclass(frozen=True, slots=True)
class Validity:
    """How a member goes by in a tree that may have had others."""

    id: str
    start: int | None = None


@dataclass(frozen=True)
class WovenSpec:
    """What the workers are told, and what level 1 has to compute for them."""

    tree: TreeSpec
    arguments: tuple[Argument, ...]
    columns: tuple[tuple[str, Expr], ...]
    """The argument columns of the rows, by name."""

    def to_json(self) -> str:
        pairs = [[a.partial.name, a.column] for a in self.arguments]
        return json.dumps({"tree": self.tree.to_json(), "arguments": pairs})


def from_json(text: str) -> tuple[TreeSpec, tuple[Argument, ...]]:
    """The spec and the arguments of a WovenSpec."""
    data = json.loads(text)
    tree = TreeSpec.from_json(data["tree"])
    by_name: dict[str, Partial] = {p.name: p for p in tree.partials}
    return tree, tuple(Argument(by_name[name], column) for name, column in data["arguments"])


def woven_spec(tree: TreeJob, valid: Mapping[str, Validity] | None = None) -> WovenSpec:
    """`valid` says for members that were added from when on they give windows, and the ids they go by."""
    calls = [_calls(tree, member) for member in tree.members]
    needs = needs_of(calls)
    arguments, columns = arguments_of(call for named in calls for _, call in named)
    shape = tree.shape
    queries = tuple(
        _query(shape, member, outputs, (valid or {}).get(member.query))
        for member, outputs in zip(tree.members, needs.outputs, strict=True)
    )
    keys = tuple(Column(key_name(key), key.type) for key in shape.keys)
    return WovenSpec(TreeSpec(keys, needs.partials, queries), arguments, tuple(sorted(columns.items())))


def _calls(tree: TreeJob, member: TreeMember) -> list[tuple[str, AggregateCall]]:
    """What a member asks of the tree's rows. One that wants only some of them asks for aggregates of what
    is NULL in the others, which every aggregate leaves out, and for the number of its rows."""
    named = list(member.aggregate.aggregates)
    where = tree.shape.where(member)
    if not where:
        return named
    mine = conjunction(where)
    chosen = [
        (name, AggregateCall(call.function, Case(((mine, TRUE if call.arg is None else call.arg),), None)))
        for name, call in named
    ]
    return [*chosen, (_PRESENT, AggregateCall("count", Case(((mine, TRUE),), None)))]


def _query(
    shape: TreeShape, member: TreeMember, outputs: tuple[Output, ...], valid: Validity | None
) -> QuerySpec:
    window = member.window.spec
    own = {key_name(key) for key in member.keys}
    places = tuple(place for place, key in enumerate(shape.keys) if key_name(key) in own)
    counted = next((o.partials[0] for o in outputs if o.name == _PRESENT), None)
    return QuerySpec(
        member.query if valid is None else valid.id,
        window.range,
        window.slide,
        tuple(o for o in outputs if o.name != _PRESENT),
        None if valid is None else valid.start,
        None if len(places) == len(shape.keys) else places,
        counted,
    )


def key_name(key: Expr) -> str:
    text = f"{format_expr(key)} {key.type}"
    return f"k_{hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()[:12]}"


def as_rows(member: TreeMember, results: pa.Table) -> pa.Table:
    """Results of the engine as rows of the member's window aggregate."""
    columns = {name: results[name] for name in (lp.WINDOW_START, lp.WINDOW_END)}
    columns |= {name: results[key_name(key)] for name, key in member.aggregate.keys}
    columns |= {name: results[name] for name, _ in member.aggregate.aggregates}
    return pa.table(columns)
