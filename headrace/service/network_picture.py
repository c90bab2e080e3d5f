"""The map of a network: sites, links, what is joined where, and how much data goes which way; SVG, and a page
of HTML around it; no library.

    NetworkMap(title, spots, wires, flows, ...)    plain data, as `placing_data` makes it
    draw_svg(found), draw_html(found, tables)      text of a file
    draw(found, path, tables)                      one or the other, by the ending of the path

A site is a disc, larger with more joins; a green edge says that streams come from it, an orange square around
it that results go there. Data is a line along each link of its way, as wide as its rate, on the right of the
link in the direction it goes. What does not fit on the page is told when the pointer rests on it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise
from math import hypot, sqrt
from pathlib import Path

from headrace.errors import UserError
from headrace.service.placing_labels import Box, Label, put_labels
from headrace.service.placing_layout import lay_out_network

MOST_SITES = 250
"""More are not drawn; those without a part in the plan are left out first."""
_WIDTH, _SIDE, _TOP, _FOOT = 1200, 70, 70, 84
_WIDEST, _THINNEST = 15.0, 1.2
_FEW = 40
_WORDS = (
    "Near each other: data passes cheaply. Arrows: which way it goes. "
    "Rest the pointer on anything to read more."
)
_STYLE = (
    "text{font-family:Helvetica,Arial,sans-serif;font-size:12px;fill:#1f2630}"
    ".title{font-size:17px;font-weight:bold}.small{font-size:10.5px;fill:#59636f}"
    ".name{font-weight:bold}.halo{stroke:#fff;stroke-width:3px;stroke-linejoin:round;fill:#fff}"
    ".page{fill:#fff}.wire{stroke:#c3cad3;stroke-width:1.2}.flow{stroke:#2f6fc4;stroke-opacity:.78}"
    ".tip{fill:#17427d}.flow:hover{stroke-opacity:1}"
    ".site{fill:#e3e7ec;stroke:#7d8794;stroke-width:1.2}.joins{fill:#7a4fb8;stroke:#4b2a80}"
    ".from{stroke:#1f8a4c;stroke-width:4}.to{fill:none;stroke:#d9760a;stroke-width:2.4}"
    ".count{fill:#fff;font-size:11px;font-weight:bold}"
    "@media(prefers-color-scheme:dark){text{fill:#e4e8ee}.small{fill:#9aa5b1}.page{fill:#14181d}"
    ".halo{stroke:#14181d;fill:#14181d}.wire{stroke:#434c57}.flow{stroke:#5b9bf0}.tip{fill:#b5d2fb}"
    ".site{fill:#39414b;stroke:#8b96a3}.joins{fill:#9a70d8;stroke:#cbb1f2}.from{stroke:#3fbf77}"
    ".to{stroke:#f59a36}.count{fill:#fff}}"
)
_PAGE = (
    "body{font-family:Helvetica,Arial,sans-serif;margin:2rem;color:#1f2630;background:#fff}"
    ".picture{overflow-x:auto;border:1px solid #cfd5dc}table{border-collapse:collapse;margin:.5rem 0 1.5rem}"
    "td,th{padding:.25rem .8rem;border-bottom:1px solid #d8dde3;text-align:left;font-size:14px;"
    "vertical-align:top}svg{max-width:100%;height:auto}"
    "@media(prefers-color-scheme:dark){body{background:#14181d;color:#e4e8ee}"
    ".picture{border-color:#434c57}td,th{border-color:#39414b}}"
)


@dataclass(frozen=True, slots=True)
class Spot:
    """A site, with what is there."""

    name: str
    streams: tuple[str, ...] = ()
    joins: tuple[str, ...] = ()
    """What each join that runs here joins."""
    sinks: tuple[str, ...] = ()
    """Queries whose results go here."""

    @property
    def matters(self) -> bool:
        return bool(self.streams or self.joins or self.sinks)


@dataclass(frozen=True, slots=True)
class Wire:
    """A link, both ways."""

    a: str
    b: str
    cost: float
    words: str = ""
    """What the cost is, in words; empty: the number says it."""


@dataclass(frozen=True, slots=True)
class Flow:
    """Data on its way. `path` is every site from where it is made to where it is read."""

    path: tuple[str, ...]
    rate: float
    what: str


@dataclass(frozen=True, slots=True)
class NetworkMap:
    title: str
    spots: tuple[Spot, ...]
    wires: tuple[Wire, ...]
    flows: tuple[Flow, ...]
    unit: str = ""
    """Of rates, as `B/s`."""
    notes: tuple[str, ...] = ()
    """Lines under the title."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table under the picture of a page."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def draw(found: NetworkMap, path: Path, tables: Sequence[Table] = ()) -> str:
    """What to write into a file of that name. Raises UserError where the name says neither."""
    match path.suffix.lower():
        case ".svg":
            return draw_svg(found)
        case ".html" | ".htm":
            return draw_html(found, tables)
    raise UserError(f'"{path}" is neither an .svg nor an .html file', hint="Name it map.svg or map.html.")


