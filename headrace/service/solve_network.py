"""The network of a placement problem: its sites, with links or a matrix of costs, read strictly.

A site is a text or a whole number and is written everywhere as in `sites`. A hundred thousand sites must load
in a second, so nothing here looks at a value twice unless it is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from headrace.errors import UserError
from headrace.ids import did_you_mean
from headrace.service.problem_file import ProblemFile, Trail, described, shown

if TYPE_CHECKING:
    from headrace.planners.placement.problem import Network

MOST_SITES = 1_000_000
LARGEST_COST = 1e12
LARGEST_NUMBER = 10**15
"""Of a site or a query that is a number."""
LONGEST_NUMBER = len(str(-LARGEST_NUMBER))
MOST_OFFERED = 2_000
"""With more names than that, the nearest one takes too long to find."""
_ENTRIES = {int, float, type(None)}


@dataclass(frozen=True, slots=True)
class Sites:
    file: ProblemFile
    position: Mapping[str | int, int]

    def at(self, value: object, trail: Trail) -> int:
        """The position of the site that is written at `trail`."""
        # true would be found as 1, and 1.0 too.
        if type(value) is str or type(value) is int:
            found = self.position.get(value)
            if found is not None:
                return found
        raise self._unknown(value, trail)

    def by_text(self, name: str, trail: Trail) -> int:
        """The site that a key of an object names: there, numbers are written as texts."""
        found = self.position.get(name)
        # Python refuses to convert thousands of digits.
        short = len(name) <= LONGEST_NUMBER
        if found is None and short and name.removeprefix("-").isdecimal() and str(int(name)) == name:
            found = self.position.get(int(name))
        if found is None:
            raise self._unknown(name, trail, at_key=True)
        return found

    def _unknown(self, value: object, trail: Trail, *, at_key: bool = False) -> UserError:
        if type(value) is not str and type(value) is not int:
            message = f"{shown(trail)} must be a site, a text or a whole number, not {described(value)}"
            return self.file.wrong(trail, message)
        message = f"{shown(trail)}: there is no site {described(value)}"
        return self.file.wrong(trail, message, self._hint(value), at_key=at_key)

    def _hint(self, value: str | int) -> str:
        for other in (s for s in self.position if str(s) == str(value)):
            return f"Write it as in sites: {described(other)}."
        if len(self.position) > MOST_OFFERED:
            return f"There are {len(self.position):,} sites, and this is none of them."
        return did_you_mean(str(value), map(str, self.position), "sites")


def read_network(file: ProblemFile, body: Mapping[str, object]) -> tuple[Network, Sites]:
    from headrace.planners.placement.problem import Network

    names = _names(file, body["sites"])
    sites = Sites(file, {name: i for i, name in enumerate(names)})
    if ("links" in body) == ("costs" in body):
        both = "both links and costs are given" if "links" in body else "neither links nor costs are given"
        raise file.wrong((), both, "Give either links [[a, b, cost]] or a matrix of costs.")
    if "links" in body:
        return Network(names, _links(file, body["links"], sites)), sites
    return Network(names, costs=_costs(file, body["costs"], len(names))), sites


def _names(file: ProblemFile, value: object) -> tuple[str | int, ...]:
    items = file.items(value, ("sites",), "site")
    if len(items) > MOST_SITES:
        raise file.wrong(("sites",), f"sites must be at most {MOST_SITES:,}, not {len(items):,}")
    found: list[str | int] = []
    first: dict[str, int] = {}
    for number, item in enumerate(items):
        name = read_name(file, item, ("sites", number))
        other = first.setdefault(str(name), number)
        if other != number:
            hint = f"It is read like sites[{other}]."
            raise file.wrong(("sites", number), f"site {described(name)} is given twice", hint)
        found.append(name)
    return tuple(found)


def read_name(file: ProblemFile, value: object, trail: Trail) -> str | int:
    """A text or a whole number, which is how sites and queries are named."""
    if type(value) is int and abs(value) <= LARGEST_NUMBER:
        return value
    if type(value) is str and value:
        return value
    what = "an empty text" if value == "" else described(value)
    bound = f" from {-LARGEST_NUMBER} to {LARGEST_NUMBER}" if type(value) is int else ""
    raise file.wrong(trail, f"{shown(trail)} must be a text or a whole number{bound}, not {what}")


def _links(file: ProblemFile, value: object, sites: Sites) -> tuple[tuple[int, int, float], ...]:
    """A link from a site to itself carries nothing and is left out."""
    found: list[tuple[int, int, float]] = []
    for number, item in enumerate(file.items(value, ("links",))):
        trail: Trail = ("links", number)
        a, b, cost = three(file, item, trail, "[site, site, cost]")
        link = (
            sites.at(a, (*trail, 0)),
            sites.at(b, (*trail, 1)),
            file.amount(cost, (*trail, 2), LARGEST_COST),
        )
        if link[0] != link[1]:
            found.append(link)
    return tuple(found)


def three(file: ProblemFile, value: object, trail: Trail, form: str) -> tuple[object, object, object]:
    """A list of three values."""
    if not isinstance(value, list):
        raise file.wrong(trail, f"{shown(trail)} must be a list {form}, not {described(value)}")
    if len(value) != 3:
        values = "one value" if len(value) == 1 else f"{len(value)} values"
        raise file.wrong(trail, f"{shown(trail)} must be {form}, not a list of {values}")
    return value[0], value[1], value[2]


def _costs(file: ProblemFile, value: object, size: int) -> NDArray[np.float64]:
    """Without a link, infinite; on the diagonal 0, whatever is written there."""
    rows = file.items(value, ("costs",))
    if len(rows) != size:
        message = f"costs must have one row for each of the {size:,} sites, not {len(rows):,}"
        raise file.wrong(("costs",), message)
    costs = np.empty((size, size))
    for number, item in enumerate(rows):
        row = file.items(item, ("costs", number))
        if len(row) != size:
            message = f"costs[{number}] must have one entry for each of the {size:,} sites, not {len(row):,}"
            raise file.wrong(("costs", number), message)
        costs[number] = _row(file, row, number)
    np.fill_diagonal(costs, 0.0)
    return costs


def _row(file: ProblemFile, row: list[object], number: int) -> NDArray[np.float64]:
    """The entry of the site itself may be anything."""
    row = [*row[:number], None, *row[number + 1 :]]
    if set(map(type, row)) <= _ENTRIES:
        values = np.array(row, dtype=np.float64)
        missing = np.isnan(values)
        # As many as there are nulls: then no number is NaN.
        if missing.sum() == row.count(None) and (missing | ((values >= 0) & (values <= LARGEST_COST))).all():
            values[missing] = np.inf
            return values
    return np.array([_cost(file, cost, ("costs", number, i)) for i, cost in enumerate(row)])


def _cost(file: ProblemFile, value: object, trail: Trail) -> float:
    return np.inf if value is None else file.amount(value, trail, LARGEST_COST)
