"""Weavers that a Python worker of Spark has in memory from the batch before.

A worker that is used again goes on with what it holds, if that is what the state store has: each weaver is
held with the version of the state it has written. Any other worker restores its weaver from the store.

In a module of its own because Spark sends code to its workers by value, and what is in a function's module
would be sent with it, empty, for every task. This module is imported there and lives as long as the worker.
"""

from __future__ import annotations

from headrace.runtime.windows.weaver import Weaver

_HELD: dict[str, tuple[str, str, Weaver]] = {}


def take(name: str, spec: str, version: str) -> Weaver | None:
    """The weaver of this name, if it was made for the spec and has written this version."""
    held = _HELD.pop(name, None)
    return held[2] if held is not None and held[:2] == (spec, version) else None


def keep(name: str, spec: str, version: str, weaver: Weaver) -> None:
    _HELD[name] = (spec, version, weaver)