def draw_html(found: NetworkMap, tables: Sequence[Table] = ()) -> str:
    """A page on its own: the picture, then the tables."""
    body = "".join(_table(table) for table in tables)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(found.title)}</title>'
        f'<meta name="color-scheme" content="light dark"><style>{_PAGE}</style></head><body>'
        f'<div class="picture">{draw_svg(found)}</div>{body}</body></html>\n'
    )


def draw_svg(found: NetworkMap) -> str:
    return _Picture(_drawable(found)).svg()


def amount(value: float, unit: str = "") -> str:
    """A number as people say it: 12.3 kB/s."""
    for size, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g} {prefix}{unit}".rstrip()
    return f"{value:.3g} {unit}".rstrip()


@dataclass(frozen=True, slots=True)
class _Stretch:
    """All that goes over one link in one direction."""

    rate: float
    whats: tuple[str, ...]


def _drawable(found: NetworkMap) -> NetworkMap:
    """The map with the sites that there is room for: those with a part in the plan first."""
    if len(found.spots) <= MOST_SITES:
        return found
    passed = {name for flow in found.flows for name in flow.path}
    kept = [s for s in found.spots if s.matters or s.name in passed][:MOST_SITES]
    names = {spot.name for spot in kept}
    left = len(found.spots) - len(kept)
    return NetworkMap(
        found.title,
        tuple(kept),
        tuple(w for w in found.wires if w.a in names and w.b in names),
        tuple(f for f in found.flows if names.issuperset(f.path)),
        found.unit,
        (*found.notes, f"{left:,} of {len(found.spots):,} sites are not drawn"),
    )


