"""Whether an engine's rows are right.

Headrace must give the whole reference. Plain Spark leaves the last windows open, since nothing moves its
watermark past the last row: it must give every window up to the last one it gave, and none wrong. A join
without an outer side waits for no watermark, so there it must give all rows.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from headrace.runtime.compare import multiset_difference

END = "window_end"


def given_part(reference: pa.Table, got: pa.Table) -> pa.Table:
    """The reference up to the last window that `got` holds; all of it where rows have no window."""
    if END not in reference.column_names:
        return reference
    if got.num_rows == 0:
        return reference.slice(0, 0)
    return reference.filter(pc.less_equal(reference[END], pc.max(got[END])))


def problem(reference: pa.Table, got: pa.Table, *, open_end: bool) -> str:
    """What is wrong with the rows; empty: nothing. `open_end`: the last windows may be left out."""
    expected = given_part(reference, got) if open_end else reference
    difference = multiset_difference(expected, got)
    if difference:
        return difference.text()
    return "it gave no rows" if reference.num_rows and not got.num_rows else ""
