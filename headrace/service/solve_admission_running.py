"""A plan that runs, and what was observed of it: the keys `running` and `observed` of an admission problem.

`running` has the form of an answer, so that one can be pasted there as it is. Only what cannot be worked out
again is read of it: where joins run, what is sent, who delivers, and which queries are served. Figures follow
from the problem. A plan in which something is never fed cannot run, and is refused at its place.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from headrace.errors import UserError
from headrace.service.problem_file import ProblemFile, Trail, described, shown
from headrace.service.solve_admission_names import (
    LARGEST_LIMIT,
    LARGEST_RATE,
    LEAST_LIMIT,
    Known,
    by_set,
    named,
)

if TYPE_CHECKING:
    from headrace.planners.admission.observed import Observed, Running
    from headrace.planners.admission.problem import AdmissionProblem, Host, Operator, Plan, Stream

NOT_READ = (
    "problem",
    "planner",
    "optimiser",
    "admitted",
    "refused",
    "hosts",
    "links",
    "seconds",
    "offline_bound",
    "notes",
    "adapted",
    "removals",
)
"""Keys of an answer that say nothing of what runs beyond `queries` and `plan`."""
QUERY_NOT_READ = ("why", "milliseconds", "proven", "moved")
_LEFT = "removed"
"""Of a query that was admitted, and left."""

_PLAN: Trail = ("running", "plan")
_UNFED = "All comes from base streams at their hosts, by joins and copies that are given here."
Item = TypeVar("Item", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Names:
    hosts: Known
    streams: Known
    queries: Known


def read_running(
    file: ProblemFile, body: Mapping[str, object], problem: AdmissionProblem, names: Names
) -> Running | None:
    """None where nothing is to be adapted. Raises UserError at the place of what is wrong."""
    from headrace.planners.admission.observed import Running

    given = [key for key in ("running", "observed") if key in body]
    if not given:
        return None
    if given == ["running"]:
        hint = 'Give both; {} for "observed" where nothing was measured.'
        raise file.wrong(("running",), "running is given and observed is not", hint, at_key=True)
    if given == ["observed"]:
        hint = "What is observed belongs to a plan that runs: give it too, as the answer that gave it."
        raise file.wrong(("observed",), "observed is given and running is not", hint, at_key=True)
    reading = _Reading(file, problem, names)
    answer = file.mapping(body["running"], ("running",), ("queries", "plan"), NOT_READ)
    plan = reading.plan(answer["plan"])
    admitted = reading.admitted(answer["queries"], plan)
    return Running(plan, admitted, reading.observed(body["observed"]))


@dataclass(frozen=True, slots=True)
class _Reading:
    file: ProblemFile
    problem: AdmissionProblem
    names: Names

    def plan(self, value: object) -> Plan:
        from headrace.planners.admission.check import unfed
        from headrace.planners.admission.problem import Plan

        body = self.file.mapping(value, _PLAN, ("operators", "flows", "deliveries"))
        operators = self._each(body, "operators", self._operator)
        flows = self._each(body, "flows", self._flow)
        deliveries = self._each(body, "deliveries", self._delivery)
        streams = [stream for stream, _ in deliveries]
        self._check_once("deliveries", streams, "the stream is delivered twice")
        plan = Plan(frozenset(operators), frozenset(flows), dict(deliveries))
        lost = unfed(self.problem, plan)
        self._check_fed("operators", operators, lost.placements, "its host never has both inputs")
        self._check_fed("flows", flows, lost.flows, "the sender never has the stream")
        self._check_fed("deliveries", streams, lost.deliveries, "its host never has the stream")
        return plan

    def _each(
        self, body: Mapping[str, object], key: str, read: Callable[[object, Trail], Item]
    ) -> list[Item]:
        items = self.file.items(body[key], (*_PLAN, key))
        found = [read(item, (*_PLAN, key, number)) for number, item in enumerate(items)]
        self._check_once(key, found, "it is given twice")
        return found

    def _operator(self, value: object, trail: Trail) -> tuple[Host, Operator]:
        from headrace.planners.admission.problem import operator

        body = self.file.mapping(value, trail, ("host", "inputs", "output"), ("cpu", "memory"))
        host = self.names.hosts.at(body["host"], (*trail, "host"))
        inputs = self.file.items(body["inputs"], (*trail, "inputs"))
        if len(inputs) != 2:
            message = f"{shown((*trail, 'inputs'))} must be two lists of streams, not {len(inputs)}"
            raise self.file.wrong((*trail, "inputs"), message)
        left, right = (self._stream(item, (*trail, "inputs", i)) for i, item in enumerate(inputs))
        if left & right:
            message = f"{shown((*trail, 'inputs'))}: {named(left & right)} is in both"
            raise self.file.wrong((*trail, "inputs"), message, "A join is of two sets of streams.")
        output = self._stream(body["output"], (*trail, "output"))
        if output != left | right:
            message = f"{shown((*trail, 'output'))} must be all streams of its inputs: {named(left | right)}"
            raise self.file.wrong((*trail, "output"), message)
        return host, operator(left, right)

    def _flow(self, value: object, trail: Trail) -> tuple[Host, Host, Stream]:
        body = self.file.mapping(value, trail, ("from", "to", "stream"), ("rate",))
        sender, receiver = (self.names.hosts.at(body[key], (*trail, key)) for key in ("from", "to"))
        if sender == receiver:
            message = f"{shown((*trail, 'to'))}: host {described(body['to'])} sends to itself"
            raise self.file.wrong((*trail, "to"), message)
        return sender, receiver, self._stream(body["stream"], (*trail, "stream"))

    def _delivery(self, value: object, trail: Trail) -> tuple[Stream, Host]:
        body = self.file.mapping(value, trail, ("stream", "host"))
        stream = self._stream(body["stream"], (*trail, "stream"))
        return stream, self.names.hosts.at(body["host"], (*trail, "host"))

    def _stream(self, value: object, trail: Trail) -> Stream:
        """A base stream, or a set of them that has a rate."""
        stream = self.names.streams.set_of(value, trail)
        if len(stream) > 1 and stream not in self.problem.rates:
            raise self.file.wrong(trail, f"{shown(trail)}: the set {named(stream)} has no rate")
        return stream

    def _check_once(self, key: str, items: Sequence[Hashable], what: str) -> None:
        first: dict[Hashable, int] = {}
        for number, item in enumerate(items):
            other = first.setdefault(item, number)
            if other != number:
                trail: Trail = (*_PLAN, key, number)
                hint = f"{shown((*_PLAN, key, other))} is the first."
                raise self.file.wrong(trail, f"{shown(trail)}: {what}", hint)

    def _check_fed(self, key: str, items: Sequence[Item], lost: Collection[Item], what: str) -> None:
        for number in (number for number, item in enumerate(items) if item in lost):
            trail: Trail = (*_PLAN, key, number)
            raise self.file.wrong(trail, f"{shown(trail)}: {what}", _UNFED)

    def admitted(self, value: object, plan: Plan) -> tuple[str, ...]:
        """Queries that run. What is delivered and what they want must be the same."""
        found: dict[str, None] = {}
        trail: Trail = ("running", "queries")
        for number, item in enumerate(self.file.items(value, trail)):
            at: Trail = (*trail, number, "id")
            query = self.file.mapping(item, (*trail, number), ("id", "admitted"), (*QUERY_NOT_READ, _LEFT))
            name = self.problem.queries[self.names.queries.at(query["id"], at)]
            admitted, left = (
                self.file.flag(query.get(key, False), (*trail, number, key)) for key in ("admitted", _LEFT)
            )
            if left or not admitted:
                continue
            if name.id in found:
                raise self.file.wrong(at, f"{shown(at)}: query {described(query['id'])} is given twice")
            if name.streams not in plan.deliveries:
                message = f"{shown(at)}: query {described(query['id'])} is admitted, and no host delivers"
                raise self.file.wrong(at, f"{message} {named(name.streams)}")
            found[name.id] = None
        self._check_wanted(found, plan)
        return tuple(found)

    def _check_wanted(self, admitted: Collection[str], plan: Plan) -> None:
        wanted = {query.streams for query in self.problem.queries if query.id in admitted}
        for number, stream in enumerate(plan.deliveries):
            if stream not in wanted:
                trail: Trail = (*_PLAN, "deliveries", number)
                message = f"{shown(trail)}: no admitted query wants {named(stream)}"
                raise self.file.wrong(trail, message, "running.queries says which are admitted.")

    def observed(self, value: object) -> Observed:
        from headrace.planners.admission.observed import Observed

        body = self.file.mapping(value, ("observed",), (), ("streams", "rates", "hosts"))
        hosts, streams = self.names.hosts, self.names.streams
        seen = self._seen(body.get("streams", []), "streams", "rate", streams, LARGEST_RATE)
        cpu = self._seen(body.get("hosts", []), "hosts", "cpu", hosts, LARGEST_LIMIT)
        bases = list(self.problem.streams)
        rates = by_set(self.file, ("observed", "rates"), body.get("rates", []), streams)
        for number, stream in enumerate(rates):
            if stream not in self.problem.rates:
                raise self._unmade(("observed", "rates", number, 0), stream)
        return Observed({frozenset({bases[at]}): rate for at, rate in seen.items()} | rates, cpu)

    def _unmade(self, trail: Trail, stream: Stream) -> UserError:
        message = f"{shown(trail)}: the set {named(stream)} has no rate in the problem"
        return self.file.wrong(trail, message, "No query can use it, so nobody makes it.")

    def _seen(self, value: object, key: str, figure: str, known: Known, most: float) -> dict[int, float]:
        """By position: `[{"id", figure}, ...]`, as in the problem itself."""
        found: dict[int, float] = {}
        trail: Trail = ("observed", key)
        for number, item in enumerate(self.file.items(value, trail)):
            body = self.file.mapping(item, (*trail, number), ("id", figure))
            at = known.at(body["id"], (*trail, number, "id"))
            if at in found:
                message = (
                    f"{shown((*trail, number, 'id'))}: {known.what} {described(body['id'])} is given twice"
                )
                raise self.file.wrong((*trail, number, "id"), message)
            found[at] = self.file.amount(body[figure], (*trail, number, figure), most, LEAST_LIMIT)
        return found