@dataclass(slots=True)
class _Picture:
    found: NetworkMap
    at: dict[str, tuple[float, float]] = field(init=False)
    stretches: Mapping[tuple[str, str], _Stretch] = field(init=False)
    most: float = field(init=False)
    height: int = field(init=False)
    top: int = field(init=False)

    def __post_init__(self) -> None:
        spots = self.found.spots
        number = {spot.name: i for i, spot in enumerate(spots)}
        inner = 300 + 500 * min(1.0, len(spots) / 40)
        self.top = _TOP + 16 * len(self.found.notes)
        self.height = int(inner) + self.top + 60 + _FOOT
        links = [(number[w.a], number[w.b], w.cost) for w in self.found.wires]
        apart = 90 if len(spots) <= 12 else 52 if len(spots) <= _FEW else 30
        places = lay_out_network(len(spots), links, (_WIDTH - 2 * _SIDE, inner), apart)
        self.at = {s.name: (_SIDE + x, self.top + 20 + y) for s, (x, y) in zip(spots, places, strict=True)}
        self.stretches = _stretches(self.found.flows)
        self.most = max((one.rate for one in self.stretches.values()), default=1.0) or 1.0

    def svg(self) -> str:
        size = f'width="{_WIDTH}" height="{self.height}" viewBox="0 0 {_WIDTH} {self.height}"'
        parts = (self._head(), self._wires(), self._flows(), self._sites(), self._labels(), self._legend())
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" {size}><style>{_STYLE}</style>'
            f'<rect class="page" width="{_WIDTH}" height="{self.height}"/>{"".join(parts)}</svg>\n'
        )

    def _head(self) -> str:
        lines = "".join(
            f'<text x="24" y="{54 + 17 * i}">{escape(note)}</text>' for i, note in enumerate(self.found.notes)
        )
        return f'<text class="title" x="24" y="32">{escape(self.found.title)}</text>{lines}'

    def _wires(self) -> str:
        """Links under the data; not those of a complete network, where one would see nothing else."""
        wires = self.found.wires
        if len(wires) > 6 * len(self.found.spots):
            used = {frozenset(pair) for pair in self.stretches}
            wires = tuple(w for w in wires if frozenset((w.a, w.b)) in used)
        return "".join(self._wire(wire) for wire in wires)

    def _wire(self, wire: Wire) -> str:
        (x, y), (u, v) = self.at[wire.a], self.at[wire.b]
        told = escape(f"{wire.a} - {wire.b}: {self._price(wire)}")
        return (
            f'<line class="wire" x1="{x:.1f}" y1="{y:.1f}" x2="{u:.1f}" y2="{v:.1f}">'
            f"<title>{told}</title></line>"
        )

    def _price(self, wire: Wire) -> str:
        return wire.words or f"cost {wire.cost:.4g}"

    def _flows(self) -> str:
        ordered = sorted(self.stretches.items(), key=lambda item: (-item[1].rate, item[0]))
        return "".join(self._flow(a, b, one) for (a, b), one in ordered)

    def _flow(self, a: str, b: str, one: _Stretch) -> str:
        (x, y), (u, v) = self.at[a], self.at[b]
        length = hypot(u - x, v - y) or 1.0
        along, across = ((u - x) / length, (v - y) / length), (-(v - y) / length, (u - x) / length)
        wide = self._wide(one.rate)
        # Right of the link, so that what goes the other way lies beside it and not on it.
        side = wide / 2 + 0.6
        x, u = x + across[0] * side, u + across[0] * side
        y, v = y + across[1] * side, v + across[1] * side
        told = escape(f"{a} to {b}: {amount(one.rate, self.found.unit)}\n" + "\n".join(one.whats))
        # Past the middle, so that the heads of both directions stand apart.
        tip = _tip(x + 0.6 * (u - x), y + 0.6 * (v - y), along, across, max(wide, 4.0))
        return (
            f'<g><title>{told}</title><line class="flow" x1="{x:.1f}" y1="{y:.1f}" x2="{u:.1f}" y2="{v:.1f}" '
            f'stroke-width="{wide:.1f}"/>{tip}</g>'
        )

    def _wide(self, rate: float) -> float:
        widest = _WIDEST if len(self.found.spots) <= _FEW else _WIDEST * 0.6
        return max(_THINNEST, widest * sqrt(rate / self.most))

    def _radius(self, spot: Spot) -> float:
        small = 4.0 if len(self.found.spots) > _FEW else 7.0
        if spot.joins:
            return 9.0 + 2.0 * sqrt(len(spot.joins))
        return small + 1.5 if spot.matters else small

    def _sites(self) -> str:
        return "".join(self._site(spot) for spot in self.found.spots)

    def _site(self, spot: Spot) -> str:
        (x, y), r = self.at[spot.name], self._radius(spot)
        look = f"site{' joins' if spot.joins else ''}{' from' if spot.streams else ''}"
        parts = [f"<title>{escape(_told(spot))}</title>"]
        if spot.sinks:
            half = r + 5
            parts.append(
                f'<rect class="to" x="{x - half:.1f}" y="{y - half:.1f}" width="{2 * half:.1f}" '
                f'height="{2 * half:.1f}" rx="3"/>'
            )
        parts.append(f'<circle class="{look}" cx="{x:.1f}" cy="{y:.1f}" r="{r:.1f}"/>')
        if spot.joins:
            parts.append(
                f'<text class="count" x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle">'
                f"{len(spot.joins)}</text>"
            )
        return f"<g>{''.join(parts)}</g>"

    def _labels(self) -> str:
        """Names, and what there is, where that fits; of a large network only of sites with a part in it."""
        few = len(self.found.spots) <= _FEW
        named = [spot for spot in self.found.spots if few or spot.matters]
        boxes = [
            Box(x - r, y - r, x + r, y + r)
            for spot in self.found.spots
            for (x, y), r in [(self.at[spot.name], self._radius(spot) + (5 if spot.sinks else 1))]
        ]
        lines = [(self.at[a], self.at[b]) for a, b in self.stretches]
        wanted = [self._label(spot, few) for spot in sorted(named, key=lambda s: (not s.matters, s.name))]
        placed = put_labels(wanted, boxes, lines, (_WIDTH, self.height - _FOOT), must=few)
        return "".join(_text(label, x, y) for label, x, y in placed)

    def _label(self, spot: Spot, few: bool) -> Label:
        (x, y), r = self.at[spot.name], self._radius(spot) + (6 if spot.sinks else 2)
        details = []
        if few:
            details += [_some(spot.streams, 3)] if spot.streams else []
            details += [f"to {_some(spot.sinks, 2)}"] if spot.sinks else []
        return Label(spot.name, tuple(details), x, y, r)

    def _legend(self) -> str:
        y = self.height - 46
        marks = [
            ('<circle class="site" cx="0" cy="0" r="7"/>', "site"),
            ('<circle class="site from" cx="0" cy="0" r="7"/>', "streams come from here"),
            ('<circle class="site joins" cx="0" cy="0" r="9"/>', "joins run here: how many"),
            ('<rect class="to" x="-10" y="-10" width="20" height="20" rx="3"/>', "results go here"),
        ]
        parts, x = [], 36.0
        for mark, words in marks:
            parts.append(f'<g transform="translate({x:.0f},{y})">{mark}</g>')
            parts.append(f'<text x="{x + 16:.0f}" y="{y + 4}">{words}</text>')
            x += 46 + 6.4 * len(words)
        for share in (1.0, 0.25, 0.04):
            wide = self._wide(self.most * share)
            parts.append(
                f'<line class="flow" x1="{x:.0f}" x2="{x + 34:.0f}" y1="{y}" y2="{y}" '
                f'stroke-width="{wide:.1f}"/>'
            )
            words = amount(self.most * share, self.found.unit)
            parts.append(f'<text x="{x + 40:.0f}" y="{y + 4}">{words}</text>')
            x += 62 + 6.6 * len(words)
        return f'<g>{"".join(parts)}<text class="small" x="24" y="{y + 32}">{_WORDS}</text></g>'


