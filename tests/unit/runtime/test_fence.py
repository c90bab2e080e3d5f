"""The fence for sites that do not answer: who is killed, who is left alone, who is waited for."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import psutil
import pytest

from headrace.errors import EngineError
from headrace.runtime.spark import sites
from headrace.runtime.spark.health import Checker, Health
from headrace.runtime.spark.remote import Ledger, stop_all
from headrace.runtime.spark.servers import Server, kill, read
from headrace.runtime.spark.sites import FenceTimes, SitesExecutor, SparkFence

ADDRESS = "sc://127.0.0.1:1"


@dataclass(slots=True)
class Engine:
    """What the fence asks of the executor of this process."""

    stopped: bool = False
    left: list[str] = field(default_factory=list)

    def has_stopped(self, job: str, endpoint: str) -> bool:
        return self.stopped

    def open_session(self, endpoint: str) -> str | None:
        return None

    def running_at(self, endpoint: str) -> list[str]:
        return []

    def leave(self, endpoint: str) -> None:
        self.left.append(endpoint)


class Silent(Checker):
    """Nobody answers, but for the first questions if so said; every question takes a second."""

    asked = 0
    answers = 0

    def check(self, address: str, seconds: float) -> Health:
        Silent.asked += 1
        return Health(Silent.asked <= Silent.answers, 1.0, reason="nobody")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A process that sleeps, written down as a server."""
    with subprocess.Popen(["sleep", "60"]) as process:
        folder = tmp_path / "sites" / "site1"
        folder.mkdir(parents=True)
        began = psutil.Process(process.pid).create_time()
        about = {"pid": process.pid, "started": began, "port": 1, "memory": "1g", "cores": 1}
        (folder / "server.json").write_text(json.dumps(about))
        found = read(folder)
        assert found is not None
        yield found
        process.kill()


def fence_of(
    engine: Engine,
    ledger: Ledger,
    servers: list[Server],
    lease: float = 0.0,
    answers: int = 0,
    endpoint: str = ADDRESS,
) -> SparkFence:
    Silent.asked, Silent.answers = 0, answers
    checker = Silent(lambda: float(Silent.asked), lambda: "fresh")
    times = FenceTimes(lease=lease, look=0.0)
    return SparkFence(
        cast(SitesExecutor, engine), ledger, {"site1": endpoint}, lambda: servers, checker, times
    )


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    found = Ledger(tmp_path / ".headrace", lambda: "fresh")
    found.begin("S", ADDRESS)
    return found


def test_a_silent_server_of_ours_is_killed_before_its_jobs_start_elsewhere(
    server: Server, ledger: Ledger
) -> None:
    engine = Engine()
    fence_of(engine, ledger, [server]).clear("q", "site1")
    assert server.process() is None and engine.left == [ADDRESS] and ledger.left() == []


def test_a_server_that_is_just_being_started_again_is_left_alone(
    server: Server, ledger: Ledger, tmp_path: Path
) -> None:
    before = server.started - 60
    os.utime(tmp_path / ".headrace" / "engines" / "S.json", (before, before))
    engine = Engine()
    fence_of(engine, ledger, [server]).clear_all()
    assert server.process() is not None and engine.left == [ADDRESS] and ledger.left() == []


def test_a_server_of_ours_that_may_only_be_busy_has_the_time_of_its_lease(
    server: Server, ledger: Ledger
) -> None:
    engine = Engine()
    fence = fence_of(engine, ledger, [server], lease=5.0)
    fence.clear("q", "site1")
    assert Silent.asked == 5 and server.process() is None
    ledger.begin("S", ADDRESS)
    Silent.asked = 0
    fence.clear("q", "site1")
    assert Silent.asked == 1, "one that is dead is not waited for"


def test_only_a_server_of_ours_is_known_to_have_ended(server: Server, ledger: Ledger) -> None:
    """One that does not answer may be busy, and of one elsewhere nobody can tell."""
    fence = fence_of(Engine(), ledger, [server])
    assert not fence.is_dead("site1")
    kill(server)
    assert fence.is_dead("site1")
    assert not fence_of(Engine(), ledger, []).is_dead("site1")


def test_a_server_that_takes_connections_has_not_ended(tmp_path: Path, ledger: Ledger) -> None:
    """Its process looks like another one where the clock of the machine was set."""
    with socket.create_server(("127.0.0.1", 0)) as port:
        found = Server("site1", tmp_path, os.getpid(), 0.0, port.getsockname()[1], "1g", 1)
        fence = fence_of(Engine(), ledger, [found], endpoint=found.address)
        assert found.process() is None and not fence.is_dead("site1")
    assert fence.is_dead("site1")


