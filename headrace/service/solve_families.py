"""The filters and group-bys of a sharing problem: optional keys, read as strictly as the rest."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from headrace.errors import UserError
from headrace.ids import did_you_mean
from headrace.service.problem_file import ProblemFile, Trail, described, shown

if TYPE_CHECKING:
    from headrace.planners.sharing.families import FamilyProblem
    from headrace.planners.sharing.problem import SharingProblem

PROBLEM_KEYS = ("columns", "overlaps", "scan")
QUERY_KEYS = ("filter", "selectivity", "keys")
MOST_VALUES = 10**12
BOTH = "&"


def read_families(
    file: ProblemFile, body: Mapping[str, object], problem: SharingProblem
) -> FamilyProblem | None:
    """The problem with filters and keys; None where no query has either, for then it is the plain one."""
    from headrace.planners.sharing.families import Family, FamilyProblem

    columns = _columns(file, body.get("columns", {}))
    items = body["queries"]
    assert isinstance(items, list)
    families = tuple(
        Family(_filter(file, item, i), _keys(file, item.get("keys", []), ("queries", i, "keys"), columns))
        for i, item in enumerate(items)
    )
    selectivity = _selectivities(file, items)
    overlaps = _overlaps(file, body.get("overlaps", {}), selectivity)
    scan = share(file, body.get("scan", 0), ("scan",))
    if not any(family.filter or family.keys for family in families):
        return None
    if problem.cost == "true":
        hint = 'Leave it out, or write "paper".'
        raise file.wrong(("cost",), 'cost "true" is not there for filters and group-bys', hint)
    return FamilyProblem(
        problem.rate, problem.capacities, problem.queries, families, selectivity, overlaps, columns, scan
    )


def check_families(optimiser: str, default: str, *, front: bool) -> None:
    """Raises UserError for what is not there yet for filters and group-bys."""
    if optimiser != default:
        hint = f"Leave --with out: {default} is the one that knows them."
        raise UserError(f"{optimiser} knows no filters and no group-bys", hint=hint)
    if front:
        raise UserError("there is no front for queries with filters or group-bys", hint="Leave --front out.")


def share(file: ProblemFile, value: object, trail: Trail) -> float:
    """A number from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise file.wrong(trail, f"{shown(trail)} must be a number, not {described(value)}")
    if not (math.isfinite(value) and 0 <= value <= 1):
        raise file.wrong(trail, f"{shown(trail)} must be from 0 to 1, not {described(value)}")
    return float(value)


def _object(file: ProblemFile, value: object, trail: Trail) -> dict[str, object]:
    if not isinstance(value, dict):
        raise file.wrong(trail, f"{shown(trail)} must be an object {{...}}, not {described(value)}")
    return value


def _columns(file: ProblemFile, value: object) -> dict[str, int]:
    found = _object(file, value, ("columns",))
    return {name: file.whole(count, ("columns", name), MOST_VALUES) for name, count in found.items()}


def _filter(file: ProblemFile, item: Mapping[str, object], number: int) -> str:
    trail: Trail = ("queries", number)
    if "filter" not in item:
        if "selectivity" in item:
            message = f"{shown(trail)} has a selectivity and no filter"
            raise file.wrong((*trail, "selectivity"), message, "Name its filter.")
        return ""
    name = item["filter"]
    if not isinstance(name, str) or not name or BOTH in name:
        message = f'{shown(trail)}.filter must be a text without "{BOTH}", not {described(name)}'
        raise file.wrong((*trail, "filter"), message)
    return name


def _selectivities(file: ProblemFile, items: list[dict[str, object]]) -> dict[str, float]:
    """Of every filter; it may be given with one of its queries or with all."""
    found: dict[str, float] = {}
    for i, item in enumerate(items):
        if "selectivity" not in item:
            continue
        trail: Trail = ("queries", i, "selectivity")
        name, value = str(item["filter"]), file.number(item["selectivity"], trail, 0, 1)
        if found.setdefault(name, value) != value:
            raise file.wrong(trail, f'filter "{name}" has two selectivities, {found[name]:g} and {value:g}')
    for i, item in enumerate(items):
        if "filter" in item and item["filter"] not in found:
            trail = ("queries", i, "filter")
            raise file.wrong(trail, f'filter "{item["filter"]}" has no selectivity', "Give it with a query.")
    return found


def _keys(file: ProblemFile, value: object, trail: Trail, columns: Mapping[str, int]) -> frozenset[str]:
    if not isinstance(value, list):
        raise file.wrong(trail, f"{shown(trail)} must be a list [...], not {described(value)}")
    for i, key in enumerate(value):
        if not isinstance(key, str) or key not in columns:
            hint = did_you_mean(key, columns, "columns") if isinstance(key, str) and columns else ""
            hint = hint or 'Say in "columns" how many distinct values it has.'
            raise file.wrong((*trail, i), f"{described(key)} is not one of the columns", hint)
    return frozenset(value)


def _overlaps(
    file: ProblemFile, value: object, selectivity: Mapping[str, float]
) -> dict[frozenset[str], float]:
    found: dict[frozenset[str], float] = {}
    for pair, both in _object(file, value, ("overlaps",)).items():
        trail: Trail = ("overlaps", pair)
        names = frozenset(name.strip() for name in pair.split(BOTH))
        if len(names) != 2 or pair.count(BOTH) != 1 or not names <= selectivity.keys():
            hint = did_you_mean(pair, selectivity, "filters")
            message = f'"{pair}" does not name two filters, as in "a{BOTH}b"'
            raise file.wrong(trail, message, hint, at_key=True)
        if names in found:
            raise file.wrong(trail, f'the overlap of "{pair}" is given twice', at_key=True)
        first, second = (selectivity[name] for name in names)
        low, high = max(0.0, first + second - 1), min(first, second)
        found[names] = share(file, both, trail)
        if not low - 1e-9 <= found[names] <= high + 1e-9:
            message = f"{shown(trail)} must be from {low:g} to {high:g}, not {described(both)}"
            raise file.wrong(trail, message, "That follows from the selectivities.")
    return found
