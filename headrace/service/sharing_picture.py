"""The trees of a plan as pictures: what they share, on a ruler of time.

A tree is a frame. At its top the fragments of the first stretch of time, one box from edge to edge; below, a
line for each query with its own edges as ticks and its windows as bars, so that one sees which fragments a
window is made of. A red mark before a query says that it has a filter of its own, a violet one that its keys
are rolled up. Bars compare what the tree costs with what its queries cost alone, in predicted cores; they
have one scale over all trees of the picture.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import islice, pairwise

from headrace.service.explain import MemberData, SharedTreeData
from headrace.units import format_duration

MOST_EDGES = 40
MOST_QUERIES = 24
_WIDTH = 700
_LEFT = 190
_MARGIN = 20
_ROW = 22
_HEAD = 58
_RULER = 46
_COSTS = 82
_FILLS = ("#dfe9fb", "#b9cdf2")
_TICK = "#1f4c96"
_BAR = "#2f7d4f"
_GREY = "#b9bfc8"
_PALE = "#dfe2e7"
_FILTER = "#a24444"
_ROLLED = "#6a3ca0"
_CHARS = 24


@dataclass(frozen=True, slots=True)
class Frame:
    """A part of a picture, drawn from (0, 0)."""

    body: str
    width: int
    height: int


def first_edges(windows: Sequence[tuple[int, int]], most: int = MOST_EDGES) -> list[int]:
    """The first edges of a tree from time 0 on, at most so many. `windows` are (range, slide)."""
    classes = {(slide, start) for length, slide in windows for start in (0, length % slide)}
    merged: Iterator[int] = heapq.merge(*(_class(slide, start, most) for slide, start in sorted(classes)))
    seen = dict.fromkeys(islice(merged, 2 * len(classes) * most))
    return sorted(seen)[:most]


def _class(slide: int, start: int, most: int) -> Iterator[int]:
    return iter(range(start, start + slide * most, slide))


def tree_frames(trees: Sequence[SharedTreeData]) -> list[Frame]:
    dearest = max((max(cost for cost, _, _ in _bars(tree)) for tree in trees), default=1.0)
    return [_tree(tree, dearest) for tree in trees]


def _tree(tree: SharedTreeData, dearest: float) -> Frame:
    shown = tree["queries"][:MOST_QUERIES]
    edges = first_edges([(q["range"], q["slide"]) for q in tree["queries"]])
    # One fragment past the last edge, so that the stretch ends inside time and not on a mark.
    end = edges[-1] + (edges[-1] - edges[-2] if len(edges) > 1 else tree["queries"][0]["slide"])
    scale = _Scale(end)
    more = len(tree["queries"]) - len(shown)
    top = _HEAD + _RULER
    height = top + _ROW * (len(shown) + bool(more)) + _COSTS
    width = _LEFT + _WIDTH + 2 * _MARGIN
    rows = "".join(_query(query, scale, top + _ROW * i) for i, query in enumerate(shown))
    if more:
        rows += _text(_MARGIN, top + _ROW * len(shown) + 15, f"... and {more} more queries")
    guides = "".join(
        f'<path d="M{scale.x(edge):.1f},{_HEAD + 26} V{top + _ROW * len(shown)}" stroke="#e3e7ee"/>'
        for edge in edges
    )
    body = (
        f'<rect width="{width}" height="{height}" rx="8" fill="none" stroke="#d8dce2"/>'
        f"{_title(tree)}{guides}{_ruler(edges, scale)}{rows}"
        f"{_costs(tree, dearest, height - _COSTS + 14)}"
    )
    return Frame(body, width, height)


@dataclass(frozen=True, slots=True)
class _Scale:
    end: int

    def x(self, micros: float) -> float:
        return _MARGIN + _LEFT + _WIDTH * min(micros, self.end) / self.end


def _title(tree: SharedTreeData) -> str:
    count = len(tree["queries"])
    title = f"tree {tree['tree']} on {tree['site']}: {count} {'query' if count == 1 else 'queries'}"
    exact = "" if tree["exact"] else "at most "
    rows = _cut(f"{tree['rows']} by ({', '.join(tree['keys'])}){_bucket(tree)}", 92)
    figures = f"{exact}{tree['edge_rate_float']:.4g} fragments/s; ticks: edges, bars: the first two windows"
    return (
        f'<text class="title" x="{_MARGIN}" y="25">{escape(title)}</text>'
        f"{_text(_MARGIN, 45, rows)}{_text(_MARGIN + _LEFT + _WIDTH, 25, figures, 'end')}"
    )


def _bucket(tree: SharedTreeData) -> str:
    return ", all in one bucket" if tree["keys"] and not tree["spread"] else ""


def _ruler(edges: Sequence[int], scale: _Scale) -> str:
    """The fragments, in two shades so that each is seen, and the instants of some edges."""
    boxes = "".join(
        f'<rect x="{scale.x(a):.1f}" y="{_HEAD + 16}" width="{scale.x(b) - scale.x(a):.1f}" height="14" '
        f'fill="{_FILLS[i % 2]}" stroke="{_TICK}" stroke-width="0.6"/>'
        for i, (a, b) in enumerate(pairwise([*edges, scale.end]))
    )
    labels, free = "", 0.0
    for edge in edges:
        label = format_duration(edge)
        if scale.x(edge) >= free:
            labels += _text(scale.x(edge), _HEAD + 11, label, "middle")
            free = scale.x(edge) + 7.0 * len(label) + 14
    return f"{_text(_MARGIN, _HEAD + 27, 'fragments')}{labels}{boxes}"


def _query(query: MemberData, scale: _Scale, y: int) -> str:
    """Its name, its first windows as bars in two lanes, and its edges."""
    length, slide = query["range"], query["slide"]
    bars = "".join(
        f'<rect x="{scale.x(start):.1f}" y="{y + 4 + 6 * (i % 2)}" height="4" fill="{_BAR}" '
        f'fill-opacity="{0.75 if i % 2 else 0.4}" width="{scale.x(start + length) - scale.x(start):.1f}"/>'
        for i, start in enumerate(range(0, min(scale.end, 2 * slide), slide))
    )
    ticks = "".join(
        f'<path d="M{scale.x(edge):.1f},{y + 2} v14" stroke="{_TICK}" stroke-width="1.2"/>'
        for edge in first_edges([(length, slide)], 2 * MOST_EDGES)
        if edge < scale.end
    )
    window = f"{format_duration(length)}/{format_duration(slide)}"
    name = _cut(query["query"], _CHARS - len(window) - 1 + 3)
    return (
        f"<g><title>{escape(_told(query))}</title>{_marks(query, y)}"
        f"{_text(_MARGIN, y + 14, name)}{_text(_MARGIN + _LEFT - 8, y + 14, window, 'end')}{bars}{ticks}</g>"
    )


def _told(query: MemberData) -> str:
    """What the pointer finds on a query's line."""
    where = f" where {' AND '.join(query['where'])}" if query["where"] else ""
    rolled = f", rolled up to ({', '.join(query['keys'])})" if query["rolled_up"] else ""
    return f"{query['query']}: {query['window']}, {', '.join(query['aggregates'])}{where}{rolled}"