def _stretches(flows: Sequence[Flow]) -> dict[tuple[str, str], _Stretch]:
    found: dict[tuple[str, str], _Stretch] = {}
    for flow in flows:
        for hop in pairwise(flow.path):
            before = found.get(hop, _Stretch(0.0, ()))
            found[hop] = _Stretch(before.rate + flow.rate, (*before.whats, flow.what))
    return found


def _tip(x: float, y: float, along: tuple[float, float], across: tuple[float, float], wide: float) -> str:
    """An arrow head in the middle of a line, pointing where the data goes."""
    half, long = wide * 0.5 + 2.2, wide * 0.5 + 5.0
    points = (
        (x + along[0] * long, y + along[1] * long),
        (x - along[0] * 3 + across[0] * half, y - along[1] * 3 + across[1] * half),
        (x - along[0] * 3 - across[0] * half, y - along[1] * 3 - across[1] * half),
    )
    return f'<polygon class="tip" points="{" ".join(f"{a:.1f},{b:.1f}" for a, b in points)}"/>'


def _told(spot: Spot) -> str:
    lines = [spot.name]
    lines += [f"from here: {', '.join(spot.streams)}"] if spot.streams else []
    lines += [f"joins {what}" for what in spot.joins]
    lines += [f"results of {', '.join(spot.sinks)}"] if spot.sinks else []
    return "\n".join(lines)


def _some(names: Sequence[str], most: int) -> str:
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} +{len(names) - most}"


def _text(label: Label, x: float, y: float) -> str:
    lines = [("name", label.name), *(("small", text) for text in label.details)]
    return "".join(
        f'<text class="{look} {halo}" x="{x:.1f}" y="{y + 13 * i:.1f}">{escape(text)}</text>'.replace(
            ' "', '"'
        )
        for i, (look, text) in enumerate(lines)
        for halo in ("halo", "")
    )


def _table(table: Table) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in table.columns)
    rows = "".join("<tr>" + "".join(f"<td>{escape(c)}</td>" for c in row) + "</tr>" for row in table.rows)
    return f"<h2>{escape(table.title)}</h2><table><tr>{head}</tr>{rows}</table>"
