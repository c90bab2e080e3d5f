"""A tree as the bucket engine needs it: columns with names that do not depend on who asks for them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

import pyarrow as pa

from headrace.plan import logical as lp
from headrace.plan.expr import Expr
from headrace.plan.placed import TreeJob, TreeMember
from headrace.plan.text import format_expr
from headrace.plan.types import Column
from headrace.runtime.windows.opening import Argument, arguments_of
from headrace.runtime.windows.partials import needs_of
from headrace.runtime.windows.spec import Partial, QuerySpec, TreeSpec


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


def woven_spec(tree: TreeJob) -> WovenSpec:
    calls = [member.aggregate.aggregates for member in tree.members]
    needs = needs_of(calls)
    arguments, columns = arguments_of(call for named in calls for _, call in named)
    queries = tuple(
        QuerySpec(member.query, member.window.spec.range, member.window.spec.slide, outputs)
        for member, outputs in zip(tree.members, needs.outputs, strict=True)
    )
    keys = tuple(Column(key_name(key), key.type) for key in tree.keys)
    return WovenSpec(TreeSpec(keys, needs.partials, queries), arguments, tuple(sorted(columns.items())))


def key_name(key: Expr) -> str:
    text = f"{format_expr(key)} {key.type}"
    return f"k_{hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()[:12]}"


def as_rows(member: TreeMember, results: pa.Table) -> pa.Table:
    """Results of the engine as rows of the member's window aggregate."""
    columns = {name: results[name] for name in (lp.WINDOW_START, lp.WINDOW_END)}
    columns |= {name: results[key_name(key)] for name, key in member.aggregate.keys}
    columns |= {name: results[name] for name, _ in member.aggregate.aggregates}
    return pa.table(columns)
