"""The rules of rebalancing as a user sets them, in the project file or by a command; what is told of them."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import pytest

from headrace.catalog.model import Project, Rebalance, StateRange
from headrace.cli.status_text import print_rebalance, print_status, rules_text
from headrace.errors import UserError
from headrace.planners.distribution.rules import Rules
from headrace.service.gathered import Gathered
from headrace.service.layout import lock_file
from headrace.service.rebalance import advise
from headrace.service.rebalancing import Remembered, decide
from headrace.service.rebalancing_how import how_of, patience_of, with_rules
from headrace.service.rebalancing_rules import measured_rules
from headrace.service.rebalancing_told import told_of
from headrace.service.status import status_of
from headrace.state.lock import RUNNING, RunLock
from tests.unit.service.served import World
from tests.unit.service.served import project as spread
from tests.unit.service.test_rebalancing import gathered, moved

NOW = 1_704_100_000.0


def by(project: Project, **rules: Any) -> Project:
    planner = project.planner.model_copy(update={"rebalance": Rebalance(**rules)})
    return project.model_copy(update={"planner": planner})


def uneven(root: Path, **rules: Any) -> World:
    """Six jobs at one of three sites."""
    cores = dict.fromkeys("abcdef", 0.3)
    world = World(by(spread(root, cores), **rules), cores, mode="off")
    world.run(50)
    return world


def test_without_a_word_the_rules_are_those_of_always() -> None:
    assert how_of().rules == how_of("ours", "cpu").rules == Rules(least_gain=5.0)
    assert patience_of(Rebalance(), 30.0) == 30.0 and patience_of(Rebalance(patience=0), 30.0) == 0.0


def test_every_rule_reaches_the_planner() -> None:
    asked = Rebalance(
        policy="degradation",
        model="network",
        percent_difference=20,
        jobs=("a",),
        sites=("west",),
        state=StateRange(least=10, most=20),
        degraded=30,
        least_gain=7,
        full=90,
        horizon=5_000_000,
        margin=4,
        rest=6_000_000,
    )
    how = how_of(asked=asked, patience=8.0)
    assert (how.policy, how.model) == ("degradation", "network")
    assert how.rules == Rules(
        percent_difference=20.0,
        operators=frozenset("a"),
        sites=frozenset({"west"}),
        state_bytes=(10.0, 20.0),
        degraded=30.0,
        least_gain=7.0,
        full=0.9,
        horizon=5.0,
        margin=4.0,
        rest=6.0,
        patience=8.0,
    )
    assert how_of(asked=Rebalance()).rules.state_bytes == (0.0, inf)
    both = how_of("ours", "cpu", asked=asked)
    assert (both.policy, both.model, both.asked.policy, both.rules.rest) == ("ours", "cpu", "ours", 6.0)


def test_jobs_are_those_that_answer_a_query_and_those_they_read_from(tmp_path: Path) -> None:
    found = gathered(a="east", b="east", m="east", r="east")
    jobs = dict(found.jobs)
    jobs["a"] = replace(jobs["a"], queries=("a", "a2"), reads=("s1",))
    jobs["m"] = replace(jobs["m"], queries=(), reads=("s2",), writes="s1")
    jobs["r"] = replace(jobs["r"], queries=(), reads=("s1",), writes="s2")
    found = Gathered(found.at, jobs, found.beliefs)
    rules = how_of(asked=Rebalance(jobs=("a2",))).rules
    made = measured_rules(rules, spread(tmp_path, "ab"), found, [], NOW)
    assert made.operators == frozenset({"a", "m", "r"})
    none = how_of(asked=Rebalance(jobs=())).rules
    assert measured_rules(none, spread(tmp_path, "ab"), found, [], NOW).operators == frozenset()


def test_only_the_sites_that_are_named_get_something(tmp_path: Path) -> None:
    made, rules = spread(tmp_path, "ab"), how_of(asked=Rebalance(sites=("west",))).rules
    assert measured_rules(rules, made, gathered(a="east"), [], NOW).sites == frozenset({"west"})
    down = Gathered(NOW, gathered(a="east").jobs, down=("west",))
    assert measured_rules(rules, made, down, [], NOW).sites == frozenset()
    here = {name: made.sites[name].model_copy(update={"endpoint": "local[2]"}) for name in ("east", "south")}
    one_spark = made.model_copy(update={"sites": {**made.sites, **here}})
    rules = how_of(asked=Rebalance(sites=("south",))).rules
    assert measured_rules(rules, one_spark, gathered(a="west"), [], NOW).sites == frozenset({"east"})


@pytest.mark.parametrize(
    ("rules", "jobs", "targets"),
    [
        ({}, set("abcdef"), {"west", "south"}),
        ({"jobs": ("a", "b")}, {"a", "b"}, {"west", "south"}),
        ({"sites": ("south",)}, set("abcdef"), {"south"}),
        ({"percent_difference": 100}, set(), set()),
        ({"state": StateRange(least=1 << 40)}, set(), set()),
    ],
)
def test_moves_keep_to_the_rules_of_the_file(
    tmp_path: Path, rules: dict[str, Any], jobs: set[str], targets: set[str]
) -> None:
    world = uneven(tmp_path, policy="balance", **rules)
    how = how_of(asked=with_rules(world.project, ()))
    data = advise(world.project, how, world.clock).data
    assert bool(data["moves"]) == bool(jobs)
    assert {name for move in data["moves"] for name in move["jobs"]} <= jobs
    assert {move["target"] for move in data["moves"]} <= targets
    assert data["rules"]["policy"] == "balance"


def test_why_a_job_stays_is_told(tmp_path: Path) -> None:
    made = spread(tmp_path, "abcdmn")
    free = {name: query.model_copy(update={"free": name != "d"}) for name, query in made.queries.items()}
    planner = made.planner.model_copy(update={"distribution": "ours"})
    made = made.model_copy(update={"queries": free, "planner": planner})
    found = gathered(a="east", b="east", c="east", d="east", m="east")
    memory = replace(found.jobs["m"], bound="m keeps its results in memory")
    new = replace(found.jobs["a"], queries=("n",), state="starting")
    found = Gathered(found.at, {**found.jobs, "m": memory, "n": new}, found.beliefs)
    records = [moved("c", "east", 1.0, "2024-01-01T09:06:00+00:00")]
    asked = Rebalance(jobs=("a", "c", "d", "m"), state=StateRange(least=1 << 20))
    stays = decide(made, found, records, Remembered(), how_of(asked=asked), NOW).stays
    assert stays["a"] == "its state of 1000 B is less than 1.0 MiB" == stays["c"]
    assert stays["b"] == "no query of it is among the jobs that may be moved"
    assert stays["d"] == "a query of it names its site"
    assert stays["m"] == "m keeps its results in memory" and stays["n"] == "nothing is known of it yet"
    few = Rebalance(state=StateRange(most=999))
    stays = decide(made, found, records, Remembered(), how_of(asked=few), NOW).stays
    assert stays["a"] == "its state of 1000 B is more than 999 B"
    stays = decide(made, found, records, Remembered(), how_of(), NOW).stays
    assert sorted(stays) == ["c", "d", "m", "n"] and stays["c"] == "it was moved 40 s ago and rests 60 s"


# -- by a command -----------------------------------------------------------------------------------


def test_a_command_wins_over_the_file(tmp_path: Path) -> None:
    made = by(spread(tmp_path, "ab"), policy="balance", rest=5_000_000)
    found = with_rules(made, ["percent_difference=25%", "jobs=[a]", "state={most: 1m}", "sites = [west]"])
    assert (found.policy, found.rest, found.percent_difference) == ("balance", 5_000_000, 25.0)
    assert (found.jobs, found.sites, found.state.most) == (("a",), ("west",), 1 << 20)
    assert with_rules(made, ()) == made.planner.rebalance


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("percent_difference", '"percent_difference" is no rule'),
        ("=20%", '"=20%" is no rule'),
        ("percent_difference=20", "20 of what?"),
        ("polcy=ours", 'unknown key "polcy"'),
        ("jobs=[x]", 'query "x" does not exist'),
        ("sites=[x]", 'site "x" does not exist'),
        ("every=1s", "is too often"),
        ("state={least: 2m, most: 1m}", "no job has"),
        ("jobs=[", "."),
    ],
)
def test_wrong_rules_of_a_command(tmp_path: Path, rule: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        with_rules(spread(tmp_path, "ab"), [rule])
    assert message in caught.value.render() and caught.value.hint


def test_a_query_of_the_file_that_was_dropped_since_is_no_fault_of_a_command(tmp_path: Path) -> None:
    made = by(spread(tmp_path, "ab"), jobs=("gone",))
    assert with_rules(made, ["rest=1s"]).jobs == ("gone",)


# -- what is told -----------------------------------------------------------------------------------


def test_the_status_tells_the_rules_of_the_service_that_is_on(tmp_path: Path) -> None:
    world = uneven(tmp_path, percent_difference=20, jobs=("a",))
    idle = status_of(world.project, lambda _: {}, world.clock)["rebalancing"]
    assert idle["mode"] is None and idle["rules"]["percent_difference"] == 20 and idle["stays"] == {}
    with RunLock(lock_file(world.project), RUNNING):
        # The clock of the world is that of 2024: what it told is older than this process.
        assert status_of(world.project, lambda _: {}, world.clock)["rebalancing"]["mode"] is None


def test_a_service_tells_its_own_rules(tmp_path: Path) -> None:
    world = uneven(tmp_path, jobs=("a",))
    told = told_of(world.project, "2024-05-01T00:00:00+00:00")
    assert told["mode"] == "off" and told["rules"]["policy"] == "balance" and told["decided"]
    # The world was told to balance by its command, and knows nothing of the file's jobs.
    assert told["rules"]["jobs"] is None and told["rules"]["patience"] == "10s"
    assert told_of(world.project, "2034-05-01T00:00:00+00:00")["mode"] is None
    assert told_of(world.project, None)["rules"]["jobs"] == ["a"]


def test_rules_and_reasons_are_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world = uneven(tmp_path, jobs=("a", "b"), state=StateRange(most=1 << 30), sites=("west",))
    how = how_of("balance", "cpu", asked=with_rules(world.project, ()))
    print_rebalance(advise(world.project, how, world.clock).data)
    text = capsys.readouterr().out
    assert "c, d, e, f may not be moved: no query of it is among the jobs that may be moved" in text
    assert (
        "rules: policy balance by cpu, percent_difference 10%, least_gain 5%, jobs a, b, sites west" in text
    )
    print_status(status_of(world.project, lambda _: {}, world.clock))
    assert "rebalancing: not by what runs; policy ours by cpu, percent_difference 10%, full 80%" in (
        capsys.readouterr().out
    )


def test_each_policy_names_its_own_rules() -> None:
    def text(**rules: Any) -> str:
        return rules_text(Rebalance(**rules).model_dump(mode="json"))

    assert text() == (
        "policy ours by cpu, percent_difference 10%, full 80%, horizon 600s, margin 2, rest 60s"
    )
    assert "degraded 10%" in text(policy="degradation") and "full" not in text(policy="balance")
    assert "jobs none" in text(jobs=()) and "state 1.0 MiB to any" in text(state=StateRange(least=1 << 20))
