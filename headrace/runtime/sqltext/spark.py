"""Expressions in Spark SQL (Spark 4, ANSI mode, session time zone UTC).

ANSI mode raises where older Sparks wrapped or gave NULL, so everything that can fail on data is written
with a `try_` function or behind a guard. Two traps of the text itself: string literals process backslash
escapes, and Spark replaces `${...}` in SQL text before parsing it, so a dollar sign is written as an escape.
"""

from __future__ import annotations

import math

from headrace.plan.expr import Expr, Literal
from headrace.plan.types import DataType
from headrace.runtime.sqltext.writer import ExprWriter

T = DataType
_CHECKED = {"+": "try_add", "-": "try_subtract", "*": "try_multiply"}
_ESCAPES = {
    "\\": "\\\\",
    "'": "\\'",
    "$": "\\u0024",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\0": "\\u0000",
}
_TOP = 2**63 - 1


class SparkWriter(ExprWriter):
    types = {  # noqa: RUF012
        T.BOOLEAN: "BOOLEAN",
        T.INT: "INT",
        T.BIGINT: "BIGINT",
        T.FLOAT: "FLOAT",
        T.DOUBLE: "DOUBLE",
        T.STRING: "STRING",
        T.DATE: "DATE",
        T.TIMESTAMP: "TIMESTAMP",
        T.INTERVAL: "BIGINT",
    }

    def name(self, column: str) -> str:
        return "`" + column.replace("`", "``") + "`"

    def string(self, value: str) -> str:
        return "'" + "".join(_ESCAPES.get(c, c) for c in value) + "'"

    def double(self, value: float) -> str:
        if math.isnan(value) or math.isinf(value):
            return f"CAST('{value}' AS DOUBLE)"
        text = f"{value!r}D"
        return f"({text})" if text.startswith("-") else text

    def bigint(self, value: int) -> str:
        return f"({value}L)" if value < 0 else f"{value}L"

    def date(self, days: int) -> str:
        return f"date_from_unix_date({days})"

    def instant(self, micros: str) -> str:
        return f"timestamp_micros({micros})"

    def micros(self, instant: str) -> str:
        return f"unix_micros({instant})"

    def unix_seconds(self, instant: str) -> str:
        return f"unix_seconds({instant})"

    def midnight(self, date: str) -> str:
        return f"try_cast({date} AS TIMESTAMP)"

    def checked(self, operator: str, left: str, right: str) -> str:
        return f"{_CHECKED[operator]}({left}, {right})"

    def remainder(self, left: str, right: str) -> str:
        return f"({left} % {right})"

    def abs_bigint(self, value: str) -> str:
        return f"abs(nullif({value}, {self.bigint(-_TOP - 1)}))"

    def narrow(self, text: str, of: DataType, to: DataType) -> str:
        if to is T.FLOAT:
            return self._to_float(text)
        if to is T.BIGINT:
            # try_cast lets 2^63 through and gives the largest BIGINT, which is the cut of no double.
            return f"nullif(try_cast({text} AS BIGINT), {self.bigint(_TOP)})"
        return f"try_cast({text} AS {self.type(to)})"

    def _to_float(self, text: str) -> str:
        """Spark gives an infinity for a finite number that is too large for a FLOAT."""
        ends = f"{self.double(math.inf)}, {self.double(-math.inf)}"
        single = f"CAST({text} AS FLOAT)"
        grown = f"(CAST({single} AS DOUBLE) IN ({ends})) AND NOT ({text} IN ({ends}))"
        return f"(CASE WHEN ({grown}) THEN NULL ELSE {single} END)"

    def small(self, text: str) -> str:
        return f"CAST({text} AS INT)"

    def whole(self, function: str, value: str) -> str:
        return (
            f"(CASE WHEN ({self.narrow(value, T.DOUBLE, T.BIGINT)} IS NOT NULL) THEN {function}({value}) END)"
        )

    def sign(self, value: str) -> str:
        return f"sign({value})"

    def power(self, base: str, exponent: str) -> str:
        return f"power({base}, {exponent})"

    def upper(self, value: str) -> str:
        return f"upper({value})"

    def pattern(self, e: Expr) -> str:
        if isinstance(e, Literal) and e.value is not None:
            return self.string(str(e.value).replace("\\", "\\\\"))
        return f"replace({self.expr(e)}, {self.string(chr(92))}, {self.string(chr(92) * 2)})"

    def distinct(self, value: str) -> str:
        return f"approx_count_distinct({value})"

    def statistic(self, function: str, value: str) -> str:
        return f"{function}({value})"
