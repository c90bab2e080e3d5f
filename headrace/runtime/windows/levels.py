"""The fragments of one set of keys, with the queries that group by it.

The finest level has the fragments as they came and is what is stored. A coarser one has them put together
over the keys that its queries do not ask for: once for each fragment that comes, however many queries and
windows read it, and it can be made again from the finest at any time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from headrace.runtime.windows.answers import Answers
from headrace.runtime.windows.keys import Keys
from headrace.runtime.windows.lanes import every_lane
from headrace.runtime.windows.log import Log
from headrace.runtime.windows.rows import Rows, combined
from headrace.runtime.windows.spec import QuerySpec, TreeSpec


class Level:
    """`places` says which keys of the tree it has."""

    def __init__(self, spec: TreeSpec, places: tuple[int, ...]) -> None:
        self.spec, self.places = spec, places
        self.columns = tuple(spec.keys[k] for k in places)
        self.keys, self.log = Keys(self.columns), Log(spec.partials)
        everything = tuple(range(len(spec.keys)))
        self._queries = [
            (number, query)
            for number, query in enumerate(spec.queries)
            if (everything if query.keys is None else query.keys) == places
        ]
        self.plan()

    @property
    def queries(self) -> list[QuerySpec]:
        return [query for _, query in self._queries]

    def plan(self) -> None:
        """Forget all that was made from the log."""
        self.answers = Answers(self.spec.partials, self._queries, self.log, self.keys)

    def add(self, rows: Rows) -> None:
        """Sorted rows; some may be of a time that windows have been given of."""
        if self.log.add(rows):
            self.plan()
        else:
            self.answers.touch(rows.starts)

    def between(self, after: int | None, upto: int) -> Iterator[tuple[int, pa.RecordBatch]]:
        return self.answers.between(after, upto)

    def forget(self, horizon: int) -> None:
        self.log.drop_before(horizon)
        self.answers.forget(horizon)


class Coarse(Level):
    """A level over some of the keys."""

    def __init__(self, spec: TreeSpec, places: tuple[int, ...]) -> None:
        super().__init__(spec, places)
        self._lanes = every_lane(spec)
        self._own = replace(spec, queries=tuple(self.queries))
        self._coarse = np.zeros(0, np.int32)
        """The code here of each code of the finest level."""

    def add_from(self, finest: Keys, rows: Rows) -> None:
        """Rows under the codes of the finest level."""
        if len(self._coarse) < len(finest):
            self._learn(finest)
        codes = self._coarse[rows.codes]
        coarse = Rows(rows.starts, codes, rows.pushes, rows.values, rows.valid)
        self.add(combined(coarse, self._lanes, self._own))

    def _learn(self, finest: Keys) -> None:
        known, columns = len(self._coarse), finest.columns()
        fresh = {c.name: columns[k].slice(known) for c, k in zip(self.columns, self.places, strict=True)}
        if self.columns:
            codes = self.keys.encode(pa.table(fresh))
        else:
            codes = self.keys.encode(pa.table({"row": np.zeros(len(finest) - known)}))
        self._coarse = np.concatenate([self._coarse, codes])
