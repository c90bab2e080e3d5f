"""Function names: what the user may write, what it is called in the plan, and what is refused by name."""

from __future__ import annotations

from headrace.plan.functions import AGGREGATES, SCALARS

_OPERATORS = frozenset({*"+-*/%=<>", "<>", "<=", ">=", "and", "or", "not", "in", "like", "negate"})
_OPERATORS |= {"is_null", "is_not_null"}

SCALAR_NAMES: dict[str, str] = {
    **{name: name for name in SCALARS if name not in _OPERATORS},
    "nvl": "coalesce",
    "ifnull": "coalesce",
    "mod": "%",
    "pow": "power",
    "substr": "substring",
    "char_length": "length",
    "character_length": "length",
    "len": "length",
    "ceiling": "ceil",
    "log": "ln",
    "signum": "sign",
    "ucase": "upper",
    "lcase": "lower",
    "dayofmonth": "day",
    "isnull": "is_null",
    "isnotnull": "is_not_null",
}
"""What may be called, and its name in `plan.functions`."""

AGGREGATE_NAMES: dict[str, str] = {
    **{name: name for name in AGGREGATES},
    "var": "var_samp",
    "variance": "var_samp",
    "stddev": "stddev_samp",
    "std": "stddev_samp",
    "mean": "avg",
    "approx_distinct": "approx_count_distinct",
}

SAME_TYPE = frozenset({"coalesce", "nullif", "greatest", "least"})
"""Functions whose arguments meet in one type, so that NULL and texts take the type of the others."""

# fmt: off
_OTHER_AGGREGATES = (
    "first", "last", "first_value", "last_value", "any_value", "mode", "collect_list", "collect_set",
    "array_agg", "string_agg", "listagg", "percentile", "percentile_approx", "approx_percentile",
    "max_by", "min_by", "corr", "covar_samp", "covar_pop", "skewness", "kurtosis", "count_if",
    "bool_and", "bool_or", "every", "some", "grouping",
)
# fmt: on
# fmt: off
_NOT_CONSTANT = (
    "now", "current_timestamp", "current_date", "current_time", "localtimestamp", "rand", "random",
    "randn", "uuid", "unix_timestamp", "monotonically_increasing_id",
)
# fmt: on

CLOCKS = frozenset({"current_timestamp", "current_date", "current_time", "localtimestamp"})
"""What SQL lets stand without parentheses."""

REFUSED: dict[str, tuple[str, str]] = {
    **{
        name: (f"the aggregate {name} is not supported", f"The aggregates: {', '.join(sorted(AGGREGATES))}.")
        for name in _OTHER_AGGREGATES
    },
    **{
        name: (
            f"{name} is not supported: the answer would depend on when the query runs",
            "Use the event-time column.",
        )
        for name in _NOT_CONSTANT
    },
    **{
        name: (f"{name}, a session window, is not supported", "Use window(ts, '5 minutes', '1 second').")
        for name in ("session_window", "session")
    },
    "window_time": ("window_time is not supported", "Use window_end."),
    "explode": ("explode is not supported", ""),
}
"""Names that are understood and refused: message and hint."""

ALL_NAMES = (*SCALAR_NAMES, *AGGREGATE_NAMES)
