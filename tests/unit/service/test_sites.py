"""Sites for development: what is refused, what is written, what is shown. Real servers are in spark/."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from ruamel.yaml import YAML

from headrace.catalog.load import load_project
from headrace.errors import EngineError, UserError
from headrace.runtime.spark.servers import Server, Wanted, servers
from headrace.service import sites
from headrace.service.sites import Up, as_yaml, check_writable, down, status, up, write_sites

PROJECT = """name: sample
streams:
  s:
    columns: {ts: timestamp, v: double}
    time: ts
    source: {kind: files, path: in, format: json}
queries:
  q: {sql: "SELECT ts FROM s"}
"""
SITES = 'sites:\n  site1: {endpoint: "sc://127.0.0.1:4711", cpu: 2, memory: 700m}\n'


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "headrace.yaml").write_text(PROJECT)
    return tmp_path


@pytest.fixture
def sleeper(tmp_path: Path) -> Iterator[Server]:
    """A process that sleeps, written down as a server of this folder."""
    with subprocess.Popen(["sleep", "60"]) as process:
        folder = tmp_path / "sites" / "site1"
        folder.mkdir(parents=True)
        began = psutil.Process(process.pid).create_time()
        about = {"pid": process.pid, "started": began, "port": 1, "memory": "700m", "cores": 1}
        (folder / "server.json").write_text(json.dumps(about))
        yield Server("site1", folder, process.pid, began, 1, "700m", 1)
        process.kill()


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (Up(0), "not a number of sites"),
        (Up(33), "not a number of sites"),
        (Up(1, "much"), "is not a size"),
        (Up(1, "100m"), "too little"),
        (Up(2, "9999g"), "need more than"),
        (Up(1, "1g", 0), "not a number of cores"),
    ],
)
def test_what_cannot_be_started_is_refused_and_leaves_nothing(tmp_path: Path, how: Up, message: str) -> None:
    with pytest.raises(UserError, match=message):
        up(tmp_path / "sites", how, {})
    assert list(tmp_path.iterdir()) == []


def test_starting_twice_says_what_runs(tmp_path: Path, sleeper: Server) -> None:
    with pytest.raises(UserError, match="1 site runs already") as caught:
        up(tmp_path / "sites", Up(2), {})
    assert f"site1: sc://127.0.0.1:1, process {sleeper.pid}" in caught.value.detail
    assert sleeper.process() is not None


def test_a_server_that_fails_to_start_takes_the_others_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone: list[str] = []

    class Begun:
        def __init__(self, wanted: Wanted, environ: object) -> None:
            self.wanted = wanted

        def __enter__(self) -> Begun:
            return self

        def __exit__(self, *_: object) -> None:
            gone.append(self.wanted.name)

        def keep(self) -> None:
            raise AssertionError("nothing may be kept")

    def wait(begun: Begun) -> None:
        if begun.wanted.name == "site2":
            raise UserError("no")

    monkeypatch.setattr(sites, "Starting", Begun)
    monkeypatch.setattr(sites, "_wait", wait)
    with pytest.raises(UserError, match="no"):
        up(tmp_path / "sites", Up(3, "512m"), {})
    assert sorted(gone) == ["site1", "site2", "site3"]


def _dead(sleeper: Server, name: str, port: int) -> Path:
    """A server beside the other, that was started and has died."""
    folder = sleeper.folder.with_name(name)
    folder.mkdir()
    about = {"pid": sleeper.pid, "started": 1.0, "port": port, "memory": "600m", "cores": 2}
    (folder / "server.json").write_text(json.dumps(about))
    return folder


class Begun:
    """Stands in for a server that is being started."""

    def __init__(self, wanted: Wanted, environ: object) -> None:
        self.wanted = wanted
        wanted.folder.mkdir()

    def __enter__(self) -> Begun:
        return self

    def __exit__(self, *_: object) -> None:
        self.wanted.folder.rmdir()

    def keep(self) -> Server:
        one = self.wanted
        return Server(one.name, one.folder, 4711, 2.0, one.port, one.memory, one.cores)


def test_only_what_has_died_is_started_again(
    tmp_path: Path, sleeper: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead, notes = _dead(sleeper, "site2", 7), list[str]()
    monkeypatch.setattr(sites, "Starting", Begun)
    monkeypatch.setattr(sites, "_wait", lambda begun: None)
    with pytest.raises(UserError, match="1 site runs already"):
        up(tmp_path / "sites", Up(3, "512m"), {})
    first, second = up(tmp_path / "sites", Up(2, "512m"), {}, notes.append)
    assert (first.name, first.pid) == ("site1", sleeper.pid) and sleeper.process() is not None
    assert second == Server("site2", dead.resolve(), 4711, 2.0, 7, "600m", 2)
    assert notes == ["site1 runs on; site2 had died", "site2 answers at sc://127.0.0.1:7"]


def test_one_that_cannot_be_started_again_is_dead_as_before(
    tmp_path: Path, sleeper: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    _dead(sleeper, "site2", 7)
    before = servers(tmp_path / "sites")
    monkeypatch.setattr(sites, "Starting", Begun)

    def wait(begun: Begun) -> None:
        raise EngineError("no")

    monkeypatch.setattr(sites, "_wait", wait)
    with pytest.raises(EngineError, match="no"):
        up(tmp_path / "sites", Up(2, "512m"), {})
    assert servers(tmp_path / "sites") == before and sleeper.process() is not None


def test_status_tells_dead_from_silent(tmp_path: Path, sleeper: Server) -> None:
    [row] = status(tmp_path / "sites", patience=0.5)
    assert (row.name, row.state, row.pid) == ("site1", "silent", sleeper.pid) and row.memory and row.reason
    psutil.Process(sleeper.pid).kill()
    psutil.Process(sleeper.pid).wait()
    [row] = status(tmp_path / "sites", patience=0.5)
    assert row.state == "dead" and "log" in row.reason


def test_down_ends_only_what_was_asked_for(tmp_path: Path, sleeper: Server) -> None:
    with pytest.raises(UserError, match="was not started here") as caught:
        down(tmp_path / "sites", ["site2"])
    assert "site1" in caught.value.hint and sleeper.process() is not None
    assert down(tmp_path / "sites", ["site1"]) == ("site1",)
    assert sleeper.process() is None and down(tmp_path / "sites") == ()


def test_down_knows_no_site_where_none_was_started(tmp_path: Path) -> None:
    assert down(tmp_path / "sites") == ()
    with pytest.raises(UserError, match='site "site9" was not started here'):
        down(tmp_path / "sites", ["site9"])


def test_a_folder_that_cannot_be_made_is_nobody_elses_doing(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file")
    with pytest.raises(UserError, match=r"cannot be opened: (File exists|Not a directory)"):
        up(tmp_path / "state" / "sites", Up(1, "1g"), {}, print)


def test_the_section_can_be_read_again(project: Path) -> None:
    server = Server("site1", project, 1, 0.0, 4711, "700m", 2)
    assert as_yaml([server]) == SITES
    assert write_sites(project, SITES) == project / "headrace.yaml"
    found = load_project(project)
    assert found.sites["site1"].endpoint == "sc://127.0.0.1:4711" and found.sites["site1"].cpu == 2
    assert (project / "headrace.yaml").read_text().startswith(PROJECT)
    with pytest.raises(UserError, match="has a `sites` section already"):
        check_writable(project)


@pytest.mark.parametrize("end", ["", "\n"])
def test_a_file_in_braces_cannot_take_a_section(project: Path, end: str) -> None:
    path = project / "headrace.yaml"
    path.write_text(json.dumps(YAML(typ="safe").load(PROJECT)) + end)
    load_project(project)
    with pytest.raises(UserError, match="no section can be put at the end"):
        check_writable(project)


def test_a_file_that_would_be_wrong_stays_as_it_was(project: Path) -> None:
    with pytest.raises(UserError):
        write_sites(project, "sites:\n  x: {endpoint: nowhere}\n")
    assert (project / "headrace.yaml").read_text() == PROJECT


def test_a_site_of_the_project_that_is_away_is_shown(project: Path) -> None:
    write_sites(project, 'sites:\n  edge: {endpoint: "sc://127.0.0.1:1/;token=s3cret"}\n')
    [row] = status(project / "sites", load_project(project), patience=0.5)
    assert (
        (row.name, row.state) == ("edge", "away") and "s3cret" not in row.address and "refused" in row.reason
    )