def test_a_server_that_dies_before_it_is_killed_is_dead(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(process: psutil.Process, recursive: bool = False) -> list[psutil.Process]:
        os.kill(process.pid, signal.SIGKILL)
        os.waitpid(process.pid, 0)
        return []

    monkeypatch.setattr(psutil.Process, "children", dies)
    assert kill(server) and server.process() is None


def test_a_site_that_is_not_ours_has_the_time_of_its_lease(ledger: Ledger) -> None:
    engine = Engine()
    fence_of(engine, ledger, [], lease=7.0).clear("q", "site1")
    assert Silent.asked == 7 and engine.left == [ADDRESS] and ledger.left() == []


def test_where_nothing_of_the_project_is_nobody_is_asked(ledger: Ledger) -> None:
    """Jobs of a lost site are cleared one after the other: only the first has to wait."""
    Silent.asked, engine = 0, Engine()
    fence = fence_of(engine, ledger, [], lease=3.0)
    fence.clear("q", "site1")
    asked = Silent.asked
    fence.clear("r", "site1")
    assert asked == Silent.asked == 3 and engine.left == [ADDRESS]


def test_a_job_that_was_seen_to_stop_needs_no_fence(ledger: Ledger) -> None:
    fence_of(Engine(stopped=True), ledger, []).clear("q", "site1")
    assert Silent.asked == 0 and [left.session for left in ledger.left()] == ["S"]


def test_a_site_that_dies_while_it_stops_things_is_buried(server: Server, ledger: Ledger) -> None:
    """It has answered, and then nobody is at its port."""
    engine = Engine()
    fence_of(engine, ledger, [server], answers=1).clear_all()
    assert Silent.asked == 2 and server.process() is None
    assert engine.left == [ADDRESS] and ledger.left() == []


def test_a_site_of_others_that_dies_while_it_stops_things_has_the_time_of_its_lease(ledger: Ledger) -> None:
    engine = Engine()
    fence_of(engine, ledger, [], lease=4.0, answers=1).clear("q", "site1")
    assert Silent.asked == 1 + 4 and engine.left == [ADDRESS] and ledger.left() == []


def test_a_site_that_is_back_at_once_is_asked_once_more(
    server: Server, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def stop(address: str, session: str, left: Callable[[], float]) -> list[str]:
        asked.append(session)
        return [] if len(asked) > 1 else stop_all(address, session, left)

    monkeypatch.setattr(sites, "stop_all", stop)
    engine = Engine()
    fence_of(engine, ledger, [server], answers=2).clear_all()
    assert asked == ["S", "S"] and server.process() is not None
    assert engine.left == [] and ledger.left() == []


def test_where_a_query_does_not_stop_at_a_site_that_answers_nothing_goes_on(
    server: Server, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(address: str, session: str, left: Callable[[], float]) -> list[str]:
        raise EngineError("queries of an earlier run do not stop")

    monkeypatch.setattr(sites, "stop_all", stop)
    fence = fence_of(Engine(), ledger, [server], answers=2)
    with pytest.raises(EngineError, match="do not stop"):
        fence.clear_all()
    assert server.process() is not None and [left.session for left in ledger.left()] == ["S"]


def test_a_site_that_was_only_cut_off_answers_once_what_it_went_on_with_is_ended(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped: list[str] = []

    def stop(address: str, session: str, left: Callable[[], float]) -> list[str]:
        if len(stopped) < 2:
            stopped.append("refused")
            raise EngineError("queries of an earlier run do not stop")
        stopped.append(session)
        return []

    monkeypatch.setattr(sites, "stop_all", stop)
    engine = Engine()
    fence = fence_of(engine, ledger, [], lease=3.0)
    fence.clear("q", "site1")
    assert ledger.left() == [] and [left.session for left in ledger.buried()] == ["S"]
    assert not fence.answers("site1") and stopped == [], "it is silent"
    Silent.answers = 1000
    assert not fence.answers("site1"), "it answers, and the old copy does not stop"
    fence.clear_all()
    assert [left.session for left in ledger.buried()] == ["S"], "a run begins without it"
    assert fence.answers("site1") and stopped[-1] == "S" and ledger.buried() == []
    assert fence.answers("site1") and stopped.count("S") == 1


def test_a_run_begins_with_ending_what_a_site_that_is_back_has_gone_on_with(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped: list[str] = []
    monkeypatch.setattr(sites, "stop_all", lambda address, session, left: stopped.append(session))
    fence_of(Engine(), ledger, []).clear("q", "site1")
    fence_of(Engine(), ledger, [], answers=1).clear_all()
    assert stopped == ["S"] and ledger.buried() == []
