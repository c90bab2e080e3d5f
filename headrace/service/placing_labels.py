"""Where the labels of a map go: beside their site, off the discs and, where it can be, off each other and off
the lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

LINE = 13
Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Box:
    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: Box) -> bool:
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )


@dataclass(frozen=True, slots=True)
class Label:
    """A name with lines under it, for a disc at (x, y)."""

    name: str
    details: tuple[str, ...]
    x: float
    y: float
    radius: float

    @property
    def width(self) -> float:
        return max([7.3 * len(self.name), *(5.6 * len(text) for text in self.details)])

    @property
    def height(self) -> float:
        return LINE * (1 + len(self.details))

    def boxes(self) -> list[Box]:
        """Where it may stand, the best first: below, above, right, left, in the corners."""
        w, h, r = self.width, self.height, self.radius
        lefts = {"under": self.x - w / 2, "right": self.x + r + 3, "left": self.x - r - 3 - w}
        corners = [
            (lefts["under"], self.y + r + 2),
            (lefts["right"], self.y - h / 2),
            (lefts["under"], self.y - r - 2 - h),
            (lefts["left"], self.y - h / 2),
            (self.x + r * 0.7 + 2, self.y + r * 0.7 + 1),
            (self.x - r * 0.7 - 2 - w, self.y + r * 0.7 + 1),
            (self.x + r * 0.7 + 2, self.y - r * 0.7 - 1 - h),
            (self.x - r * 0.7 - 2 - w, self.y - r * 0.7 - 1 - h),
        ]
        return [Box(left, top, left + w, top + h) for left, top in corners]


def put_labels(
    labels: Sequence[Label],
    taken: Sequence[Box],
    lines: Sequence[tuple[Point, Point]],
    page: tuple[float, float],
    *,
    must: bool,
) -> list[tuple[Label, float, float]]:
    """Each label with the left end of its first base line; the first come first. One that would cover
    something is left out, or with `must` put where it covers least."""
    put: list[tuple[Label, float, float]] = []
    used = list(taken)
    inside = Box(0, 0, *page)
    for label in labels:
        costs = [(_cost(box, used, lines, inside), i, box) for i, box in enumerate(label.boxes())]
        cost, _, box = min(costs, key=lambda one: one[:2])
        if cost >= 100 and not must:
            continue
        used.append(box)
        put.append((label, box.left, box.top + LINE - 3))
    return put


def _cost(box: Box, used: Sequence[Box], lines: Sequence[tuple[Point, Point]], page: Box) -> float:
    """100 for each thing covered, 1 for each line crossed."""
    out = box.left < page.left or box.right > page.right or box.top < page.top or box.bottom > page.bottom
    covered = sum(box.meets(other) for other in used)
    return 1000 * out + 100 * covered + sum(_crosses(box, a, b) for a, b in lines)


def _crosses(box: Box, a: Point, b: Point) -> bool:
    """Whether a line passes through the box (Liang and Barsky: what is left of it inside all four edges)."""
    first, last = 0.0, 1.0
    for start, step, low, high in (
        (a[0], b[0] - a[0], box.left, box.right),
        (a[1], b[1] - a[1], box.top, box.bottom),
    ):
        if step == 0:
            if not low <= start <= high:
                return False
            continue
        one, two = sorted(((low - start) / step, (high - start) / step))
        first, last = max(first, one), min(last, two)
    return first <= last
