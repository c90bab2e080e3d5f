"""Splits measured by a process of their own, over a few seconds of event time."""

from __future__ import annotations

from pathlib import Path

from headrace.service.throughput import Bench, Place
from headrace.service.throughput_stream import Load

SUMS = (
    "SELECT window_start, window_end, house, household, plug, sum(value) AS total "
    "FROM readings [RANGE 10 SECONDS SLIDE 1 SECOND] WHERE property = 'load' GROUP BY house, household, plug"
)


def test_splits_are_timed_and_compared_with_the_reference(tmp_path: Path) -> None:
    load = Load(50, houses=1, batch=5, fill=20, warm=2, measured=2)
    place = Place(tmp_path, memory="1g")
    with Bench(place) as bench:
        found = bench.measure("sums", SUMS, load, ["sd", "ss"], reference=True)
        bench.forget(load)
    assert [answer.split for answer in found] == ["sd", "ss"]
    for answer in found:
        assert not answer.problem
        assert len(answer.seconds) == len(answer.cpu) == 2
        assert min(answer.seconds) > 0
        assert answer.memory > 0
    # Windows of 25 plugs that end in the 15 s after the fill, less a batch or two; the second twice.
    assert 25 * 5 <= found[0].compared <= 25 * 15
    assert found[1].compared > found[0].compared
    assert not list(tmp_path.glob("rows-*"))
