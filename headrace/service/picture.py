"""A plan as a picture: SVG, and a page of HTML around it; no library.

Rows flow from the streams at the top to the sink at the bottom. Jobs stand side by side, each in a frame,
in rows of about the width of a screen; the trees that queries share stand above them.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from html import escape
from itertools import pairwise

from headrace.service.explain import JobData, SharedTreeData
from headrace.service.federation_data import FederationData
from headrace.service.layers import Node, Place, lay_out
from headrace.service.sharing_picture import Frame, tree_frames

_BOX = 264
_CHARS = 36
_LINE = 15
_HEAD = 30
_MOST_LINES = 9
_MARGIN = 20
_TITLE = 38
_SCREEN = 1500
_COLOURS = {
    "Stream": ("#e8f3ec", "#2f7d4f"),
    "Table": ("#f4efe3", "#8a6d1f"),
    "Filter": ("#fbeeee", "#a24444"),
    "Project": ("#f3f3f6", "#63636e"),
    "Window": ("#e9f0fa", "#2b5fa5"),
    "Aggregate": ("#dfe9fb", "#1f4c96"),
    "IntervalJoin": ("#f1eafa", "#6a3ca0"),
    "TableJoin": ("#f1eafa", "#6a3ca0"),
    "WindowJoin": ("#f1eafa", "#6a3ca0"),
    "Sink": ("#24323f", "#24323f"),
}
_ENGINES = {
    "spark": ("#e9f0fa", "#2b5fa5"),
    "duckdb": ("#fff3c4", "#a67c00"),
    "spark+duckdb": ("#eef3dc", "#5f7d2a"),
}
_TRANSFER = "#c2410c"
_STYLE = (
    "text{font-family:'DejaVu Sans Mono',Menlo,Consolas,monospace;font-size:11px;fill:#22272e}"
    ".op{font-weight:bold;font-size:12px}.light text{fill:#fff}"
    ".title{font-family:'DejaVu Sans',Helvetica,Arial,sans-serif;font-size:15px;font-weight:bold}"
)
_TIP = (
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" '
    'orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="#6b7480"/></marker></defs>'
)
_PAGE_STYLE = (
    "body{font-family:Helvetica,Arial,sans-serif;margin:2rem;color:#22272e}"
    "pre{background:#f6f7f9;padding:1rem;overflow-x:auto;font-size:12px}"
    ".picture{overflow-x:auto;border:1px solid #d8dce2}"
)


def svg(jobs: Sequence[JobData], trees: Sequence[SharedTreeData] = ()) -> str:
    """One picture of all trees and, below them, all jobs."""
    above, wide, below = _shelves(tree_frames(trees)) if trees else ([], 0, _MARGIN)
    under, width, height = _shelves([_job(job) for job in jobs], below)
    placed, width = [*above, *under], max(wide, width)
    body = "".join(f'<g transform="translate({x},{y})">{frame.body}</g>' for frame, x, y in placed)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}"><style>{_STYLE}</style>{_TIP}'
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>{body}</svg>\n'
    )


def html(title: str, jobs: Sequence[JobData], trees: Sequence[SharedTreeData] = ()) -> str:
    """A page on its own: the picture, then the text of every tree and plan."""
    shared = "".join(f"<pre>{escape(tree['text'])}</pre>" for tree in trees)
    texts = f"<h2>sharing</h2>{shared}" if trees else ""
    texts += "".join(
        f"<h2>{escape(job['query'])}</h2><p>on {escape(job['site'])}, to {escape(job['sink'])}</p>"
        f"<pre>{escape(job['text'])}</pre>"
        for job in jobs
    )
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{_PAGE_STYLE}</style></head><body><h1>{escape(title)}</h1>"
        f'<div class="picture">{svg(jobs, trees)}</div>{texts}</body></html>\n'
    )


def _shelves(frames: Sequence[Frame], top: int = _MARGIN) -> tuple[list[tuple[Frame, int, int]], int, int]:
    """The frames in rows from `top` down, each with its corner, and the size of it all."""
    placed: list[tuple[Frame, int, int]] = []
    x, y = _MARGIN, top
    tallest, widest = 0, 0
    for frame in frames:
        if x > _MARGIN and x + frame.width > _SCREEN:
            x, y, tallest = _MARGIN, y + tallest + _MARGIN, 0
        placed.append((frame, x, y))
        x += frame.width + _MARGIN
        tallest, widest = max(tallest, frame.height), max(widest, x)
    return placed, max(widest, 2 * _MARGIN), y + tallest + _MARGIN


def _job(job: JobData) -> Frame:
    texts = _texts(job)
    nodes = _nodes(job, texts)
    layout = lay_out(nodes)
    title = f"{job['query']} on {job['site']}"
    split = job.get("federation")
    if split is not None:
        title += f", split: C_b {split['chosen']['bottleneck']:.2g}, C_u {split['chosen']['utilisation']:.2g}"
    width = int(max(layout.width, 9 * len(title))) + 2 * _MARGIN
    height = int(layout.height) + _TITLE + _MARGIN
    head = (
        f'<rect width="{width}" height="{height}" rx="8" fill="none" stroke="#d8dce2"/>'
        f'<text class="title" x="{_MARGIN}" y="25">{escape(title)}</text>'
    )
    engines = {} if split is None else split["engines"]
    arrows = zip(layout.arrows, _crossings(nodes, split), strict=True)
    inner = "".join(_arrow(chain, text) for chain, text in arrows) + "".join(
        _box(name, *texts[name], place, engines.get(name)) for name, place in layout.places.items()
    )
    return Frame(f'{head}<g transform="translate({_MARGIN},{_TITLE})">{inner}</g>', width, height)


def _texts(job: JobData) -> dict[str, tuple[str, list[str]]]:
    """Operator and wrapped detail of every box; the last one is the sink."""
    texts = {line["id"]: (line["operator"], _wrap(line["detail"])) for line in job["plan"]}
    texts["sink"] = ("Sink", _wrap(f"{job['sink']} {_shortened(job['results'])}"))
    return texts


def _nodes(job: JobData, texts: dict[str, tuple[str, list[str]]]) -> list[Node]:
    height = {name: _HEAD + _LINE * len(lines) for name, (_, lines) in texts.items()}
    nodes = [Node(line["id"], tuple(line["inputs"]), _BOX, height[line["id"]]) for line in job["plan"]]
    return [*nodes, Node("sink", (job["plan"][-1]["id"],), _BOX, height["sink"])]


def _shortened(path: str) -> str:
    """The end of a path: enough to know it by."""
    return path if len(path) <= 2 * _CHARS else "..." + path[3 - 2 * _CHARS :]


def _wrap(text: str) -> list[str]:
    lines = textwrap.wrap(text, _CHARS, break_on_hyphens=False)
    return lines if len(lines) <= _MOST_LINES else [*lines[: _MOST_LINES - 1], "..."]


def _crossings(nodes: Sequence[Node], split: FederationData | None) -> list[str | None]:
    """What is written beside each arrow that leads from one engine to the other; None: it does not."""
    if split is None:
        return [None for node in nodes for _ in node.inputs]
    engines, rates = split["engines"], split["rows_per_second"]
    # What a job on Spark gives is in the sink already; DuckDB's results have to be brought there.
    at = {**engines, "sink": "spark"}
    return [
        f"{rates[name]:,.4g} rows/s" if name in engines and engines[name] != at.get(node.id) else None
        for node in nodes
        for name in node.inputs
    ]


def _arrow(chain: tuple[Place, ...], text: str | None) -> str:
    colour, width = ("#6b7480", 1.4) if text is None else (_TRANSFER, 1.8)
    path = (
        f'<path d="{_way(chain)}" fill="none" stroke="{colour}" stroke-width="{width}" '
        'marker-end="url(#tip)"/>'
    )
    if text is None:
        return path
    # On the side that the arrow does not come from.
    from_right = chain[-2].middle > chain[-1].middle + 1
    x, y = chain[-1].middle + (-12 if from_right else 12), chain[-1].y - 10
    anchor = "end" if from_right else "start"
    style = f"fill:{_TRANSFER};font-weight:bold;text-anchor:{anchor}"
    return f'{path}<text x="{x:.1f}" y="{y:.1f}" style="{style}">{text}</text>'


def _way(chain: tuple[Place, ...]) -> str:
    """A curve from each place down to the next, and straight down past what stands beside a slot."""
    path = f"M{chain[0].middle:.1f},{chain[0].bottom:.1f}"
    for above, below in pairwise(chain):
        half = (below.y - above.bottom) / 2
        path += (
            f" C{above.middle:.1f},{above.bottom + half:.1f} {below.middle:.1f},{below.y - half:.1f} "
            f"{below.middle:.1f},{below.y:.1f}"
        )
        if below is not chain[-1]:
            path += f" V{below.bottom:.1f}"
    return path


def _box(name: str, operator: str, lines: list[str], place: Place, engine: str | None) -> str:
    fill, edge = _ENGINES.get(engine or "") or _COLOURS.get(operator, ("#ffffff", "#63636e"))
    light = ' class="light"' if operator == "Sink" else ""
    head = operator if operator == "Sink" else f"{operator} {name}"
    head += "" if engine is None else f" · {engine}"
    x, y = place.x + 10, place.y + 19
    texts = [f'<text class="op" x="{x:.1f}" y="{y:.1f}">{escape(head)}</text>']
    for number, line in enumerate(lines, start=1):
        texts.append(f'<text x="{x:.1f}" y="{y + _LINE * number:.1f}">{escape(line)}</text>')
    rect = (
        f'<rect x="{place.x:.1f}" y="{place.y:.1f}" width="{place.width}" height="{place.height}" rx="6" '
        f'fill="{fill}" stroke="{edge}" stroke-width="1.2"/>'
    )
    return f"<g{light}>{rect}{''.join(texts)}</g>"
