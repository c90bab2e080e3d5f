"""Does the next query fit: by each resource, by what counts, by whom it is to blame."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.catalog.model import Project, Query
from headrace.errors import UserError
from headrace.service.admission import ask, over_lines
from headrace.service.planning import plan_project
from tests.unit.service.capacity_sample import ALL, EDGE_CORE, FIVE, MINUTE, TWO, priced, write

ONE = {"a": ("core", ALL)}
SECOND = "planner: {trigger: 1 second}\n"


def new(sql: str = ALL, site: str = "core") -> Query:
    return Query(name="new", sql=sql, site=site)


def refusal(project: Project, query: Query | None = None, *, movable: bool = False) -> UserError:
    with pytest.raises(UserError) as raised:
        ask(project, query or new(), movable=movable)
    return raised.value


def test_what_fits_is_taken_without_a_word(tmp_path: Path) -> None:
    project = write(tmp_path, ONE, core="cpu: 4, memory: 2g, bandwidth: 40000")
    assert ask(project, new()) == []


def test_too_few_cores(tmp_path: Path) -> None:
    project = write(tmp_path, {**ONE, "b": ("core", TWO)}, core="cpu: 2.5")
    priced(project, "core", plain_row=1e-3)
    error = refusal(project)
    assert error.message == 'query "new" does not fit: core would need 3 cores and has 2.5 cores'
    assert error.exit_code == 2
    first, most = error.detail.splitlines()
    assert first == (
        "cores of core: 2 cores without the query, 3 cores with it, 2.5 cores in all; "
        "0.5 cores would have to be freed"
    )
    assert most == "most of it is used by: a 1 core; b 1 core"


def test_batches_count_where_there_is_a_trigger(tmp_path: Path) -> None:
    """Uncalibrated, a batch of a plain query is 0.47 CPU-s."""
    queries = {**ONE, "b": ("core", TWO)}
    assert ask(write(tmp_path, queries, core="cpu: 1"), new()) == []
    error = refusal(write(tmp_path, queries, core="cpu: 1", more=SECOND))
    assert "core would need 1.41 cores and has 1 core" in error.message
    assert "core was never calibrated, so these are another machine's figures" in error.detail
    assert ask(write(tmp_path, ONE, core="cpu: 1", more=SECOND), new()) == []


def test_too_little_memory(tmp_path: Path) -> None:
    """Spark 200 MiB, and 100 MiB a tree; queries over other rows are in another one."""
    project = write(tmp_path, {"a": ("core", MINUTE), "b": ("core", FIVE)}, core="memory: 350m")
    priced(project, "core", worker_memory=float(50 << 20), engine_memory=float(200 << 20))
    assert ask(project, new(MINUTE.replace("60", "120"))) == [], "joins the tree"
    error = refusal(project, new(MINUTE.replace("FROM s", "FROM t")))
    assert error.message.endswith("core would need 400.0 MiB of memory and has 350.0 MiB")
    assert "50.0 MiB would have to be freed" in error.detail
    used = error.detail.splitlines()[1]
    assert used.startswith("most of it is used by: Spark itself 200.0 MiB; tree-")
    assert used.endswith(" (a, b) 100.0 MiB")
    assert error.detail.endswith("dropping a single query frees: nothing"), "the other keeps the tree"


def test_too_little_bandwidth(tmp_path: Path) -> None:
    into = refusal(write(tmp_path, ONE, core="bandwidth: 30000"))
    assert into.message.endswith("core would take in 40 kB/s and has bandwidth for 30 kB/s")
    out = refusal(write(tmp_path, ONE, edge="bandwidth: 30000"))
    assert out.message.endswith("edge would send out 40 kB/s and has bandwidth for 30 kB/s")
    assert "most of it is used by: a 20 kB/s" in out.detail
    alone = refusal(write(tmp_path, {}, core="bandwidth: 15000"))
    assert alone.detail.endswith("nothing else uses it")


def test_a_link_too_small(tmp_path: Path) -> None:
    links = EDGE_CORE.replace("]}", "], bandwidth: 30000}")
    project = write(tmp_path, ONE, links=links, edge="bandwidth: 35000")
    assert ask(write(tmp_path, ONE, links=links), new(site="edge")) == []
    assert ask(project, new("SELECT ts FROM s")) == []
    error = refusal(project)
    assert "edge would send out" in error.message and error.message.endswith("(and 1 more)")
    assert "the link edge > core: 20 kB/s without the query, 40 kB/s with it, 30 kB/s in all" in error.detail


def test_a_default_is_held_against_nobody_until_calibrated(tmp_path: Path) -> None:
    """Ten batches a second are 4.7 cores of the two that a site has by default."""
    project = write(tmp_path, {}, more="planner: {trigger: 100 ms}\n")
    (warning,) = ask(project, new())
    assert warning.startswith("core would need 4.7 cores and has 2 cores; that is only the default of `cpu`")
    assert "the site was never calibrated" in warning and "headrace calibrate" in warning
    priced(project, "core", plain_batch=0.47)
    error = refusal(project)
    assert "core would need 4.7 cores and has 2 cores" in error.message
    assert "never calibrated" not in error.detail


def test_the_default_of_a_link_is_only_told(tmp_path: Path) -> None:
    project = write(tmp_path, {}, edge="bandwidth: 1g", core="bandwidth: 1g")
    fast = project.streams["s"].model_copy(update={"rate": 1e7})
    (warning,) = ask(project.model_copy(update={"streams": {**project.streams, "s": fast}}), new())
    assert warning.startswith("the link edge > core would carry 200 MB/s and has bandwidth for 125 MB/s")
    assert "calibrate" not in warning


def test_force_goes_ahead_and_says_what_is_over(tmp_path: Path) -> None:
    project = write(tmp_path, ONE, core="bandwidth: 30000")
    assert ask(project, new(), force=True) == [
        "core would take in 40 kB/s and has bandwidth for 30 kB/s; added all the same"
    ]


def test_what_is_over_already_keeps_out_only_who_adds_to_it(tmp_path: Path) -> None:
    project = write(tmp_path, {**ONE, "b": ("core", ALL)}, core="bandwidth: 30000")
    assert ask(project, new(site="edge")) == []
    windows = {"a": ("core", MINUTE), "b": ("core", ALL)}
    project = write(tmp_path, windows, core="bandwidth: 30000")
    assert ask(project, new(FIVE)) == [], "its tree reads the stream already"
    assert "60 kB/s" in refusal(project, new()).message


def test_another_site_is_offered_where_it_would_fit(tmp_path: Path) -> None:
    project = write(tmp_path, ONE, core="bandwidth: 30000", links="", other="", small="bandwidth: 1000")
    assert "It would fit with --site edge or --site other." in refusal(project, movable=True).hint
    assert "--site" not in refusal(project).hint
    assert "--force" in refusal(project).hint


def test_a_query_that_names_no_site_is_asked_about_the_one_it_gets(tmp_path: Path) -> None:
    """A batch is 0.47 CPU-s: the pattern gives it to a site that has room, as long as there is one."""
    more = "planner: {trigger: 1 second, distribution: ours}\n"
    free = new().model_copy(update={"free": True})
    two = {**ONE, "b": ("core", TWO)}
    assert ask(write(tmp_path, two, core="cpu: 1", edge="cpu: 1", more=more), free) == []
    four = {**two, "c": ("edge", ALL), "d": ("edge", TWO)}
    error = refusal(write(tmp_path, four, core="cpu: 1", edge="cpu: 1", other="cpu: 0.1", more=more), free)
    assert "would need" in error.message and "--site" not in error.hint


def test_a_query_that_does_not_bind_is_in_nobodys_way(tmp_path: Path) -> None:
    project = write(tmp_path, {**ONE, "wrong": ("core", "SELECT nothing FROM s")}, core="bandwidth: 30000")
    assert ask(project, new("SELECT ts FROM s")) == []
    assert "40 kB/s" in refusal(project).message


def test_a_run_is_told_what_is_over(tmp_path: Path) -> None:
    project = write(tmp_path, {**ONE, "b": ("core", ALL)}, core="bandwidth: 30000", more=SECOND)
    assert over_lines(project, plan_project(project)) == [
        "at the rates of the project file core would take in 40 kB/s and has bandwidth for 30 kB/s"
    ]
    fast = write(tmp_path, ONE, more="planner: {trigger: 100 ms}\n")
    assert over_lines(fast, plan_project(fast)) == [], "defaults, never calibrated"
