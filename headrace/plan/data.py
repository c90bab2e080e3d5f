"""Plans and expressions as plain data, for what must outlive the process that planned it.

A node is an object with its class under "is" and what its constructor takes; the constructor checks it again.
Only the classes named here are ever made.
"""

from __future__ import annotations

from dataclasses import fields
from enum import StrEnum
from typing import Any

from headrace.errors import InternalError
from headrace.plan import bounds, channels, expr, logical, placed_network
from headrace.plan.placed import TreeJob, TreeMember, TreeShape
from headrace.plan.types import Column, DataType, Schema

_CLASSES: dict[str, type[Any]] = {
    made.__name__: made
    for made in (
        expr.ColumnRef,
        expr.Literal,
        expr.Call,
        expr.Cast,
        expr.Case,
        expr.AggregateCall,
        bounds.TimeBound,
        logical.WindowSpec,
        logical.StreamScan,
        logical.TableScan,
        logical.Filter,
        logical.Project,
        logical.Window,
        logical.Aggregate,
        logical.IntervalJoin,
        logical.TableJoin,
        logical.WindowJoin,
        Column,
        TreeShape,
        TreeMember,
        TreeJob,
        channels.DerivedScan,
        channels.DerivedStream,
        channels.ChannelJob,
        channels.ChannelPlan,
        placed_network.PlacedStream,
        placed_network.Channel,
        placed_network.PlacedJoin,
        placed_network.PlacedQuery,
        placed_network.PlacedNetwork,
    )
}


def to_data(value: object) -> Any:
    """Lists, objects and scalars for `json.dumps`."""
    if isinstance(value, DataType):
        return {"is": "DataType", "of": value.value}
    if value is None or (isinstance(value, bool | int | float | str) and not isinstance(value, StrEnum)):
        return value
    if isinstance(value, tuple):
        return [to_data(part) for part in value]
    if isinstance(value, Schema):
        return {"is": "Schema", "of": [to_data(column) for column in value]}
    name = type(value).__name__
    if _CLASSES.get(name) is not type(value):
        raise InternalError(f"a {name} has no form as data")
    own = {f.name: to_data(getattr(value, f.name)) for f in fields(value) if f.init}  # type: ignore[arg-type]
    return {"is": name, **own}


def from_data(data: Any) -> Any:
    """The inverse of `to_data`."""
    if isinstance(data, list):
        return tuple(from_data(part) for part in data)
    if not isinstance(data, dict):
        return data
    name, own = data["is"], {key: from_data(part) for key, part in data.items() if key != "is"}
    if name == "DataType":
        return DataType(own["of"])
    if name == "Schema":
        return Schema(own["of"])
    if name not in _CLASSES:
        raise InternalError(f'no class "{name}" for this data')
    return _CLASSES[name](**own)
