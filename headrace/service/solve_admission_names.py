"""How hosts, streams and queries are named in an admission problem, and values of sets of streams.

A name is a text or a whole number, and is written everywhere as where it is given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.errors import UserError
from headrace.ids import did_you_mean
from headrace.service.problem_file import ProblemFile, Trail, described, shown
from headrace.service.solve_network import MOST_OFFERED

if TYPE_CHECKING:
    from headrace.planners.admission.problem import Stream

LARGEST_RATE = 1e12
LARGEST_LIMIT = 1e15
LEAST_LIMIT = 1e-100
"""Or 0. Rates are divided by limits."""

Name = str | int
_NAMES = {str, int}


@dataclass(frozen=True, slots=True)
class Known:
    """Hosts, streams or queries, by the names they were given."""

    file: ProblemFile
    what: str
    position: Mapping[Name, int]

    @property
    def plural(self) -> str:
        return "queries" if self.what == "query" else f"{self.what}s"

    def at(self, value: object, trail: Trail) -> int:
        """The position of the one that is named at `trail`."""
        # true would be found as 1, and 1.0 too.
        found = self.position.get(value) if type(value) is str or type(value) is int else None
        if found is None:
            raise self._unknown(value, trail)
        return found

    def set_of(self, value: object, trail: Trail) -> Stream:
        """Some of them, none twice, in any order."""
        items = self.file.items(value, trail, self.what)
        if set(map(type, items)) <= _NAMES and self.position.keys() >= set(items):
            found = frozenset(map(str, items))
            if len(found) == len(items):
                return found
        raise self._wrong(items, trail)

    def _wrong(self, items: Sequence[object], trail: Trail) -> UserError:
        seen: set[int] = set()
        for number, item in enumerate(items):
            at = self.at(item, (*trail, number))
            if at in seen:
                break
            seen.add(at)
        hint = f"A {self.what} joined with itself is two: give the second a name of its own."
        message = f"{shown(trail)} names {self.what} {described(item)} twice"
        return self.file.wrong((*trail, number), message, hint)

    def _unknown(self, value: object, trail: Trail) -> UserError:
        if type(value) is not str and type(value) is not int:
            message = (
                f"{shown(trail)} must name a {self.what}, a text or a whole number, not {described(value)}"
            )
            return self.file.wrong(trail, message)
        message = f"{shown(trail)}: there is no {self.what} {described(value)}"
        return self.file.wrong(trail, message, self._hint(value))

    def _hint(self, value: Name) -> str:
        for other in (name for name in self.position if str(name) == str(value)):
            return f"Write it as in {self.plural}: {described(other)}."
        if len(self.position) > MOST_OFFERED:
            return f"There are {len(self.position):,} {self.plural}, and this is none of them."
        return did_you_mean(str(value), map(str, self.position), self.plural)


def known(file: ProblemFile, what: str, names: Sequence[Name]) -> Known:
    """Raises UserError where two have one name; 1 and "1" are one."""
    first: dict[str, int] = {}
    for number, name in enumerate(names):
        other = first.setdefault(str(name), number)
        if other != number:
            trail: Trail = (f"{what}s", number, "id")
            hint = f"It is read like that of {what}s[{other}]."
            raise file.wrong(trail, f"two {what}s have the id {described(name)}", hint)
    return Known(file, what, {name: i for i, name in enumerate(names)})


def by_set(file: ProblemFile, at: Trail, value: object, streams: Known) -> dict[Stream, float]:
    """Values of composite streams, `[[streams], value]` each, in the order of the file."""
    found: dict[Stream, float] = {}
    for number, item in enumerate(file.items(value, at)):
        trail: Trail = (*at, number)
        if not isinstance(item, list) or len(item) != 2:
            what = described(item) if not isinstance(item, list) else f"a list of {len(item)}"
            raise file.wrong(trail, f"{shown(trail)} must be [[streams], value], not {what}")
        some = streams.set_of(item[0], (*trail, 0))
        if len(some) == 1:
            hint = "The rate of one stream stands in streams."
            raise file.wrong((*trail, 0), f"{shown((*trail, 0))} must name at least two streams", hint)
        if some in found:
            first = list(found).index(some)
            hint = f"{shown((*at, first))} gives it too; the order of the streams does not matter."
            raise file.wrong(trail, f"{shown(trail)}: the set {named(some)} is given twice", hint)
        found[some] = file.amount(item[1], (*trail, 1), LARGEST_RATE)
    return found


def named(stream: Stream) -> str:
    return "*".join(sorted(stream))
