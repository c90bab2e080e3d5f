"""Expressions as SQL text, whatever the engine: one meaning, two spellings.

What holds: for the same input values, the texts of `SparkWriter` (Spark 4, ANSI mode, session zone UTC)
and of `DuckWriter` (naive TIMESTAMP holding UTC) give the same value, and neither raises on any data; the
one exception is a BIGINT sum that overflows, where a silent answer would be a wrong one. Where the engines
agree, the text is shared, here; where they do not, each subclass spells our meaning (plan/functions.py):

- operands are cast to the type they meet in before the operator sees them, so neither engine's own
  coercion rules (DECIMAL literals, INT arithmetic) ever apply;
- BIGINT arithmetic that overflows gives NULL, as a cast to a type that is too small does;
- an INTERVAL exists only inside expressions and is a BIGINT of microseconds in both engines: exact, and
  free of calendars and zones;
- round(x, d) is spelled out (floor of |x| * 10^d + 0.5), because Spark rounds the decimal digits of a
  double and DuckDB its binary value; sums, exp, ln and power may still differ in the last bit;
- LIKE has no escape character; substring is SQL's: positions start .. start + length - 1, of which those
  before 1 do not exist (so substring('abc', 0, 2) is 'a', and a negative length gives '');
- NaN equals NaN and is larger than every number, -0.0 equals 0.0 (both engines agree).

Known to differ: upper and lower of characters whose other case is several characters (ligatures, Greek with
iota, I with a dot; not ß), of a final sigma, and of letters newer than an engine's Unicode tables.

An argument that a text needs twice is written twice: the engines share common subexpressions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from headrace.errors import InternalError, NotSupported
from headrace.plan.expr import AggregateCall, Call, Case, Cast, ColumnRef, Expr, Literal
from headrace.plan.functions import TRUNC_UNITS, unify
from headrace.plan.types import INTEGERS, NUMBERS, DataType

T = DataType
WIDENINGS = frozenset(
    {
        (T.INT, T.BIGINT),
        (T.INT, T.FLOAT),
        (T.INT, T.DOUBLE),
        (T.BIGINT, T.FLOAT),
        (T.BIGINT, T.DOUBLE),
        (T.FLOAT, T.DOUBLE),
    }
)
"""Casts between numbers that every value survives."""
_COMPARISONS = frozenset({"=", "<>", "<", "<=", ">", ">="})
_PARTS = frozenset({"year", "month", "day", "hour", "minute", "second"})
_INT_MAX = 2**31 - 1
_WHOLE = 2.0**52
"""A double from here on has no fraction left to round."""


class ExprWriter(ABC):
    """Writes expressions in one SQL dialect. Every text is closed: it can stand in any place."""

    types: dict[DataType, str]

    def __init__(self) -> None:
        self._calls: dict[str, Callable[[Call], str]] = {
            **dict.fromkeys(("+", "-", "*"), self._arithmetic),
            **dict.fromkeys(_COMPARISONS, self._compare),
            **dict.fromkeys(("and", "or"), self._logic),
            **dict.fromkeys(("floor", "ceil"), self._whole),
            **dict.fromkeys(("greatest", "least", "coalesce"), self._choose),
            **dict.fromkeys(_PARTS, self._part),
            "/": self._divide,
            "%": self._remainder,
            "negate": self._negate,
            "not": lambda c: f"(NOT {self.expr(c.args[0])})",
            "is_null": lambda c: f"({self.expr(c.args[0])} IS NULL)",
            "is_not_null": lambda c: f"({self.expr(c.args[0])} IS NOT NULL)",
            "in": self._in,
            "like": self._like,
            "abs": self._abs,
            "sign": lambda c: self.sign(self.as_type(c.args[0], T.DOUBLE)),
            "round": self._round,
            "sqrt": lambda c: self._inside("sqrt", "<", c),
            "exp": lambda c: f"exp({self.as_type(c.args[0], T.DOUBLE)})",
            "ln": lambda c: self._inside("ln", "<=", c),
            "log10": lambda c: self._inside("log10", "<=", c),
            "power": lambda c: self.power(*(self.as_type(a, T.DOUBLE) for a in c.args)),
            "nullif": self._nullif,
            "upper": lambda c: self.upper(self.expr(c.args[0])),
            "lower": lambda c: f"lower({self.expr(c.args[0])})",
            "trim": lambda c: f"trim(BOTH ' ' FROM {self.expr(c.args[0])})",
            "length": lambda c: f"CAST(length({self.expr(c.args[0])}) AS {self.type(T.INT)})",
            "concat": lambda c: f"({' || '.join(map(self.expr, c.args))})",
            "substring": self._substring,
            "date_trunc": self._date_trunc,
            "unix_seconds": lambda c: self.unix_seconds(self.expr(c.args[0])),
            "unix_micros": lambda c: self.micros(self.expr(c.args[0])),
        }

    # The parts of a text.

    def expr(self, e: Expr) -> str:
        """The text of a scalar expression."""
        match e:
            case ColumnRef():
                return self.name(e.name)
            case Literal():
                return self.literal(e)
            case Cast():
                return self.as_type(e.arg, e.type)
            case Case():
                return self._case(e)
            case Call():
                return self._calls[e.function](e)
        raise InternalError(f"no SQL for {e!r}")

    def type(self, t: DataType) -> str:
        return self.types[t]

    def literal(self, l: Literal) -> str:  # noqa: E741
        """The text of a constant, of exactly its type."""
        if l.value is None:
            return f"CAST(NULL AS {self.type(l.type)})"
        match l.type:
            case T.BOOLEAN:
                return "TRUE" if l.value else "FALSE"
            case T.STRING:
                return self.string(str(l.value))
            case T.DOUBLE:
                return self.double(float(l.value))
            case T.FLOAT:
                return f"CAST({self.double(float(l.value))} AS {self.type(T.FLOAT)})"
            case T.INT:
                return f"CAST({int(l.value)} AS {self.type(T.INT)})"
            case T.DATE:
                return self.date(int(l.value))
            case T.TIMESTAMP:
                return self.instant(self.bigint(int(l.value)))
        return self.bigint(int(l.value))

    def as_type(self, e: Expr, to: DataType) -> str:
        """The expression, cast to `to`; a constant is written in that type at once."""
        if isinstance(e, Literal) and (e.type, to) in WIDENINGS and to is not T.FLOAT:
            value = e.value if e.value is None or to is T.BIGINT else float(e.value)
            return self.literal(Literal(value, to))
        return self.convert(self.expr(e), e.type, to)

    def convert(self, text: str, of: DataType, to: DataType) -> str:
        """A text of type `of` as type `to`, NULL where the value does not fit."""
        if of is to:
            return text
        if of in NUMBERS and to in NUMBERS and (of, to) not in WIDENINGS:
            return self.narrow(text, of, to)
        if (of, to) == (T.DATE, T.TIMESTAMP):
            return self.midnight(text)
        return f"CAST({text} AS {self.type(to)})"

    # Scalars that both engines spell alike.

    def _arithmetic(self, c: Call) -> str:
        if c.type is T.TIMESTAMP:
            moved = [self.micros(self.expr(a)) if a.type is T.TIMESTAMP else self.expr(a) for a in c.args]
            return self.instant(self.checked(c.function, *moved))
        left, right = (self.as_type(a, c.type) for a in c.args)
        if c.type is T.DOUBLE:
            return f"({left} {c.function} {right})"
        return self.checked(c.function, left, right)

    def _divide(self, c: Call) -> str:
        left, right = (self.as_type(a, T.DOUBLE) for a in c.args)
        return f"({left} / nullif({right}, {self.double(0.0)}))"

    def _remainder(self, c: Call) -> str:
        left, right = (self.as_type(a, c.type) for a in c.args)
        if c.type is T.DOUBLE:
            return f"({left} % nullif({right}, {self.double(0.0)}))"
        return self.remainder(left, f"nullif({right}, {self.bigint(0)})")

    def _negate(self, c: Call) -> str:
        value = self.as_type(c.args[0], c.type)
        if c.type in (T.BIGINT, T.INTERVAL):
            return self.checked("-", self.bigint(0), value)
        return f"(- {value})"

    def _compare(self, c: Call) -> str:
        left, right = self._alike(c.args)
        return f"({left} {c.function} {right})"

    def _in(self, c: Call) -> str:
        value, *among = self._alike(c.args)
        return f"({value} IN ({', '.join(among)}))"

    def _alike(self, args: tuple[Expr, ...]) -> list[str]:
        """The arguments in the one type they can be compared in."""
        to = unify(tuple(a.type for a in args))
        if to is None:
            raise InternalError(f"no common type of {args!r}")
        return [self.as_type(a, to) for a in args]

    def _logic(self, c: Call) -> str:
        return f"({f' {c.function.upper()} '.join(map(self.expr, c.args))})"

    def _choose(self, c: Call) -> str:
        args = [self.as_type(a, c.type) for a in c.args]
        return args[0] if len(args) == 1 else f"{c.function}({', '.join(args)})"

    def _nullif(self, c: Call) -> str:
        left, right = self._alike(c.args)
        return f"(CASE WHEN ({left} = {right}) THEN NULL ELSE {self.expr(c.args[0])} END)"

    def _case(self, e: Case) -> str:
        parts = [f"WHEN {self.expr(c)} THEN {self.as_type(v, e.type)}" for c, v in e.branches]
        if e.otherwise is not None:
            parts.append(f"ELSE {self.as_type(e.otherwise, e.type)}")
        return f"(CASE {' '.join(parts)} END)"

    def _abs(self, c: Call) -> str:
        value = self.as_type(c.args[0], c.type)
        return self.abs_bigint(value) if c.type is T.BIGINT else f"abs({value})"

    def _whole(self, c: Call) -> str:
        if c.args[0].type in INTEGERS:
            return self.as_type(c.args[0], T.BIGINT)
        return self.whole(c.function, self.as_type(c.args[0], T.DOUBLE))

    def _inside(self, function: str, outside: str, c: Call) -> str:
        """A function of positive numbers; NULL for a number that is `outside` zero, NaN for NaN."""
        value = self.as_type(c.args[0], T.DOUBLE)
        return f"(CASE WHEN ({value} {outside} {self.double(0.0)}) THEN NULL ELSE {function}({value}) END)"

    def _round(self, c: Call) -> str:
        value = self.as_type(c.args[0], T.DOUBLE)
        digits = c.args[1] if len(c.args) == 2 else Literal(0, T.INT)
        if not isinstance(digits, Literal):
            raise NotSupported(
                "round with a number of digits that is not a constant",
                hint="Write the digits as a number: round(x, 2).",
            )
        if digits.value is None:
            return f"CAST(NULL AS {self.type(T.DOUBLE)})"
        return self._rounded(value, int(digits.value))

    def _rounded(self, value: str, digits: int) -> str:
        """Half away from zero; a number too large to have a fraction at that digit is itself."""
        factor = self.double(float(10 ** min(abs(digits), 308)))
        scale, unscale = ("*", "/") if digits >= 0 else ("/", "*")
        scaled = f"({value} {scale} {factor})"
        below = f"CAST(floor(abs({scaled})) AS {self.type(T.DOUBLE)})"
        # Not floor(x + 0.5): that sum is itself rounded, and 1.0 for the number right below a half.
        up = f"((abs({scaled}) - {below}) >= {self.double(0.5)})"
        near = f"({below} + CASE WHEN {up} THEN {self.double(1.0)} ELSE {self.double(0.0)} END)"
        result = f"({self.sign(scaled)} * ({near} {unscale} {factor}))"
        return f"(CASE WHEN (abs({scaled}) < {self.double(_WHOLE)}) THEN {result} ELSE {value} END)"

    def _like(self, c: Call) -> str:
        return f"({self.expr(c.args[0])} LIKE {self.pattern(c.args[1])})"

    def _substring(self, c: Call) -> str:
        text, *numbers = c.args
        if all(isinstance(n, Literal) and n.value is not None for n in numbers):
            return self._fixed_substring(text, [int(n.value or 0) for n in numbers if isinstance(n, Literal)])
        bounds = [self.as_type(n, T.BIGINT) for n in numbers]
        # Held inside INT, start + length cannot overflow, and no text is longer.
        start, *length = map(self._inside_int, bounds)
        first = f"greatest({start}, {self.bigint(1)})"
        if not length:
            return self._null_if_any(bounds, f"substring({self.expr(text)}, {self.small(first)})")
        count = self._inside_int(f"greatest((({start} + {length[0]}) - {first}), {self.bigint(0)})")
        cut = f"substring({self.expr(text)}, {self.small(first)}, {self.small(count)})"
        return self._null_if_any(bounds, cut)

    def _fixed_substring(self, text: Expr, numbers: list[int]) -> str:
        start, *length = numbers
        first = min(max(start, 1), _INT_MAX)
        if not length:
            return f"substring({self.expr(text)}, {first})"
        count = min(max(start + length[0] - first, 0), _INT_MAX)
        return f"substring({self.expr(text)}, {first}, {count})"

    def _inside_int(self, number: str) -> str:
        """A BIGINT held between the ends of INT, which the engines' substring takes."""
        return f"least(greatest({number}, {self.bigint(-_INT_MAX)}), {self.bigint(_INT_MAX)})"

    def _null_if_any(self, args: list[str], text: str) -> str:
        """greatest and least skip NULLs, so a NULL argument must be seen before them."""
        nulls = " OR ".join(f"({a} IS NULL)" for a in args)
        return f"(CASE WHEN ({nulls}) THEN NULL ELSE {text} END)"

    def _date_trunc(self, c: Call) -> str:
        unit = c.args[0]
        if not isinstance(unit, Literal) or str(unit.value).lower() not in TRUNC_UNITS:
            raise NotSupported(
                "date_trunc to a unit other than " + ", ".join(TRUNC_UNITS),
                hint="Write the unit as a constant: date_trunc('minute', ts).",
            )
        return f"date_trunc('{str(unit.value).lower()}', {self.expr(c.args[1])})"

    def _part(self, c: Call) -> str:
        return f"CAST({c.function}({self.expr(c.args[0])}) AS {self.type(T.INT)})"

    # Aggregates.

    def aggregate(self, c: AggregateCall) -> str:
        """The text of an aggregate call."""
        if c.arg is None:
            return "count(*)"
        if c.function in ("count", "min", "max"):
            return f"{c.function}({self.expr(c.arg)})"
        if c.function == "approx_count_distinct":
            return self.distinct(self.expr(c.arg))
        if c.function == "sum":
            value = self.as_type(c.arg, c.type)
            if c.type is T.DOUBLE:
                return self.total(value)
            return f"CAST(sum({value}) AS {self.type(c.type)})" if c.type is T.BIGINT else f"sum({value})"
        return self.statistic(c.function, self.as_type(c.arg, T.DOUBLE))

    def total(self, value: str) -> str:
        """The sum of a DOUBLE."""
        return f"sum({value})"

    # What each engine spells in its own way.

    @abstractmethod
    def name(self, column: str) -> str:
        """A quoted identifier: one column, whatever characters its name has."""

    @abstractmethod
    def string(self, value: str) -> str: ...

    @abstractmethod
    def double(self, value: float) -> str:
        """A constant that is a DOUBLE, never a DECIMAL."""

    @abstractmethod
    def bigint(self, value: int) -> str: ...

    @abstractmethod
    def date(self, days: int) -> str:
        """A constant DATE from days since the epoch."""

    @abstractmethod
    def instant(self, micros: str) -> str:
        """A TIMESTAMP from a BIGINT text of microseconds since the epoch."""

    @abstractmethod
    def micros(self, instant: str) -> str:
        """The microseconds since the epoch of a TIMESTAMP text."""

    @abstractmethod
    def unix_seconds(self, instant: str) -> str:
        """Whole seconds since the epoch, towards the past."""

    @abstractmethod
    def midnight(self, date: str) -> str:
        """The TIMESTAMP at which a DATE begins."""

    @abstractmethod
    def checked(self, operator: str, left: str, right: str) -> str:
        """BIGINT arithmetic, NULL on overflow."""

    @abstractmethod
    def remainder(self, left: str, right: str) -> str:
        """BIGINT remainder; `right` is not zero."""

    @abstractmethod
    def abs_bigint(self, value: str) -> str: ...

    @abstractmethod
    def narrow(self, text: str, of: DataType, to: DataType) -> str:
        """A cast between numbers that can fail: cut towards zero, NULL where it does not fit."""

    @abstractmethod
    def small(self, text: str) -> str:
        """A BIGINT text, known to fit, as the integer type of string positions."""

    @abstractmethod
    def whole(self, function: str, value: str) -> str:
        """floor or ceil of a DOUBLE as BIGINT, NULL where it does not fit."""

    @abstractmethod
    def sign(self, value: str) -> str: ...

    @abstractmethod
    def power(self, base: str, exponent: str) -> str: ...

    @abstractmethod
    def upper(self, value: str) -> str: ...

    @abstractmethod
    def pattern(self, e: Expr) -> str:
        """The pattern of a LIKE, backslashes standing for themselves."""

    @abstractmethod
    def distinct(self, value: str) -> str: ...

    @abstractmethod
    def statistic(self, function: str, value: str) -> str:
        """avg, variances, standard deviations and the median of a DOUBLE."""
