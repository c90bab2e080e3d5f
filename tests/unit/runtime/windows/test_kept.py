from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.runtime.windows import QuerySpec, Span, covers, valid_from
from tests.searches import examples
from tests.unit.runtime.windows.plain import last_edge

edges = st.lists(st.tuples(st.integers(1, 12), st.integers(0, 11)), min_size=1, max_size=3)


def test_nothing_kept_means_the_next_slide() -> None:
    assert valid_from(QuerySpec("q", 10, 4, ()), [], 9) == 12
    assert covers(QuerySpec("q", 10, 4, ()), [], [0, 4]) == [False, False]


def test_a_query_whose_edges_were_there_starts_at_once() -> None:
    kept = Span(100, 200, ((5, 0),))
    assert valid_from(QuerySpec("q", 30, 10, ()), [kept], 200) == 100
    assert valid_from(QuerySpec("q", 31, 10, ()), [kept], 200) == 170
    assert valid_from(QuerySpec("q", 30, 9, ()), [kept], 200) == 207


@settings(max_examples=examples(40))
@given(edges, st.integers(1, 60), st.integers(1, 20), st.integers(20, 150))
def test_a_covered_window_cuts_no_fragment(
    cut: list[tuple[int, int]], size: int, slide: int, end: int
) -> None:
    """Instant by instant: the fragment that each lies in is inside the window or outside it."""
    pairs = tuple((s, o % s) for s, o in cut)
    query, kept = QuerySpec("q", size, slide, ()), Span(0, end, pairs)
    starts = [k * slide for k in range(-2, 200 // slide)]
    for start, right in zip(starts, covers(query, [kept], starts), strict=True):
        inside = range(start, start + size)
        whole = all(
            (max(0, last_edge(pairs, t)) in inside) == (t in inside)
            for t in range(end)
            if last_edge(pairs, t) >= 0
        )
        if right:
            assert start >= 0 and whole
        elif start >= 0 and all(0 < e < end and last_edge(pairs, e) == e for e in (start, start + size)):
            raise AssertionError("both ends are edges, and the window was refused")
    first = valid_from(query, [kept], end)
    assert all(covers(query, [kept], [s for s in range(first, first + 300) if s % slide == 0]))
