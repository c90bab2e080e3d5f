from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from headrace.errors import InternalError, UserError
from headrace.state.store import VERSION, Desired, JobRecord, Seen, Store
from tests.searches import examples

T0, T1, T2 = "2024-05-01T12:00:00Z", "2024-05-01T12:00:01Z", "2024-05-01T12:00:02Z"
FRESH = JobRecord("j", "q", "local", "f1", "running", None, None, 0, 0, 0, None, "", T0, T0)
SEEN = replace(
    FRESH,
    observed="running",
    batch=3,
    input_rows=100,
    output_rows=7,
    late_rows=2,
    watermark=5_000_000,
    updated=T1,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / ".headrace" / "state.db"


def see(store: Store) -> None:
    store.observe([Seen("j", "running", 3, 100, 7, 2, 5_000_000, "")], T1)


def test_wanted_then_observed(path: Path) -> None:
    with Store(path) as store:
        assert store.get("j") is None and store.all() == ()
        store.want("j", "q", "local", "f1", "running", T0)
        assert store.get("j") == FRESH
        see(store)
        assert store.get("j") == SEEN


def test_it_survives_closing(path: Path) -> None:
    with Store(path) as store:
        store.want("j", "q", "local", "f1", "running", T0)
        see(store)
    with Store(path) as store:
        assert store.all() == (SEEN,)


def test_wanting_again_keeps_what_was_observed(path: Path) -> None:
    with Store(path) as store:
        store.want("j", "q", "local", "f1", "running", T0)
        see(store)
        store.want("j", "q", "core", "f1", "stopped", T2)
        assert store.get("j") == replace(SEEN, site="core", desired="stopped", updated=T2)
        store.want("j", "q", "core", "f1", "drained", T2)
        assert store.get("j") == replace(SEEN, site="core", desired="drained", started=T2, updated=T2)


def test_another_fingerprint_is_another_job(path: Path) -> None:
    with Store(path) as store:
        store.want("j", "q", "local", "f1", "running", T0)
        see(store)
        store.want("j", "q", "local", "f2", "drained", T2)
        assert store.get("j") == replace(FRESH, fingerprint="f2", desired="drained", started=T2, updated=T2)


def test_never_started(path: Path) -> None:
    with Store(path) as store:
        store.want("j", "q", "local", "f1", "stopped", T0)
        found = store.get("j")
        assert found is not None and found.started is None


def test_observing_what_was_never_wanted_is_our_bug(path: Path) -> None:
    with Store(path) as store, pytest.raises(InternalError, match="never wanted"):
        see(store)


def test_unknown_desire_is_refused_and_changes_nothing(path: Path) -> None:
    with Store(path) as store:
        store.want("j", "q", "local", "f1", "running", T0)
        with pytest.raises(sqlite3.IntegrityError):
            store.want("j", "q", "local", "f2", "asleep", T1)  # type: ignore[arg-type]
        assert store.get("j") == FRESH


def test_newer_format(path: Path) -> None:
    Store(path).close()
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA user_version = {VERSION + 1}")
    db.close()
    with pytest.raises(UserError, match="written by a newer Headrace") as caught:
        Store(path)
    assert str(path) in caught.value.message and "newer Headrace" in caught.value.hint


@pytest.mark.parametrize("content", [b"not a database at all, " * 50, b"SQLite format 3\0" + b"\xff" * 4080])
def test_damaged_file(path: Path, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(UserError) as caught:
        Store(path)
    assert str(path) in caught.value.message and caught.value.hint
    assert path.read_bytes() == content


def test_damage_found_later(path: Path) -> None:
    with Store(path) as store:
        for number in range(500):
            store.want(f"j{number}", "q" * 50, "local", "f", "running", T0)
    raw = path.read_bytes()
    path.write_bytes(raw[:4096] + b"\xff" * (len(raw) - 4096))
    with Store(path) as store, pytest.raises(UserError, match="damaged"):
        store.all()


def test_folder_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "state.db").mkdir()
    with pytest.raises(UserError, match="cannot be used"):
        Store(tmp_path / "state.db")
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot be made"):
        Store(tmp_path / "file" / "state.db")


def test_a_busy_file_is_waited_for(path: Path) -> None:
    with Store(path) as store:
        other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        other.execute("BEGIN IMMEDIATE")
        threading.Timer(0.3, lambda: other.execute("COMMIT")).start()
        store.want("j", "q", "local", "f1", "running", T0)
        assert store.get("j") == FRESH
        other.close()


WRITER = """
import sys
from pathlib import Path
from headrace.state.store import Store
with Store(Path(sys.argv[1])) as store:
    for n in range(50):
        store.want(f"{sys.argv[2]}-{n}", "q", "local", "f", "running", "t")
        store.want("shared", "q", "local", f"f{n}", "running", "t")
"""


def test_several_processes_at_once(path: Path) -> None:
    """They also race to make the file."""
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(path), str(i)]) for i in range(4)]
    assert [writer.wait(timeout=60) for writer in writers] == [0, 0, 0, 0]
    with Store(path) as store:
        wanted = {f"{i}-{n}" for i in range(4) for n in range(50)} | {"shared"}
        assert {record.id for record in store.all()} == wanted


