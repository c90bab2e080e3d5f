"""File channels against their twin in memory, under random use; kills in the middle; newcomers."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace.runtime.channels import files
from headrace.runtime.channels.files import FileChannel
from headrace.runtime.channels.memory import MemoryChannel
from headrace.runtime.channels.parts import due, kept_marks, numbered, read_upto
from headrace.runtime.channels.protocol import Channel, Limit, Mark, Size
from headrace.runtime.files import write_json
from tests.searches import examples


def _part(folder: Path, *times: int) -> Path:
    path = folder / f"staged-{len(list(folder.iterdir()))}.parquet"
    pq.write_table(pa.table({"t": pa.array(times, pa.timestamp("us", "UTC"))}), path)
    return path


@pytest.fixture
def staged(tmp_path: Path) -> Path:
    folder = tmp_path / "staged"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("seed", range(examples(4)))
def test_files_and_memory_do_the_same(seed: int, tmp_path: Path, staged: Path) -> None:
    rng = random.Random(seed)
    memory = MemoryChannel("x", ("t",), Limit(parts=5))
    other = FileChannel(tmp_path / "x", ("t",), Limit(parts=5))
    given = batch = 0
    readers: set[str] = set()

    def both(what: str, *args: object) -> None:
        assert getattr(memory, what)(*args) == getattr(other, what)(*args)

    for _ in range(40):
        match rng.choice(("put", "put", "again", "mark", "enlist", "advance", "leave", "collect", "end")):
            case "put":
                part = _part(staged, *(rng.randint(0, 1000) for _ in range(rng.randint(1, 3))))
                both("put", given, part)
                given += rng.randint(1, 2)  # a part without rows has a number and no file
            case "again" if memory.parts:
                number, again = rng.choice(sorted(memory.parts)), staged / "again.parquet"
                pq.write_table(memory.parts[number], again)
                both("put", number, again)
            case "mark":
                mark = Mark(given, {"t": batch})
                both("mark", batch, mark)
                batch += rng.randint(0, 1)
            case "enlist":
                readers.add(name := rng.choice("abc"))
                both("enlist", name)
            case "advance" if readers:
                name, upto = rng.choice(sorted(readers)), rng.randint(0, given)
                both("advance", name, upto)
            case "leave" if readers:
                readers.remove(name := rng.choice(sorted(readers)))
                both("leave", name)
            case "collect":
                upto = rng.randint(0, given)
                both("collect", upto)
            case "end":
                ends = rng.random() < 0.5
                both("end" if ends else "reopen")
        _same(memory, other, tmp_path / "x")


def _same(memory: MemoryChannel, other: Channel, folder: Path) -> None:
    there = numbered(folder / "rows")
    assert set(there) == set(memory.parts)
    assert all(pq.read_table(path).equals(memory.parts[n]) for n, path in there.items())
    assert memory.marks() == other.marks()
    assert memory.size().parts == other.size().parts
    assert memory.full() == other.full() == (len(there) >= 5)
    assert memory.ended() == other.ended()


def test_end_and_again(tmp_path: Path) -> None:
    for channel in (FileChannel(tmp_path / "x", ("t",)), MemoryChannel("x", ("t",))):
        assert channel.id == "x"
        assert not channel.ended()
        channel.end()
        assert channel.ended()
        channel.reopen()
        assert not channel.ended()


def test_nothing_goes_while_nobody_reads_or_one_has_not_read(tmp_path: Path, staged: Path) -> None:
    channel = FileChannel(tmp_path / "x", ("t",))
    for number in range(4):
        channel.put(number, _part(staged, number))
    assert channel.collect(4) == 0
    channel.enlist("fast")
    channel.enlist("slow")
    channel.advance("fast", 4)
    channel.advance("slow", 1)
    assert channel.collect(4) == 1
    assert set(numbered(channel.rows)) == {1, 2, 3}
    channel.advance("slow", 0)
    assert channel.place("slow") == 1, "what was read once is read"
    channel.leave("slow")
    assert channel.collect(2) == 2, "parts that the maker may put again stay"


def test_a_newcomer_is_told_from_when_on_it_has_all(tmp_path: Path, staged: Path) -> None:
    channel = FileChannel(tmp_path / "x", ("t",))
    assert channel.enlist("first") == {}
    for number, times in enumerate(([5, 70], [60], [80, 10])):
        channel.put(number, _part(staged, *times))
    channel.advance("first", 2)
    channel.collect(3)
    assert channel.enlist("second") == {"t": 71}
    channel.advance("first", 3)
    assert channel.collect(3) == 2, "the newcomer has not read the third"
    assert channel.enlist("second") == {"t": 71}, "the same again"
    channel.advance("second", 3)
    assert channel.collect(3) == 3
    channel.put(1, _part(staged, 60))
    assert channel.size() == Size(0, 0), "a maker that was killed does not bring back what is gone"


def test_a_reader_that_comes_during_a_removal_stops_it(
    tmp_path: Path, staged: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel = FileChannel(tmp_path / "x", ("t",))
    channel.put(0, _part(staged, 1))
    channel.enlist("old")
    channel.advance("old", 1)
    written = write_json

    def meanwhile(path: Path, data: object) -> None:
        if path.name == "gone.json" and "new" not in channel.readers():
            monkeypatch.setattr(files, "write_json", written)
            assert channel.enlist("new") == {}
        written(path, data)

    monkeypatch.setattr(files, "write_json", meanwhile)
    assert channel.collect(1) == 0
    assert set(numbered(channel.rows)) == {0}


def test_a_removal_that_was_cut_short(tmp_path: Path, staged: Path) -> None:
    """gone.json says more than has gone: who comes then reads what is left, and nothing is taken from it."""
    channel = FileChannel(tmp_path / "x", ("t",))
    for number in range(3):
        channel.put(number, _part(staged, number))
    channel.enlist("old")
    channel.advance("old", 3)
    (tmp_path / "x" / "gone.json").write_text(json.dumps({"parts": 2, "times": {"t": 1}}))
    assert channel.enlist("new") == {"t": 2}
    channel.collect(3)
    assert set(numbered(channel.rows)) == {0, 1, 2}
    channel.advance("new", 3)
    assert channel.collect(3) == 3
    assert not numbered(channel.rows)


def test_a_mark_is_due_when_all_before_it_is_read() -> None:
    marks = {4: Mark(0, {"t": 10}), 5: Mark(3, {"t": 20}), 9: Mark(3, {"t": 30}), 10: Mark(6, {"t": 40})}
    assert due(marks, []) == 10
    assert due(marks, [5, 7]) == 9, "part 5 is not read, and the last mark would overtake it"
    assert due(marks, [6]) == 10
    assert due(marks, [1]) == 4
    assert due({1: Mark(2, {})}, [0]) is None
    assert set(kept_marks(marks, 0, range(6))) == {4, 9, 10}, "5 is never due: 9 is behind the same parts"
    assert set(kept_marks(marks, 3, range(6))) == {9, 10}
    assert set(kept_marks(marks, 3, [6, 7])) == {10}, "parts without rows are not there"
    assert set(kept_marks(marks, 8, range(9))) == {10}
    assert kept_marks({}, 0, [1]) == {}


@pytest.mark.parametrize("seed", range(examples(30)))
def test_whoever_reads_is_due_the_same_marks_as_if_all_were_kept(seed: int) -> None:
    rng = random.Random(seed)
    given = 0
    marks: dict[int, Mark] = {}
    for batch in range(rng.randint(0, 12)):
        given += rng.randint(0, 3)
        if rng.random() < 0.8:
            marks[batch] = Mark(given, {"t": batch})
    there = [number for number in range(given + rng.randint(0, 2)) if rng.random() < 0.5]
    passed = rng.randint(0, given)
    kept = kept_marks(marks, passed, there)
    assert kept.items() <= marks.items()
    for place in range(passed, given + 3):
        left = [number for number in there if number >= place]
        assert due(kept, left) == due(marks, left)
    assert len(kept) <= len([number for number in there if number >= passed]) + 1


def test_a_maker_without_rows_fills_nothing(tmp_path: Path, staged: Path) -> None:
    """Its batches give files without rows, which have numbers and are not put, and promises."""
    channel, part = FileChannel(tmp_path / "x", ("t",)), _part(staged, 1)
    channel.enlist("a")
    for batch in range(60):
        if batch in (2, 40):
            channel.put(batch, part)
        channel.mark(batch, Mark(batch + 1, {"t": batch}))
        marks, there = channel.marks(), numbered(channel.rows)
        left = [] if batch % 7 == 0 else list(there)
        channel.advance("a", read_upto(marks, there, left))
        gone = channel.collect(batch + 1)
        assert len(channel.marks()) <= 2
        if not left:
            assert gone == batch + 1, "what its maker has staged can go, too"


def test_how_far_a_reader_is() -> None:
    marks = {0: Mark(2, {}), 3: Mark(7, {})}
    assert read_upto(marks, [1, 4, 9], [4, 9]) == 4
    assert read_upto(marks, [1, 4], []) == 7, "5 and 6 had no rows"
    assert read_upto(marks, [1, 9], []) == 10, "nobody has promised anything of 9 yet"
    assert read_upto({}, [], []) == 0


def test_full_by_bytes(tmp_path: Path, staged: Path) -> None:
    channel = FileChannel(tmp_path / "x", ("t",), Limit(bytes=1500))
    channel.put(0, _part(staged, 1))
    assert not channel.full()
    channel.put(1, _part(staged, *range(500)))
    assert channel.full()
