"""CQ1-CQ6 of the paper (section 8.1), as in examples/smart-plugs-federated; a test holds the two equal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_KEYS = ("house", "household", "plug")
_SAME = " AND ".join(f"b.{key} = a.{key}" for key in _KEYS)
_ALL_KEYS = ", ".join(_KEYS)


def _window(minutes: int) -> str:
    return f"readings [RANGE {minutes} MINUTES SLIDE 1 SECOND]"


def _above(value: str) -> str:
    """Loads above a value that is made of the same window."""
    shown = ", ".join(f"a.{key}" for key in _KEYS)
    return (
        f"SELECT a.window_start, a.window_end, {shown}, count(*) AS n FROM {_window(5)} AS a "
        f"WHERE a.property = 'load' AND a.value > {value} FROM {_window(5)} AS b "
        f"WHERE b.property = 'load' AND {_SAME}) GROUP BY {shown}"
    )


def _beside(minutes: Sequence[int], aggregates: Mapping[str, str]) -> str:
    """Aggregates over windows of several lengths, side by side."""
    calls = ", ".join(f"{call} AS {name}" for name, call in aggregates.items())
    where = f"WHERE property = 'load' GROUP BY {_ALL_KEYS}"
    sides = [f"(SELECT {_ALL_KEYS}, {calls} FROM {_window(m)} {where}) AS m{m}" for m in minutes]
    first = f"m{minutes[0]}"
    shown = [f"{first}.{name}" for name in ("window_start", "window_end", *_KEYS)]
    shown += [f"m{m}.{name} AS {name}{m}" for name in aggregates for m in minutes]
    joined = sides[0]
    for m, side in zip(minutes[1:], sides[1:], strict=True):
        on = " AND ".join(f"{first}.{key} = m{m}.{key}" for key in _KEYS)
        joined += f" JOIN {side} ON {on}"
    return f"SELECT {', '.join(shown)} FROM {joined}"


_MEAN = {"mean": "avg(value)"}
QUERIES: Mapping[str, str] = {
    "cq1": _above("0.9 * (SELECT max(b.value)"),
    "cq2": _above("(SELECT avg(b.value)"),
    "cq3": _beside((5, 1), {"top": "max(value)", **_MEAN}),
    "cq4": _beside((5, 1), _MEAN),
    "cq5": (
        "SELECT s.window_start, s.window_end, s.house, s.household, max(s.total) AS top "
        f"FROM (SELECT {_ALL_KEYS}, sum(value) AS total FROM {_window(5)} WHERE property = 'load' "
        f"GROUP BY {_ALL_KEYS}) AS s GROUP BY s.house, s.household"
    ),
    "cq6": _beside((1, 3, 5), _MEAN),
}