KILLED = """
import os, signal, sys
from pathlib import Path
from headrace.state.store import Store
store = Store(Path(sys.argv[1]))
store.want("j", "q", "local", "f1", "running", "2024-05-01T12:00:00Z")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_returned_survives_kill_9(path: Path) -> None:
    assert subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False).returncode == -9
    with Store(path) as store:
        assert store.all() == (FRESH,)


def test_threads_share_a_store(path: Path) -> None:
    with Store(path) as store:
        jobs = [f"j{n}" for n in range(4)]
        work = [threading.Thread(target=store.want, args=(j, "q", "s", "f", "running", T0)) for j in jobs]
        for thread in work:
            thread.start()
        for thread in work:
            thread.join()
        assert [record.id for record in store.all()] == jobs


IDS, PRINTS = st.sampled_from(["a", "b", "c"]), st.sampled_from(["f1", "f2"])
COUNTS, TIMES = st.integers(0, 2**62), st.sampled_from([T0, T1, T2])
DESIRES: st.SearchStrategy[Desired] = st.sampled_from(["running", "drained", "stopped"])


class StoreAgainstDict(RuleBasedStateMachine):
    """Random calls; a dict says what the store must hold."""

    def __init__(self) -> None:
        super().__init__()
        self.store = Store(Path(":memory:"))
        self.model: dict[str, JobRecord] = {}

    def teardown(self) -> None:
        self.store.close()

    @rule(job=IDS, print_=PRINTS, desired=DESIRES, now=TIMES)
    def want(self, job: str, print_: str, desired: Desired, now: str) -> None:
        self.store.want(job, "q", "s", print_, desired, now)
        old = self.model.get(job)
        started = now if desired != "stopped" else old.started if old else None
        if old is not None and old.fingerprint == print_:
            self.model[job] = replace(old, desired=desired, started=started, updated=now)
        else:
            self.model[job] = JobRecord(
                job, "q", "s", print_, desired, None, None, 0, 0, 0, None, "", started, now
            )

    @rule(job=IDS, batch=st.none() | COUNTS, rows=COUNTS, mark=st.none() | COUNTS, error=st.text(), now=TIMES)
    def observe(self, job: str, batch: int | None, rows: int, mark: int | None, error: str, now: str) -> None:
        if job in self.model:
            seen = Seen(job, "running", batch, rows, rows // 2, rows // 3, mark, error)
            self.store.observe([seen], now)
            self.model[job] = replace(
                self.model[job],
                observed="running",
                batch=batch,
                input_rows=rows,
                output_rows=rows // 2,
                late_rows=rows // 3,
                watermark=mark,
                error=error,
                updated=now,
            )

    @rule(job=IDS)
    def forget(self, job: str) -> None:
        self.store.forget(job)
        self.model.pop(job, None)

    @invariant()
    def same(self) -> None:
        assert self.store.all() == tuple(self.model[job] for job in sorted(self.model))
        assert self.store.get("a") == self.model.get("a")


TestStoreAgainstDict = StoreAgainstDict.TestCase
TestStoreAgainstDict.settings = settings(max_examples=examples(30), stateful_step_count=20, deadline=None)
