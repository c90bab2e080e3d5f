"""The distribution problem in a file: read strictly, each wrong value told with its place; and written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any, TypeVar

from headrace.ids import did_you_mean
from headrace.service.problem_file import ProblemFile, Trail, described, shown

if TYPE_CHECKING:
    from headrace.planners.distribution.observed import Observations
    from headrace.planners.distribution.problem import Link, Operator, Problem, Query, Site, Stream
    from headrace.planners.distribution.rules import History, Rules

LARGEST = 1e15
ONE = TypeVar("ONE")
LEAST = 1e-12
"""Of a site's limits: loads are what is used, divided by them."""

REQUIRED = ("sites", "operators")
OPTIONAL = ("streams", "queries", "links", "connection_cpu", "row_cpu", "table", "observations", "rebalance")
SEEN = (
    "rows_in",
    "rows_out",
    "arriving",
    "cpu",
    "batch_seconds",
    "batches",
    "state_rows",
    "state_bytes",
    "lag_seconds",
)
"""What may have been observed of an operator."""
SCALARS: Mapping[str, float] = {
    "percent_difference": 100,
    "degraded": LARGEST,
    "least_gain": 100,
    "full": LARGEST,
    "horizon": LARGEST,
    "margin": LARGEST,
    "rest": LARGEST,
    "patience": LARGEST,
    "pause": LARGEST,
    "state_rate": LARGEST,
    "now": LARGEST,
}
"""Keys of a question about what runs that are plain numbers, and the largest each may be."""
OTHERS = ("policy", "model", "operators", "sites", "state_bytes", "pauses", "history")


@dataclass(frozen=True, slots=True)
class Rebalance:
    """The question about what runs already."""

    policy: str
    model: str
    rules: Rules
    history: History
    now: float


@dataclass(frozen=True, slots=True)
class Given:
    problem: Problem
    """With what was observed in the place of what was assumed."""
    rebalance: Rebalance | None


def read_distribution(file: ProblemFile) -> Given:
    """Raises UserError at the place of what is wrong."""
    from headrace.planners.distribution.observed import with_observations

    body = file.mapping(file.body(), (), REQUIRED, OPTIONAL)
    reading = _Reading(file)
    problem = reading.problem(body)
    if "observations" in body:
        problem = with_observations(problem, reading.observations(body["observations"], problem))
    question = reading.rebalance(body["rebalance"], problem) if "rebalance" in body else None
    return Given(problem, question)


