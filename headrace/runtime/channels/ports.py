"""The channels that a job is connected to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headrace.runtime.channels.files import FileChannel


@dataclass(frozen=True, slots=True)
class Ports:
    inputs: Mapping[str, FileChannel] = field(default_factory=dict)
    """By derived stream."""
    output: FileChannel | None = None
    never_late: frozenset[str] = frozenset()
    """Those inputs whose late rows were dropped, and counted, before."""
