"""Which site each job gets: every one once, named ones where they are named, and all stay as others come and
go. Random days of a project against what is known of each job, and examples with real SQL."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest

from headrace.catalog.load import load_project
from headrace.catalog.model import Project, Query, Site
from headrace.errors import InternalError
from headrace.plan.placed import PlacedPlan
from headrace.planners.distribution.extended import Extended
from headrace.service import distributing
from headrace.service.deployment import Planner, Situation, Wanted, reconcile
from headrace.service.distributing import distribute, queries_of, units
from headrace.service.explain import explain_plan, explain_query
from headrace.service.keeper import Keeper, Lives
from headrace.service.layout import state_file
from headrace.service.moving import at_homes, moves_of, site_of
from headrace.service.planning import plan_project
from headrace.service.project import with_edits
from headrace.state.records import AddedQuery, Change, Deployment, Edits
from headrace.state.store import Store
from tests.unit.service import sample

PATTERNS = ("round_robin", "grouping", "ours")


def project(root: Path, queries: dict[str, Query], sites: dict[str, Site], pattern: str) -> Project:
    made = sample.project(root)
    planner = made.planner.model_copy(update={"distribution": pattern})
    return made.model_copy(update={"queries": queries, "sites": sites, "planner": planner})


def site(name: str, region: str = "main", cpu: float = 2.0) -> Site:
    return Site(name=name, endpoint=f"sc://{name}:1", region=region, cpu=cpu)


def free(name: str, sql: str = "5", default: str = "a") -> Query:
    return sample.query(name, sql).model_copy(update={"free": True, "site": default})


def named(name: str, at: str, sql: str = "5") -> Query:
    return sample.query(name, sql).model_copy(update={"site": at})


def asked(*names: str, kind: str = "add") -> Edits:
    return Edits(
        pending=tuple(
            Change(i, kind, name, False, "pending", "", None, None, None, "", None)  # type: ignore[arg-type]
            for i, name in enumerate(names)
        )
    )


@dataclass
class Day:
    """A project whose queries, sites and moves change, and what was decided for it so far."""

    root: Path
    pattern: str
    sites: dict[str, Site]
    queries: dict[str, Query] = field(default_factory=dict)
    deployment: Deployment = field(default_factory=Deployment)
    homes: dict[str, str] = field(default_factory=dict)
    planner: Planner = field(default_factory=sample.weaver)
    wanted: Wanted | None = None

    @property
    def project(self) -> Project:
        return project(self.root, self.queries, self.sites, self.pattern)

    def decide(self, edits: Edits | None = None, down: frozenset[str] = frozenset()) -> PlacedPlan:
        """As a run does: reconcile, write down, and put every job where it was moved."""
        now = Situation(
            self.project,
            self.deployment,
            edits or Edits(),
            frozenset(self.queries),
            homes=self.homes,
            down=down,
        )
        self.wanted = reconcile(now, self.planner)
        self.deployment = self.wanted.deployment
        self.homes = {job: site for job, site in self.homes.items() if site in self.sites}
        return at_homes(self.wanted.placed, self.homes, self.sites)

    def at(self) -> dict[str, str]:
        """Job -> site, as it is known after a restart."""
        return {unit.id: unit.site for unit in units(self.decide())}

    def notes(self) -> list[str]:
        return [] if self.wanted is None else list(self.wanted.notes)

    def of(self, query: str) -> str:
        """Where a query is answered."""
        (found,) = [unit.site for unit in units(self.decide()) if query in queries_of(unit)]
        return found


# -- random days --------------------------------------------------------------------------------------


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("seed", range(4))
def test_random_days(tmp_path: Path, pattern: str, seed: int) -> None:
    rng = Random(seed)
    sites = {name: site(name, rng.choice(["north", "south"]), rng.choice([1.0, 4.0])) for name in "abcd"}
    day, number = Day(tmp_path, pattern, sites), 0
    for _ in range(18):
        before, edits = day.at(), Edits()
        match rng.choice(["add", "add", "drop", "move", "site", "nothing"]):
            case "add":
                number, name = number + 1, f"q{number}"
                sql = rng.choice(["1", "2", "alone"])
                default = next(iter(day.sites))
                at = rng.choice(list(day.sites))
                day.queries[name] = free(name, sql, default) if rng.random() < 0.7 else named(name, at, sql)
                edits = asked(name)
            case "drop" if day.queries:
                name = rng.choice(list(day.queries))
                del day.queries[name]
                edits = asked(name, kind="drop")
            case "move" if before:
                day.homes[rng.choice(list(before))] = rng.choice(list(day.sites))
            case "site" if len(day.sites) > 2:
                used = {query.site for query in day.queries.values()}
                gone = [name for name in day.sites if name not in used]
                day.sites = {n: s for n, s in day.sites.items() if n not in gone[:1]}
            case _:
                pass
        after = {unit.id: unit for unit in units(day.decide(edits))}
        _check(day, before, {name: unit.site for name, unit in after.items()})
        day.homes = {job: at for job, at in day.homes.items() if job in after}
        again = day.at()
        assert again == {name: unit.site for name, unit in after.items()}, "another answer after a restart"


def _check(day: Day, before: dict[str, str], after: dict[str, str]) -> None:
    placed = at_homes(day.wanted.placed, day.homes, day.sites)  # type: ignore[union-attr]
    answered = Counter(name for unit in units(placed) for name in queries_of(unit))
    assert answered == Counter(list(day.queries)), "every query once"
    assert set(after.values()) <= set(day.sites)
    for unit in units(placed):
        pinned = {day.queries[n].site for n in queries_of(unit) if not day.queries[n].free}
        if unit.id in day.homes and day.homes[unit.id] in day.sites:
            assert unit.site == day.homes[unit.id]
        elif pinned:
            assert pinned == {unit.site}
        elif unit.id in before and before[unit.id] in day.sites:
            assert unit.site == before[unit.id], f"{unit.id} has left its site"
    for job in set(after) & set(day.homes):
        assert site_of(day.project, day.deployment, day.homes, job) == after[job]


# -- examples -------------------------------------------------------------------------------------------


@pytest.fixture
def day(tmp_path: Path) -> Day:
    return Day(tmp_path, "round_robin", {name: site(name) for name in "abc"})


def test_jobs_are_spread_and_named_ones_stay(day: Day) -> None:
    day.queries = {f"q{i}": free(f"q{i}", "alone") for i in range(6)} | {"p": named("p", "c", "alone")}
    assert Counter(day.at().values()) == {"a": 3, "b": 2, "c": 2} and day.of("p") == "c"


def test_a_tree_is_never_torn_apart(day: Day) -> None:
    day.queries = {f"q{i}": free(f"q{i}") for i in range(6)}
    assert sorted(day.at()) == ["tree-1", "tree-2"] and len(set(day.at().values())) == 2


def test_a_new_query_goes_where_its_tree_is(day: Day) -> None:
    day.queries = {"j": free("j", "alone"), "q": free("q")}
    assert day.of("q") == "a" and day.of("j") == "b", "trees come first"
    day.homes = {"tree-1": "c"}
    day.queries["r"] = free("r")
    found = day.decide(asked("r"))
    assert [(tree.id, tree.site) for tree in found.trees] == [("tree-1", "c")]
    day.queries["n"] = named("n", "b")
    day.decide(asked("n"))
    assert day.of("n") == "b" and day.of("r") == "c", "one that names another site makes a tree of its own"
    day.queries["m"] = named("m", "c")
    day.decide(asked("m"))
    assert {unit.id: unit.site for unit in units(day.decide()) if "m" in queries_of(unit)} == {"tree-1": "c"}


def test_a_query_that_names_where_a_tree_was_before_it_was_moved_is_not_led_away(day: Day) -> None:
    day.queries = {"q": free("q")}
    assert day.at() == {"tree-1": "a"}
    day.homes = {"tree-1": "b"}
    day.queries["n"] = named("n", "a")
    day.decide(asked("n"))
    assert day.of("n") == "a" and day.of("q") == "b"


def test_a_tree_whose_queries_name_a_site_later_is_known_to_go_there(day: Day) -> None:
    day.queries = {"q": free("q"), "r": free("r")}
    assert day.at() == {"tree-1": "a"}
    day.queries["r"] = named("r", "b")
    assert site_of(day.project, day.deployment, {}, "tree-1") == "b" and day.at() == {"tree-1": "b"}


def test_a_site_that_is_no_more_is_told_and_only_its_jobs_go(day: Day) -> None:
    day.queries = {f"q{i}": free(f"q{i}", "alone") for i in range(5)}
    assert day.at() == {"q0": "a", "q1": "b", "q2": "c", "q3": "a", "q4": "b"}
    del day.sites["b"]
    after = {job.id: job.site for job in day.decide().jobs}
    assert after == {"q0": "a", "q1": "c", "q2": "c", "q3": "a", "q4": "a"}
    assert day.notes() == ["site b is no more: q1 goes to c", "site b is no more: q4 goes to a"]
    assert day.at() == after and day.notes() == []


def test_a_tree_and_a_moved_job_of_a_site_that_is_no_more(day: Day) -> None:
    day.queries = {"q": free("q"), "j": free("j", "alone")}
    day.decide()
    day.homes = {"j": "c", "tree-1": "c"}
    del day.sites["c"]
    assert day.at() == {"tree-1": "a", "j": "b"}
    assert day.notes() == ["site c is no more: tree-1 goes to a", "site c is no more: j goes to b"]
    assert day.at() == {"tree-1": "a", "j": "b"} and day.notes() == []
    del day.sites["a"]
    day.queries = {name: query.model_copy(update={"site": "b"}) for name, query in day.queries.items()}
    assert day.at() == {"tree-1": "b", "j": "b"}
    assert day.notes() == ["site a is no more: tree-1 goes to b"]
    assert [tree.site for tree in day.deployment.trees] == ["b"]


def test_what_was_moved_to_a_site_that_is_no_more_is_distributed_anew(day: Day) -> None:
    day.queries = {f"q{i}": free(f"q{i}", "alone") for i in range(4)}
    assert day.at() == {"q0": "a", "q1": "b", "q2": "c", "q3": "a"}
    day.homes = {"q0": "c"}
    day.queries["q4"] = free("q4", "alone")
    assert day.at() == {"q0": "c", "q1": "b", "q2": "c", "q3": "a", "q4": "a"}
    del day.sites["c"]
    assert day.at()["q0"] == "b", "where it was put at first there are more"


def test_a_site_that_comes_again_gets_nothing_back(day: Day) -> None:
    day.queries, every = {"r": free("r", "alone")}, dict(day.sites)
    state_file(day.project).parent.mkdir(parents=True)

    def start() -> tuple[list[str], tuple[str, ...]]:
        with Store(state_file(day.project)) as store, moves_of(day.project) as moves:
            lives = Lives(moves.homes, moves.forget)
            clock, planner = sample.Clock(), sample.weaver()
            keeper = Keeper(day.project, store, clock, planner, lambda *_: None, lives)
            wanted = keeper.prepare((), fresh=False, drain=False)
            return [job.site for job in wanted.placed.jobs], wanted.notes

    assert start() == (["a"], ())
    with moves_of(day.project) as moves:
        moves.settle("r", "c")
    assert start() == (["c"], ())
    del day.sites["c"]
    assert start() == (["a"], ("site c is no more: r goes to a",)) and start() == (["a"], ())
    day.sites = every
    assert start() == (["a"], ())


def test_who_names_a_site_later_goes_there_and_off_is_as_before(day: Day) -> None:
    day.queries = {"j": free("j", "alone"), "k": free("k", "alone")}
    assert day.at() == {"j": "a", "k": "b"}
    day.queries["k"] = named("k", "c", "alone")
    assert [site_of(day.project, day.deployment, {}, name) for name in "jk"] == ["a", "c"]
    assert day.at() == {"j": "a", "k": "c"}
    assert [row.site for row in day.deployment.queries] == ["a", None]
    day.pattern = "off"
    day.queries["j"] = named("j", "b", "alone")
    assert day.at() == {"j": "b", "k": "c"} and {row.site for row in day.deployment.queries} == {None}


def test_what_ran_before_distribution_was_on_stays(day: Day) -> None:
    day.pattern, day.queries = "off", {f"q{i}": named(f"q{i}", "a", "alone") for i in range(4)}
    day.decide()
    day.pattern, day.queries = "ours", {name: free(name, "alone") for name in day.queries}
    assert set(day.at().values()) == {"a"}
    day.queries["new"] = free("new", "alone")
    day.decide(asked("new"))
    assert day.of("new") in "bc"


def test_a_site_that_does_not_answer_gets_nothing_unless_there_is_no_other(day: Day) -> None:
    day.queries = {"j": free("j", "alone")}
    assert [job.site for job in day.decide(down=frozenset("a")).jobs] == ["b"]
    day.queries["k"] = free("k", "alone")
    assert {job.query: job.site for job in day.decide(down=frozenset("abc")).jobs} == {"j": "b", "k": "a"}


def test_a_table_that_is_none_is_found(day: Day, monkeypatch: pytest.MonkeyPatch) -> None:
    day.queries = {"j": free("j", "alone")}

    def wrong(problem: object, pattern: str) -> Extended:
        return Extended({"j": "nowhere"}, {"j": "nowhere"}, None)  # type: ignore[arg-type]

    monkeypatch.setattr(distributing, "extended", wrong)
    with pytest.raises(InternalError, match="j is at nowhere, which is no site"):
        day.decide()


# -- with real SQL --------------------------------------------------------------------------------------

HEAD = """\
name: many
planner: {{distribution: {pattern}}}
sites:
  a: {{endpoint: "sc://a:1", region: north}}
  b: {{endpoint: "sc://b:1", region: north}}
  c: {{endpoint: "sc://c:1", region: south}}
