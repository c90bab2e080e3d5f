"""Scalar expressions: the parser's tree -> typed expressions of the plan, with every binding in place."""

from __future__ import annotations

from headrace.sql import calls, operators
from headrace.sql.binder import ScalarBinder
from headrace.sql.operators import conjuncts_of

BOUND_BY = (operators, calls)
"""Imported for the table they fill."""

__all__ = ["BOUND_BY", "ScalarBinder", "conjuncts_of"]
