"""Whether an answer to an admission problem is one: from the two JSON texts alone, with nothing of ours."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

Json = Any
CLOSE = 1e-6


class Audit:
    """Everything that is wrong with an answer, as texts."""

    def __init__(self, problem: Json, answer: Json) -> None:
        self.problem, self.answer, self.plan = problem, answer, answer["plan"]
        self.hosts = {host["id"]: host for host in problem["hosts"]}
        self.base = {stream["id"]: stream for stream in problem["streams"]}
        self.rates = self._rates()
        self.wrong: list[str] = []
        self._queries()
        self._amounts()
        self._limits()
        self._sources()

    def _rates(self) -> dict[frozenset[Json], float]:
        found = {frozenset([name]): float(stream["rate"]) for name, stream in self.base.items()}
        if "rates" in self.problem:
            return found | {frozenset(some): float(rate) for some, rate in self.problem["rates"]}
        given = self.problem["selectivities"]
        if not isinstance(given, list):
            named = [[one["output"], given] for one in self.plan["operators"]]
            asked = [query["streams"] for query in self.problem["queries"] if "streams" in query]
            given = named + [[some, given] for some in asked if len(some) > 1]
        return found | {
            frozenset(some): share * sum(self.base[name]["rate"] for name in some) for some, share in given
        }

    def _say(self, right: bool, what: str) -> None:
        if not right:
            self.wrong.append(what)

    def _queries(self) -> None:
        every = [(one.get("id", f"q{i + 1}"), one) for i, one in enumerate(self.problem["queries"])]
        asked = [one for _, one in every if "remove" not in one]
        told = self.answer["queries"]
        ids = [name for name, one in every if "remove" not in one]
        self._removals([one["remove"] for _, one in every if "remove" in one])
        self._say([query["id"] for query in told] == ids, "queries")
        given = [frozenset(one["stream"]) for one in self.plan["deliveries"]]
        self._say(len(given) == len(set(given)), "delivered twice")
        runs = {
            frozenset(q["streams"])
            for q, t in zip(asked, told, strict=True)
            if t["admitted"] and not t.get("removed")
        }
        self._say(set(given) == runs, "deliveries")
        self._say(all(query["admitted"] == (query["why"] == "") for query in told), "why")
        self._say(self.answer["admitted"] == sum(query["admitted"] for query in told), "admitted")
        self._say(self.answer["admitted"] + self.answer["refused"] == len(asked), "refused")

    def _removals(self, leaving: list[Json]) -> None:
        told = self.answer.get("removals", [])
        self._say([one["id"] for one in told] == leaving, "removals")
        admitted = {query["id"]: query["admitted"] for query in self.answer["queries"]}
        self._say(all(one["removed"] == admitted[one["id"]] for one in told), "removed")
        self._say(all(one["removed"] == (one["why"] == "") for one in told), "why not removed")
        left = {one["id"] for one in told if one["removed"]}
        gone = {query["id"] for query in self.answer["queries"] if query.get("removed")}
        self._say(left == gone, "queries that left")

    def _amounts(self) -> None:
        cost, memory = self.problem.get("operator_cost", 1), self.problem.get("memory_cost", 0)
        for one in self.plan["operators"]:
            left, right = map(frozenset, one["inputs"])
            self._say(not left & right and left | right == frozenset(one["output"]), f"join {one}")
            read = self.rates[left] + self.rates[right]
            self._say(_close(one["cpu"], cost * read), f"cpu {one}")
            self._say(_close(one.get("memory", 0.0), memory * read), f"memory {one}")
            self._say(frozenset(one["output"]) in self.rates, f"no rate {one}")
        for flow in self.plan["flows"]:
            self._say(_close(flow["rate"], self.rates[frozenset(flow["stream"])]), f"rate {flow}")
            self._say(flow["from"] != flow["to"], f"to itself {flow}")
        for key in ("operators", "flows", "deliveries"):
            texts = [str(sorted(one.items())) for one in self.plan[key]]
            self._say(len(texts) == len(set(texts)), f"{key} twice")

    def _limits(self) -> None:
        used: defaultdict[tuple[str, Json], float] = defaultdict(float)
        for one in self.plan["operators"]:
            used["cpu", one["host"]] += one["cpu"]
            used["memory", one["host"]] += one.get("memory", 0.0)
        for flow in self.plan["flows"]:
            used["out", flow["from"]] += flow["rate"]
            used["in", flow["to"]] += flow["rate"]
            used["link", (flow["from"], flow["to"])] += flow["rate"]
        for given in self.plan["deliveries"]:
            used["out", given["host"]] += self.rates[frozenset(given["stream"])]
        self._say([host["id"] for host in self.answer["hosts"]] == list(self.hosts), "hosts")
        for host in self.answer["hosts"]:
            for kind in ("cpu", "in", "out", "memory"):
                limit = self.hosts[host["id"]].get(kind)
                self._say(host.get(kind) == limit, f"limit {kind} {host}")
                self._say(
                    _close(host.get(f"{kind}_used", 0.0), used[kind, host["id"]]), f"used {kind} {host}"
                )
                self._say(limit is None or _fits(used[kind, host["id"]], limit), f"too much {kind} {host}")
        links = {(link["from"], link["to"]): link for link in self.answer["links"]}
        self._say(links.keys() == {where for kind, where in used if kind == "link"}, "links")
        for ends, link in links.items():
            self._say(link["bandwidth"] == self._bandwidth(*ends), f"bandwidth {link}")
            self._say(_close(link["used"], used["link", ends]), f"used {link}")
            self._say(_fits(used["link", ends], self._bandwidth(*ends)), f"too much {link}")

    def _bandwidth(self, sender: Json, receiver: Json) -> float:
        given, order = self.problem["link_bandwidth"], list(self.hosts)
        if isinstance(given, list):
            given = given[order.index(sender)][order.index(receiver)]
        return float(given)

    def _sources(self) -> None:
        """Starting from base streams at home, everything in the plan gets its turn."""
        have = {(stream["host"], frozenset([name])) for name, stream in self.base.items()}
        steps = [
            (
                {(one["host"], frozenset(part)) for part in one["inputs"]},
                (one["host"], frozenset(one["output"])),
            )
            for one in self.plan["operators"]
        ]
        steps += [
            ({(flow["from"], frozenset(flow["stream"]))}, (flow["to"], frozenset(flow["stream"])))
            for flow in self.plan["flows"]
        ]
        while ready := [step for step in steps if step[0] <= have]:
            have |= {made for _, made in ready}
            steps = [step for step in steps if step not in ready]
        self._say(not steps, f"no source: {steps}")
        for given in self.plan["deliveries"]:
            self._say((given["host"], frozenset(given["stream"])) in have, f"never had: {given}")


def _close(a: float, b: float) -> bool:
    return abs(a - b) <= 1e-9 * max(1.0, abs(a), abs(b))


def _fits(used: float, limit: float) -> bool:
    return used <= limit + CLOSE * max(1.0, limit)
