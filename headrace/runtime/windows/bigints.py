"""BIGINT sums: added modulo 2^64, and refused exactly where that is not the true sum.

numpy and Arrow wrap a sum that leaves BIGINT. Let S be the true sum, W the wrapped one and A the sum of the
same values in doubles. S = W + k * 2^64 with a whole k; S fits a BIGINT if and only if k = 0, and then it is
W. Where A is less than 2^63 away from S,

    |A - W| < 2^63 if k = 0, and |A - W| > 2^64 - 2^63 = 2^63 if not,

so one comparison tells, however close to the limits S is: A need not be good, only not far off.

Holds when the added values are true ones, and there are fewer than 2^26 of them in a sum. In whatever order
they are added, n values of at most 2^63 have partial sums of at most n * 2^63, each rounded by at most 2^-53
of itself, and are rounded themselves by at most 2^9: A is off by less than n^2 * 2^10 + n * 2^9, about half
of 2^63 for n = 2^26. A batch has 200,000 rows, and 2^26 fragments of one key in one window are gigabytes.

Values are true because every step refuses what has wrapped before the next one adds it: the rows of a batch
(opening.py), parts of a fragment from several batches or of several keys (rows.py), the fragments of a window
(finish.py). So a sum is also refused where a part of it, inside one fragment, does not fit though the whole
would. A sum that no query reads, as one over keys that only others group by, may wrap.
"""

from __future__ import annotations

import numpy as np

from headrace.errors import EngineError
from headrace.runtime.windows.lanes import Array
from headrace.runtime.windows.spec import Partial, TreeSpec

LIMIT = 2.0**63
_SHOWN = 3


def has_wrapped(wrapped: Array, real: Array) -> bool:
    """Whether one of the sums is not the true one; `real` are the same sums in doubles."""
    return bool((np.abs(real - wrapped) >= LIMIT).any())


def overflow(name: str, query: str) -> EngineError:
    """Of an output of a query in one of its windows."""
    return _refusal(f"the sum {name} of query {_plain(query)} does not fit a BIGINT")


def refuse_part(partial: Partial, spec: TreeSpec | None) -> None:
    """A sum in a partial column has wrapped. That is an error where a query of the spec reads it; without a
    spec it is not known who does."""
    found = [] if spec is None else _readers(spec, partial)
    if found:
        (name, query), others = found[0], [q for _, q in found[1:]]
        more = f" and {len(others) - _SHOWN} more" if others[_SHOWN:] else ""
        also = f" (also of {', '.join(others[:_SHOWN])}{more})" if others else ""
        raise _refusal(f"the sum {name} of query {query}{also} does not fit a BIGINT within one fragment")
    if spec is None:
        raise _refusal("a sum does not fit a BIGINT within one fragment")


def _readers(spec: TreeSpec, partial: Partial) -> list[tuple[str, str]]:
    """(output, query) of all that read a partial column, each query once."""
    found: dict[str, str] = {}
    for query in spec.queries:
        for output in query.outputs:
            if any(spec.partials[p] == partial for p in output.partials):
                found.setdefault(_plain(query.id), output.name)
    return [(name, query) for query, name in found.items()]


def _plain(query: str) -> str:
    """The name of a query, which may go by another id in a tree that it has left before (history.py)."""
    return query.partition("@")[0]


def _refusal(message: str) -> EngineError:
    error = EngineError(message, hint="Cast the argument to DOUBLE, or drop the query.")
    # All that comes out of one of Spark's Python workers is the text of a traceback, and that has notes.
    error.add_note(f"hint: {error.hint}")
    return error
