"""How to solve a problem: what `headrace solve` was asked for, checked before any file is read."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

from headrace.errors import UserError
from headrace.ids import did_you_mean
from headrace.service.solve_files import check_picture
from headrace.units import parse_duration

LEAST_CLUSTER = 2
"""Clusters of one site would never come to an end."""
MOST_RUNNERS = 1000
LONGEST_DEADLINE = 86_400.0
_PLAIN = re.compile(r"[+-]?\d*\.?\d+")
"""A number without a unit."""


@dataclass(frozen=True, slots=True)
class Request:
    """How to solve. None: the planner's own default."""

    optimiser: str | None = None
    seed: int | None = None
    balance: float | None = None
    seconds: float | None = None
    preprocess: bool | None = None
    stop: Literal["prose", "listing"] | None = None
    insert: Literal["prose", "plan", "literal"] | None = None
    start: Literal["random", "first"] | None = None
    front: bool | None = None
    """Give the whole front of plans, not only the one chosen."""
    max_cs: int | None = None
    zones: int | None = None
    iterations: int | None = None
    deadline: float | None = None
    """Seconds for one query."""
    batch: int | None = None
    choosy: bool | None = None
    picture: Path | None = None
    """Draw the map of the network into this file."""
    ignore_feasibility: bool | None = None
    """Choose by utilisation alone."""
    engine: Literal["both", "spark", "duckdb"] | None = None
    decompose: int | None = None
    """Most operators in a piece."""
    runners: int | None = None

    def given(self) -> dict[str, Any]:
        """What was asked for beside the optimiser."""
        every = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in every.items() if value is not None and name != "optimiser"}


def optimiser_named(name: str | None, known: Mapping[str, str]) -> str:
    """The optimiser of that name, in any case; the first of them, which is ours, when none is named."""
    if name is None or name.lower() == "ours":
        return next(iter(known))
    found = next((n for n in known if n.lower() == name.lower()), None)
    if found is None:
        hint = did_you_mean(name, known, "optimisers")
        raise UserError(f'optimiser "{name}" does not exist', hint=hint)
    return found


def check_request(request: Request, planner: str, known: Collection[str]) -> None:
    """Raises UserError for an option that the planner does not have, or a value that none can have. The
    comparisons are written so that NaN fails them."""
    for name in request.given():
        if name not in known:
            hint = f"Its options: {', '.join(map(_flag, known))}." if known else "It has none."
            raise UserError(f"{_flag(name)} is not an option of the planner {planner}", hint=hint)
    if request.balance is not None and not 0 <= request.balance <= 100:
        raise UserError(f"the balance must be from 0 to 100, not {request.balance:g}")
    if request.seconds is not None and not 0 < request.seconds < float("inf"):
        raise UserError(f"the seconds must be a number above 0, not {request.seconds:g}")
    if request.max_cs is not None and request.max_cs < LEAST_CLUSTER:
        raise UserError(f"max-cs must be at least {LEAST_CLUSTER}, not {request.max_cs}")
    if request.picture is not None:
        check_picture(request.picture)
    if request.deadline is not None and not 0 < request.deadline < float("inf"):
        raise UserError(f"the deadline must be above 0, not {request.deadline:g} s")
    counts = (
        ("zones", request.zones),
        ("iterations", request.iterations),
        ("batch", request.batch),
        ("decompose", request.decompose),
    )
    for name, value in counts:
        if value is not None and value < 1:
            raise UserError(f"{name} must be at least 1, not {value}")
    if request.runners is not None and not 0 <= request.runners <= MOST_RUNNERS:
        raise UserError(f"runners must be from 0 to {MOST_RUNNERS}, not {request.runners}")


def read_deadline(text: str) -> float:
    """Seconds of a text like `1s`, `500ms`, or `2`. Raises UserError."""
    try:
        seconds = float(text) if _PLAIN.fullmatch(text.strip()) else parse_duration(text) / 1e6
    except ValueError:
        hint = "Write it like 1s, 500ms or 2 (seconds)."
        raise UserError(f'the deadline "{text}" is not a duration', hint=hint) from None
    if not 0 < seconds <= LONGEST_DEADLINE:
        raise UserError(f"the deadline must be above 0 and at most a day, not {text}")
    return seconds


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