streams:
  s:
    columns: {{ts: timestamp, j: int, k: int, v: double}}
    time: ts
    source: {{kind: files, path: in, format: json}}
queries:
"""
WINDOW = (
    "  w{i}: {{sql: 'SELECT {keys}, avg(v) AS m FROM s [RANGE 5 MINUTES SLIDE 1 MINUTE] GROUP BY {keys}'}}\n"
)
KEYS = ("k", "j", "k, j")
PLAIN = "  f{i}: {{sql: 'SELECT ts, v FROM s WHERE v > {i}'}}\n"
PINNED = "  pinned: {site: c, sql: 'SELECT ts, v FROM s WHERE v > 77'}\n"

Write = Callable[[str], Project]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def make(pattern: str) -> Project:
        text = HEAD.format(pattern=pattern)
        text += "".join(WINDOW.format(i=i, keys=keys) for i, keys in enumerate(KEYS)) + "".join(
            PLAIN.format(i=i) for i in range(7)
        )
        (tmp_path / "headrace.yaml").write_text(text + PINNED)
        return load_project(tmp_path)

    return make


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_table_of_a_project(write: Write, pattern: str) -> None:
    found = write(pattern)
    data = explain_plan(found)
    table = data["distribution"]
    answered = Counter(query for job in table["jobs"] for query in job["queries"])
    assert table["pattern"] == pattern and answered == Counter(list(found.queries))
    sites = {job["job"]: job["site"] for job in table["jobs"]}
    assert sites["pinned"] == "c" and len(set(sites.values())) == 3
    assert next(job["why"] for job in table["jobs"] if job["job"] == "pinned") == "pinned names it"
    placed = plan_project(found)
    assert {unit.id: unit.site for unit in units(placed)} == sites
    told = {step.split()[1]: step.split()[3] for step in data["steps"]}
    assert told == sites, "the steps are at the same sites"
    assert all(tree["site"] == sites[tree["tree"]] for tree in data["sharing"]["trees"])
    assert explain_query(found, "f3")["site"] == sites["f3"]
    for one in table["sites"]:
        own = [job for job in table["jobs"] if job["site"] == one["site"]]
        assert one["jobs"] == len(own) and one["cpu"] == pytest.approx(sum(job["cpu"] for job in own))
        elsewhere = sum(job["site"] != "a" for job in table["jobs"]) if one["site"] == "a" else len(own)
        assert one["connections"] == len(own) + elsewhere, "results, and the stream that is at home at a"


def test_sharing_is_as_if_all_were_at_one_place(write: Write) -> None:
    trees = [{m.query for m in tree.members} for tree in plan_project(write("off")).trees]
    assert trees == [{m.query for m in tree.members} for tree in plan_project(write("grouping")).trees]
    assert "distribution" not in explain_plan(write("off"))


def test_regions_get_whole_jobs_by_their_cores(write: Write) -> None:
    """Two sites in the north and one in the south: about twice as much is in the north."""
    found = distribute(write("ours"), plan_project(write("off")))
    cpu = Counter[str]()
    for one in found.jobs:
        cpu[write("ours").sites[one.site].region] += found.problem.operator[one.job].cpu  # type: ignore[assignment]
    heaviest = max(operator.cpu for operator in found.problem.operators)
    assert abs(cpu["north"] - 2 * cpu["south"]) <= 2 * heaviest


def test_a_query_that_is_added_is_free_unless_it_names_a_site(write: Write) -> None:
    project = write("ours")
    edits = Edits(added=(AddedQuery("x", "SELECT ts FROM s", "json", None, ""),))
    added = with_edits(project, edits).queries["x"]
    assert added.free and added.site == "a"
    off = with_edits(write("off"), edits).queries["x"]
    assert not off.free and off.site == "a"
    named = Edits(added=(AddedQuery("x", "SELECT ts FROM s", "json", None, "b"),))
    assert not with_edits(project, named).queries["x"].free