def _marks(query: MemberData, y: int) -> str:
    shown = [(_FILTER, bool(query["where"])), (_ROLLED, query["rolled_up"])]
    return "".join(
        f'<rect x="{4 + 7 * i}" y="{y + 6}" width="5" height="9" fill="{fill}"/>'
        for i, (fill, there) in enumerate(shown)
        if there
    )


def _bars(tree: SharedTreeData) -> list[tuple[float, str, str]]:
    """(cores, colour, words)"""
    apart = [] if tree["alone"] else [(tree["unshared_cost"], _GREY, "with a tree each")]
    plain = (tree["plain_cost"], _PALE, "as Spark's own windows")
    return [(tree["cost"], _BAR, "cores"), *apart, plain]


def _costs(tree: SharedTreeData, dearest: float, y: int) -> str:
    parts = [_text(_MARGIN, y + 11, "cost")]
    for i, (cost, fill, words) in enumerate(_bars(tree)):
        wide = max(1.0, (_WIDTH - 230) * cost / dearest)
        x = _MARGIN + _LEFT
        parts.append(f'<rect x="{x}" y="{y + 18 * i}" width="{wide:.1f}" height="13" fill="{fill}"/>')
        parts.append(_text(x + wide + 8, y + 11 + 18 * i, f"{cost:,.3g} {words}"))
    if tree["alone"]:
        parts.append(_text(_MARGIN, y + 50, _cut(tree["alone"], 130)))
    return "".join(parts)


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y}" text-anchor="{anchor}">{escape(text)}</text>'


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 3] + "..."
