"""Where the boxes of a graph stand, and the ways its arrows take.

Layered, from top to bottom: a node stands just above the first node that reads it. An arrow that passes a
layer gets a slot of its own there, so that it goes between the boxes and never behind one. Within a layer,
things stand above the middle of what they feed, moved apart where they would touch.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

GAP_X = 28
GAP_Y = 44
_SLOT = 10
"""Width of the slot of a passing arrow."""


@dataclass(frozen=True, slots=True)
class Node:
    id: str
    inputs: tuple[str, ...]
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Place:
    """Top left corner, and size."""

    x: float
    y: float
    width: float
    height: float

    @property
    def middle(self) -> float:
        return self.x + self.width / 2

    @property
    def bottom(self) -> float:
        return self.y + self.height


@dataclass(frozen=True, slots=True)
class Layout:
    places: Mapping[str, Place]
    arrows: tuple[tuple[Place, ...], ...]
    """Each arrow as the places it passes: from a box, through slots, to a box."""
    width: float
    height: float


def lay_out(nodes: Sequence[Node]) -> Layout:
    """Place the nodes of a graph given inputs first, with its one end last."""
    depth = _depths(nodes)
    chains = [_chain(name, node.id, depth) for node in nodes for name in node.inputs]
    sizes = {node.id: (node.width, node.height) for node in nodes}
    for chain in chains:
        sizes.update(dict.fromkeys(chain[1:-1], (_SLOT, 0)))
        depth.update({slot: depth[chain[0]] - i for i, slot in enumerate(chain[1:-1], start=1)})
    layers = [[n for n in sizes if depth[n] == level] for level in range(max(depth.values()) + 1)]
    middles = _middles(layers, chains, sizes)
    places = _places(layers, middles, sizes)
    width = max(place.x + place.width for place in places.values())
    height = max(place.bottom for place in places.values())
    arrows = tuple(tuple(places[name] for name in chain) for chain in chains)
    return Layout({node.id: places[node.id] for node in nodes}, arrows, width, height)


def _depths(nodes: Sequence[Node]) -> dict[str, int]:
    """How far each node is from the end, along the longest way. Inputs come before their readers, so one
    walk from the end sees every reader of a node before the node itself."""
    depth = {nodes[-1].id: 0}
    for node in reversed(nodes):
        for name in node.inputs:
            depth[name] = max(depth.get(name, 0), depth[node.id] + 1)
    return depth


def _chain(start: str, end: str, depth: Mapping[str, int]) -> list[str]:
    """The way of an arrow: its two ends and a slot in every layer between them."""
    between = range(depth[start] - 1, depth[end], -1)
    return [start, *(f"{start}>{end}@{level}" for level in between), end]


def _middles(
    layers: list[list[str]], chains: list[list[str]], sizes: Mapping[str, tuple[int, int]]
) -> dict[str, float]:
    """The middle of everything, layer by layer from the end: over what it feeds, then moved apart."""
    feeds: dict[str, list[str]] = {}
    for chain in chains:
        for above, below in itertools.pairwise(chain):
            feeds.setdefault(above, []).append(below)
    siblings: dict[str, list[str]] = {}
    for above, belows in feeds.items():
        siblings.setdefault(belows[0], []).append(above)
    middles: dict[str, float] = {layers[0][0]: 0.0}
    for layer in layers[1:]:
        wanted = {name: _wanted(name, feeds[name], siblings, middles, sizes) for name in layer}
        middles.update(_apart(sorted(layer, key=lambda name: wanted[name]), wanted, sizes))
    return middles


def _wanted(
    name: str,
    feeds: list[str],
    siblings: Mapping[str, list[str]],
    middles: Mapping[str, float],
    sizes: Mapping[str, tuple[int, int]],
) -> float:
    """Where a node would like its middle: over its reader, the inputs of one reader side by side."""
    row = siblings[feeds[0]]
    widths = [sizes[other][0] + GAP_X for other in row]
    before = sum(widths[: row.index(name)])
    over = sum(middles[below] for below in feeds) / len(feeds)
    return over + before + widths[row.index(name)] / 2 - sum(widths) / 2


def _apart(
    order: list[str], wanted: Mapping[str, float], sizes: Mapping[str, tuple[int, int]]
) -> dict[str, float]:
    """Push to the right what would touch, then move all back by the mean push."""
    found: dict[str, float] = {}
    edge: float | None = None
    for name in order:
        half = sizes[name][0] / 2
        found[name] = wanted[name] if edge is None else max(wanted[name], edge + GAP_X + half)
        edge = found[name] + half
    push = sum(found[name] - wanted[name] for name in order) / len(order)
    return {name: middle - push for name, middle in found.items()}


def _places(
    layers: list[list[str]], middles: Mapping[str, float], sizes: Mapping[str, tuple[int, int]]
) -> dict[str, Place]:
    left = min(middles[name] - sizes[name][0] / 2 for layer in layers for name in layer)
    places: dict[str, Place] = {}
    top = 0.0
    for layer in reversed(layers):
        tall = max(sizes[name][1] for name in layer)
        for name in layer:
            width, height = sizes[name]
            x = middles[name] - width / 2 - left
            # A slot is as tall as its layer: an arrow goes straight down past the boxes beside it.
            tall_here = height or tall
            places[name] = Place(x, top + (tall - tall_here) / 2, width, tall_here)
        top += tall + GAP_Y
    return places
