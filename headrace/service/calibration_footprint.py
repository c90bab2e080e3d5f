"""How many bytes a kept fragment row takes, in memory and in the state store, found without Spark: the
engine of a tree is run in this process over rows of which each is a fragment row of its own, or nearly so."""

from __future__ import annotations

import tracemalloc
from dataclasses import dataclass

import pyarrow as pa

from headrace.runtime.windows.opening import partial_table
from headrace.runtime.windows.spec import FRAGMENT
from headrace.runtime.windows.tree import WovenSpec
from headrace.runtime.windows.weaver import Weaver


@dataclass(frozen=True, slots=True)
class Footprint:
    state: float
    """Bytes of a fragment row in the state store."""
    memory: float
    """Bytes of it in a worker, with what is folded ahead for the next windows."""


def footprint(spec: WovenSpec, rows: pa.Table, batches: int) -> Footprint:
    """`rows` has FRAGMENT, the keys and the arguments, in order of time, and all of it is kept."""
    size = -(-rows.num_rows // batches)
    names = [key.name for key in spec.tree.keys]
    store: dict[str, bytes] = {}
    kept = 0
    started = not tracemalloc.is_tracing()
    if started:
        tracemalloc.start()
    before = _allocated()
    weaver = Weaver(spec.tree)
    for number in range(batches):
        batch = rows.slice(number * size, size).combine_chunks().to_batches()[0]
        partials = partial_table(batch, spec.arguments, names)
        kept += partials.num_rows
        weaver.take(partials)
        weaver.advance(int(batch[FRAGMENT][-1].as_py()))
        puts, deletes = weaver.changes()
        store |= puts
        for name in deletes:
            store.pop(name, None)
        del batch, partials
    held = _allocated() - before - sum(map(len, store.values()))
    if started:
        tracemalloc.stop()
    return Footprint(sum(map(len, store.values())) / kept, max(held, 0) / kept)


def _allocated() -> int:
    """Bytes of Python, which numpy's arrays are among, and of Arrow."""
    return tracemalloc.get_traced_memory()[0] + int(pa.total_allocated_bytes())