class _Reading:
    def __init__(self, file: ProblemFile) -> None:
        self._file = file

    def problem(self, body: Mapping[str, object]) -> Problem:
        from headrace.planners.distribution.problem import Problem

        file = self._file
        sites = self._listed(body["sites"], "sites", "site", self._site)
        places = {site.id: site for site in sites}
        streams = self._listed(
            body.get("streams", []), "streams", "", lambda i, t: self._stream(i, t, places)
        )
        items = file.items(body["operators"], ("operators",), "operator")
        names = [self._id(item, ("operators", i)) for i, item in enumerate(items)]
        self._once(names, "operators", {one.id for one in streams})
        readable = {*names, *(one.id for one in streams)}
        operators = tuple(self._operator(item, ("operators", i), readable) for i, item in enumerate(items))
        queries = self._listed(
            body.get("queries", []), "queries", "", lambda i, t: self._query(i, t, set(names), places)
        )
        links = tuple(
            self._link(item, ("links", i), places)
            for i, item in enumerate(file.items(body.get("links", []), ("links",)))
        )
        self._ways(links)
        try:
            return Problem(
                sites=sites,
                operators=operators,
                queries=queries,
                streams=streams,
                links=links,
                connection_cpu=file.amount(body.get("connection_cpu", 0), ("connection_cpu",), LARGEST),
                row_cpu=file.amount(body.get("row_cpu", 0), ("row_cpu",), LARGEST),
                table=self._table(body.get("table", {}), set(names), places),
            )
        except ValueError as error:
            raise file.wrong(("operators",), str(error)) from None

    def observations(self, value: object, problem: Problem) -> Observations:
        from headrace.planners.distribution.observed import Observations, OperatorSeen, SiteSeen

        trail: Trail = ("observations",)
        body = self._file.mapping(value, trail, (), ("operators", "sites", "streams", "row_bytes"))
        seen = self._named(body.get("operators", {}), (*trail, "operators"), problem.operator, "operator")
        sites = self._named(body.get("sites", {}), (*trail, "sites"), problem.site, "site")
        streams = self._named(body.get("streams", {}), (*trail, "streams"), problem.stream, "stream")
        return Observations(
            operators={
                name: OperatorSeen(**self._figures(item, (*trail, "operators", name), SEEN))
                for name, item in seen.items()
            },
            sites={
                name: SiteSeen(**self._figures(item, (*trail, "sites", name), ("cpu", "memory")))
                for name, item in sites.items()
            },
            streams={
                name: self._file.amount(item, (*trail, "streams", name), LARGEST)
                for name, item in streams.items()
            },
            row_bytes=self._file.amount(body.get("row_bytes", 100), (*trail, "row_bytes"), LARGEST),
        )

    def rebalance(self, value: object, problem: Problem) -> Rebalance:
        from headrace.planners.distribution.costs import MODELS
        from headrace.planners.distribution.rules import History, Rules
        from headrace.planners.distribution.solve import DEFAULT_MODEL, DEFAULT_POLICY, POLICY_NAMES

        trail: Trail = ("rebalance",)
        body = self._file.mapping(value, trail, (), (*SCALARS, *OTHERS))
        policy = self._known(body.get("policy", DEFAULT_POLICY), (*trail, "policy"), POLICY_NAMES, "policy")
        model = self._known(body.get("model", DEFAULT_MODEL), (*trail, "model"), MODELS, "model")
        rules: dict[str, Any] = {
            name: self._file.amount(body[name], (*trail, name), most)
            for name, most in SCALARS.items()
            if name in body and name != "now"
        }
        for name, known, what in (
            ("operators", problem.operator, "operator"),
            ("sites", problem.site, "site"),
        ):
            if name in body:
                rules[name] = frozenset(self._names(body[name], (*trail, name), known, what))
        if rules.get("full") == 0 or rules.get("state_rate") == 0:
            name = "full" if rules.get("full") == 0 else "state_rate"
            raise self._file.wrong((*trail, name), f"{shown((*trail, name))} must be above 0")
        if "state_bytes" in body:
            rules["state_bytes"] = self._range(body["state_bytes"], (*trail, "state_bytes"))
        if "pauses" in body:
            rules["pauses"] = self._amounts(body["pauses"], (*trail, "pauses"), problem.operator, "operator")
        history = self._history(body["history"], problem) if "history" in body else History()
        now = self._file.amount(body.get("now", 0), (*trail, "now"), LARGEST)
        return Rebalance(policy, model, Rules(**rules), history, now)

    def _history(self, value: object, problem: Problem) -> History:
        from headrace.planners.distribution.rules import History

        trail: Trail = ("rebalance", "history")
        body = self._file.mapping(value, trail, (), ("baseline", "moved", "uneven_since"))
        since = body.get("uneven_since")
        return History(
            self._amounts(body.get("baseline", {}), (*trail, "baseline"), problem.site, "site"),
            self._amounts(body.get("moved", {}), (*trail, "moved"), problem.operator, "operator"),
            None if since is None else self._file.amount(since, (*trail, "uneven_since"), LARGEST),
        )

    def _site(self, item: object, trail: Trail) -> Site:
        from headrace.planners.distribution.problem import Site

        limits = ("cpu", "memory", "network", "connections")
        body = self._file.mapping(
            item, trail, ("id",), (*limits, "alive", "region", "cpu_other", "memory_other")
        )
        region = body.get("region", "")
        if not isinstance(region, str):
            raise self._file.wrong((*trail, "region"), f"{shown(trail)}.region must be a text")
        found = {
            name: self._file.number(body[name], (*trail, name), LEAST, LARGEST)
            for name in limits
            if name in body
        }
        other = {
            name: self._file.amount(body[name], (*trail, name), LARGEST)
            for name in ("cpu_other", "memory_other")
            if name in body
        }
        alive = self._file.flag(body.get("alive", True), (*trail, "alive"))
        return Site(self._id(item, trail), alive=alive, region=region, **found, **other)

    def _stream(self, item: object, trail: Trail, sites: Mapping[str, Site]) -> Stream:
        from headrace.planners.distribution.problem import Stream

        body = self._file.mapping(item, trail, ("id", "rate"), ("site",))
        rate = self._file.amount(body["rate"], (*trail, "rate"), LARGEST)
        return Stream(self._id(item, trail), rate, self._home(body, trail, sites))

    def _operator(self, item: object, trail: Trail, readable: set[str]) -> Operator:
        from headrace.planners.distribution.problem import Operator

        amounts = ("cpu", "rate", "state_bytes", "width")
        body = self._file.mapping(item, trail, ("id", "inputs", "cpu"), (*amounts, "kind", "movable"))
        inputs = self._names(body["inputs"], (*trail, "inputs"), readable, "operator or stream")
        kind = body.get("kind", "operator")
        if not isinstance(kind, str):
            message = f"{shown(trail)}.kind must be a text, not {described(kind)}"
            raise self._file.wrong((*trail, "kind"), message)
        found = {
            name: self._file.amount(body[name], (*trail, name), LARGEST) for name in amounts if name in body
        }
        movable = self._file.flag(body.get("movable", True), (*trail, "movable"))
        return Operator(self._id(item, trail), tuple(inputs), kind=kind, movable=movable, **found)

    def _query(self, item: object, trail: Trail, operators: set[str], sites: Mapping[str, Site]) -> Query:
        from headrace.planners.distribution.problem import Query

        body = self._file.mapping(item, trail, ("id", "outputs"), ("site",))
        outputs = self._names(body["outputs"], (*trail, "outputs"), operators, "operator")
        return Query(self._id(item, trail), tuple(outputs), self._home(body, trail, sites))

    def _link(self, item: object, trail: Trail, sites: Mapping[str, Site]) -> Link:
        from headrace.planners.distribution.problem import Link

        body = self._file.mapping(item, trail, ("from", "to", "bandwidth"))
        source = self._known(body["from"], (*trail, "from"), sites, "site")
        target = self._known(body["to"], (*trail, "to"), sites, "site")
        return Link(source, target, self._file.amount(body["bandwidth"], (*trail, "bandwidth"), LARGEST))

    def _ways(self, links: Sequence[Link]) -> None:
        """Raises UserError for a link to itself, or a second one the same way."""
        seen: set[tuple[str, str]] = set()
        for i, link in enumerate(links):
            way = link.source, link.target
            if link.source == link.target:
                raise self._file.wrong(("links", i, "to"), f"links[{i}] goes from {link.source} to itself")
            if way in seen:
                message = f"links[{i}] is a second link from {link.source} to {link.target}"
                raise self._file.wrong(("links", i), message, "Give each once; both ways are two links.")
            seen.add(way)

    def _home(self, body: Mapping[str, object], trail: Trail, sites: Mapping[str, Site]) -> str | None:
        return self._known(body["site"], (*trail, "site"), sites, "site") if "site" in body else None

    def _table(self, value: object, operators: set[str], sites: Mapping[str, Site]) -> dict[str, str]:
        items = self._named(value, ("table",), operators, "operator")
        return {name: self._known(site, ("table", name), sites, "site") for name, site in items.items()}

    def _listed(
        self, value: object, key: str, one: str, read: Callable[[object, Trail], ONE]
    ) -> tuple[ONE, ...]:
        items = self._file.items(value, (key,), one)
        self._once([self._id(item, (key, i)) for i, item in enumerate(items)], key, set())
        return tuple(read(item, (key, i)) for i, item in enumerate(items))

    def _once(self, names: list[str], key: str, taken: set[str]) -> None:
        first: dict[str, int] = {}
        for number, name in enumerate(names):
            if name in taken:
                raise self._file.wrong((key, number, "id"), f'"{name}" is also the id of a stream')
            if first.setdefault(name, number) != number:
                message = f'two {key} have the id "{name}"'
                raise self._file.wrong((key, number, "id"), message, f"{key}[{first[name]}] has it too.")

    def _id(self, item: object, trail: Trail) -> str:
        if not isinstance(item, dict):
            raise self._file.wrong(trail, f"{shown(trail)} must be an object {{...}}, not {described(item)}")
        if "id" not in item:
            raise self._file.wrong(trail, f'"id" is missing in {shown(trail)}')
        name = item["id"]
        if not isinstance(name, str) or not name:
            message = f"{shown((*trail, 'id'))} must be a text, not {described(name)}"
            raise self._file.wrong((*trail, "id"), message)
        return name

    def _known(self, value: object, trail: Trail, known: Iterable[str], what: str) -> str:
        if not isinstance(value, str):
            raise self._file.wrong(
                trail, f"{shown(trail)} must be the name of a {what}, not {described(value)}"
            )
        names = set(known)
        if value not in names:
            hint = did_you_mean(value, names, f"{what}s")
            raise self._file.wrong(trail, f"{shown(trail)}: there is no {what} {described(value)}", hint)
        return value

    def _names(self, value: object, trail: Trail, known: Iterable[str], what: str) -> list[str]:
        names = set(known)
        items = self._file.items(value, trail)
        return [self._known(item, (*trail, i), names, what) for i, item in enumerate(items)]

    def _named(self, value: object, trail: Trail, known: Iterable[str], what: str) -> dict[str, object]:
        items, names = self._file.entries(value, trail), set(known)
        for name in items:
            if name not in names:
                hint = did_you_mean(name, names, f"{what}s")
                message = f"{shown(trail)}: there is no {what} {described(name)}"
                raise self._file.wrong((*trail, name), message, hint, at_key=True)
        return items

    def _amounts(self, value: object, trail: Trail, known: Iterable[str], what: str) -> dict[str, float]:
        items = self._named(value, trail, known, what)
        return {name: self._file.amount(item, (*trail, name), LARGEST) for name, item in items.items()}

    def _figures(self, item: object, trail: Trail, names: tuple[str, ...]) -> dict[str, float]:
        body = self._file.mapping(item, trail, (), names)
        return {
            name: self._file.amount(value, (*trail, name), LARGEST)
            for name, value in body.items()
            if value is not None
        }

    def _range(self, value: object, trail: Trail) -> tuple[float, float]:
        items = self._file.items(value, trail)
        if len(items) != 2:
            raise self._file.wrong(trail, f"{shown(trail)} must be [least, most], most null for no limit")
        low = self._file.amount(items[0], (*trail, 0), LARGEST)
        high = inf if items[1] is None else self._file.amount(items[1], (*trail, 1), LARGEST)
        if low > high:
            raise self._file.wrong(trail, f"{shown(trail)}: {low:g} is more than {high:g}")
        return low, high
