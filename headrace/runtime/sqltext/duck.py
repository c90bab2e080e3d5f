"""Expressions in DuckDB SQL. Timestamps are naive and hold UTC.

DuckDB's TRY gives NULL where an expression would raise; its casts from DOUBLE to integers round, so the
fraction is cut off first. `approx_count_distinct` is the exact number here: this is the reference.
"""

from __future__ import annotations

import math

from headrace.plan.expr import Expr
from headrace.plan.types import DataType
from headrace.runtime.sqltext.writer import ExprWriter

T = DataType


_GRID = "1099511627776.0::DOUBLE"
_LARGE = "140737488355328.0::DOUBLE"


class DuckWriter(ExprWriter):
    types = {  # noqa: RUF012
        T.BOOLEAN: "BOOLEAN",
        T.INT: "INTEGER",
        T.BIGINT: "BIGINT",
        T.FLOAT: "FLOAT",
        T.DOUBLE: "DOUBLE",
        T.STRING: "VARCHAR",
        T.DATE: "DATE",
        T.TIMESTAMP: "TIMESTAMP",
        T.INTERVAL: "BIGINT",
    }

    def name(self, column: str) -> str:
        return '"' + column.replace('"', '""') + '"'

    def string(self, value: str) -> str:
        parts = ["'" + part.replace("'", "''") + "'" for part in value.split("\0")]
        return parts[0] if len(parts) == 1 else f"({' || chr(0) || '.join(parts)})"

    def double(self, value: float) -> str:
        if math.isnan(value) or math.isinf(value):
            return f"CAST('{value}' AS DOUBLE)"
        text = repr(value)
        text = text if "e" in text else text + "e0"
        return f"({text})" if text.startswith("-") else text

    def bigint(self, value: int) -> str:
        return f"CAST({value} AS BIGINT)"

    def date(self, days: int) -> str:
        return f"CAST(DATE '1970-01-01' + {days} AS DATE)"

    def instant(self, micros: str) -> str:
        return f"TRY(make_timestamp({micros}))"

    def micros(self, instant: str) -> str:
        return f"epoch_us({instant})"

    def unix_seconds(self, instant: str) -> str:
        return f"(epoch_us(date_trunc('second', {instant})) // 1000000)"

    def midnight(self, date: str) -> str:
        return f"TRY_CAST({date} AS TIMESTAMP)"

    def checked(self, operator: str, left: str, right: str) -> str:
        return f"TRY({left} {operator} {right})"

    def remainder(self, left: str, right: str) -> str:
        # The smallest BIGINT % -1 is 0, and DuckDB raises on it.
        return f"CAST((CAST({left} AS HUGEINT) % {right}) AS BIGINT)"

    def abs_bigint(self, value: str) -> str:
        return f"TRY(abs({value}))"

    def narrow(self, text: str, of: DataType, to: DataType) -> str:
        if of is T.FLOAT:
            text = f"CAST({text} AS DOUBLE)"
        if of in (T.FLOAT, T.DOUBLE) and to is not T.FLOAT:
            text = f"trunc({text})"
        return f"TRY_CAST({text} AS {self.type(to)})"

    def small(self, text: str) -> str:
        return text

    def whole(self, function: str, value: str) -> str:
        return f"TRY_CAST({function}({value}) AS BIGINT)"

    def sign(self, value: str) -> str:
        return f"(CASE WHEN isnan({value}) THEN {value} ELSE CAST(sign({value}) AS DOUBLE) END)"

    def power(self, base: str, exponent: str) -> str:
        """C says 1 to any power is 1, even to NaN or an infinity; Java, and so Spark, says NaN."""
        strange = f"(abs({base}) = 1e0) AND (isnan({exponent}) OR isinf({exponent}))"
        return f"(CASE WHEN ({strange}) THEN {self.double(math.nan)} ELSE pow({base}, {exponent}) END)"

    def upper(self, value: str) -> str:
        # DuckDB has the capital letter that German keeps for headlines; Spark, as most people, writes SS.
        return f"upper(replace({value}, 'ß', 'SS'))"

    def pattern(self, e: Expr) -> str:
        return self.expr(e)

    def distinct(self, value: str) -> str:
        return f"count(DISTINCT {value})"

    def statistic(self, function: str, value: str) -> str:
        if function == "median":
            return f"quantile_cont({value}, 0.5)"
        if function in ("var_pop", "stddev_pop"):
            # DuckDB calls the spread of one value 0 without looking at it; of a NaN or infinity it is NaN.
            odd = f"count(*) FILTER (WHERE NOT isfinite({value})) > 0"
            return f"(CASE WHEN {odd} THEN 'nan'::DOUBLE ELSE {function}({value}) END)"
        if function == "avg":
            return f"({self.total(value)} / count({value}))"
        return f"{function}({value})"

    def total(self, value: str) -> str:
        """The sum of a DOUBLE, the same in whatever order rows come: with another order the last bit could
        differ, and with it every comparison with a value that lies there."""
        return self.joined_total(*(f"sum({part})" for part in self.split(value)))

    @staticmethod
    def split(value: str) -> tuple[str, str]:
        """A DOUBLE as a whole number of 2^-40 and a rest, which add up to it. Sums of whole numbers are
        exact. The rest is below 2^-40, where the order decides about nothing that is left in a DOUBLE, but
        for what is too large, or no number: that is all rest."""
        fixed = f"CAST(CASE WHEN abs({value}) < {_LARGE} THEN ({value}) * {_GRID} ELSE 0 END AS HUGEINT)"
        return fixed, f"(({value}) - CAST({fixed} AS DOUBLE) / {_GRID})"

    @staticmethod
    def joined_total(fixed: str, rest: str) -> str:
        """A sum from the sums of both parts; rounded once, so that what does not fit into a DOUBLE of the
        first is added to the second."""
        near = f"CAST({fixed} AS DOUBLE)"
        left = f"CAST({fixed} - CAST({near} AS HUGEINT) AS DOUBLE)"
        return f"({near} / {_GRID} + ({left} / {_GRID} + {rest}))"
