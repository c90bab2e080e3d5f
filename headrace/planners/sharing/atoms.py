"""Edge rates by tables: which atoms of time a class of queries marks.

An edge event "t = a mod s" is, by the Chinese remainder theorem, one condition for every prime power p^e of
s, and conditions on different primes are independent for a uniform t. On one prime the conditions are balls
(a mod p^e): two balls are nested or disjoint, so b different balls cut the residues into at most b + 1
atoms, and no residue has to be listed.

The primes are split in two. Core: the low part p^c of every prime that slides share; a state is one atom of
each. Private: what is left above the core; a slide depends on at most one private part (its largest prime
keeps its power), so in one state the private parts are independent of each other, and the chance that t is
no edge is

    sum over states of weight * product over private parts of (1 - weight of the marked atoms)

A class of queries becomes a row of small words: for each state the marked private atoms as bits, or the bit
DEAD when it holds whatever the private parts are. Weaving two trees is the bitwise OR of their rows. For
slides up to 50 and ranges that are multiples of the slides the row has 30 states of two words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headrace.planners.sharing.primes import prime_powers

Event = tuple[int, int]
"""(residue, slide): the instants t with t mod slide = residue."""

WORD_BITS = 11
"""Bits of one word: its table of 2^11 floats stays in the processor's first cache."""


@dataclass(frozen=True)
class Ball:
    """The residues a mod p^e of one part of one prime."""

    exponent: int
    residue: int

    def holds(self, other: Ball, prime: int) -> bool:
        return self.exponent <= other.exponent and (other.residue - self.residue) % prime**self.exponent == 0


@dataclass(frozen=True)
class Part:
    """The low (core) or high (private) digits of one prime, cut into atoms. Atom i is ball i without the
    balls inside it."""

    prime: int
    balls: tuple[Ball, ...]
    weights: tuple[float, ...]

    def inside(self, ball: Ball) -> list[int]:
        """The atoms that lie in a ball."""
        return [i for i, other in enumerate(self.balls) if ball.holds(other, self.prime)]


WHOLE = Ball(0, 0)


def cut(prime: int, balls: set[Ball]) -> Part:
    """The atoms that a set of balls makes; the whole is always one of the balls, and comes first."""
    ordered = sorted({WHOLE, *balls}, key=lambda b: (b.exponent, b.residue))
    weights = [1.0 / prime**b.exponent for b in ordered]
    for i in range(len(ordered) - 1, 0, -1):
        parent = max(
            (j for j in range(i) if ordered[j].holds(ordered[i], prime) and ordered[j] != ordered[i]),
            key=lambda j: ordered[j].exponent,
        )
        weights[parent] -= 1.0 / prime ** ordered[i].exponent
    return Part(prime, tuple(ordered), tuple(max(w, 0.0) for w in weights))


@dataclass(frozen=True)
class Table:
    """Rows to be OR-ed, and what they mean."""

    rows: NDArray[np.uint16]
    """One row a class: states * words."""
    weights: NDArray[np.float64]
    """Of the states."""
    values: NDArray[np.float64]
    """values[word, bits]: the part of 1 that these bits take away."""
    groups: NDArray[np.int64]
    """Words of one group share one private part: their values add. Group g has the words groups[g] ..
    groups[g + 1] - 1."""


@dataclass(frozen=True)
class _Slot:
    """Where the atoms of a private part have their bits."""

    word: int
    bit: int


def build_table(classes: Sequence[Sequence[Event]], most_cells: int) -> Table | None:
    """The table of a set of classes, or None when it would have more than `most_cells` cells a row."""
    powers = {s: dict(prime_powers(s)) for events in classes for _, s in events}
    core = _core_exponents(powers)
    if _least_cells(powers, core) > most_cells:
        return None
    parts_low, parts_high = _parts(classes, powers, core)
    states = 1
    for part in parts_low.values():
        states *= len(part.weights)
        if states > most_cells:
            return None
    slots, values, groups = _words(parts_high)
    words = values.shape[0]
    if states * words > most_cells:
        return None
    order = sorted(parts_low)
    weights = np.ones(1)
    for p in order:
        weights = np.multiply.outer(weights, np.array(parts_low[p].weights)).ravel()
    shape = tuple(len(parts_low[p].weights) for p in order)
    rows = np.zeros((len(classes), states, words), dtype=np.uint16)
    for row, events in zip(rows, classes, strict=True):
        cube = row.reshape((*shape, words))
        for a, s in events:
            _mark(cube, a, powers[s], core, parts_low, parts_high, order, slots)
    return Table(rows.reshape(len(classes), -1), weights, values, groups)


def _core_exponents(powers: dict[int, dict[int, int]]) -> dict[int, int]:
    """How many digits of each prime are core: all that a slide uses, except for the slide's largest prime."""
    core: dict[int, int] = {}
    for factors in powers.values():
        for p in sorted(factors)[:-1]:
            core[p] = max(core.get(p, 0), factors[p])
    return core


def _least_cells(powers: dict[int, dict[int, int]], core: dict[int, int]) -> int:
    """How many cells a row has if every residue is 0; other residues only make more."""
    used: dict[int, set[int]] = {p: {0} for p in core}
    private = {(p, e) for factors in powers.values() for p, e in factors.items() if e > core.get(p, 0)}
    for factors in powers.values():
        for p, e in factors.items():
            if p in used:
                used[p].add(min(e, core[p]))
    states = 1
    for exponents in used.values():
        states *= len(exponents)
    return states * (1 + len(private) // WORD_BITS)


def _parts(
    classes: Sequence[Sequence[Event]], powers: dict[int, dict[int, int]], core: dict[int, int]
) -> tuple[dict[int, Part], dict[int, Part]]:
    low: dict[int, set[Ball]] = {}
    high: dict[int, set[Ball]] = {}
    for a, s in {event for events in classes for event in events}:
        for p, e in powers[s].items():
            c = core.get(p, 0)
            if c:
                low.setdefault(p, set()).add(_low(a, p, e, c))
            if e > c:
                high.setdefault(p, set()).add(_high(a, p, e, c))
    return {p: cut(p, b) for p, b in low.items()}, {p: cut(p, b) for p, b in high.items()}


def _low(a: int, p: int, e: int, c: int) -> Ball:
    exponent = min(e, c)
    return Ball(exponent, a % p**exponent)


def _high(a: int, p: int, e: int, c: int) -> Ball:
    return Ball(e - c, a % p**e // p**c)


def _words(
    parts: dict[int, Part],
) -> tuple[dict[int, list[_Slot]], NDArray[np.float64], NDArray[np.int64]]:
    """Give every private atom a bit, except the first: what lies in no ball is never marked. Small parts are
    packed together (their factors multiply inside the table); a part too wide for one word gets a group of
    words of its own, whose values add."""
    slots: dict[int, list[_Slot]] = {}
    packed: list[list[int]] = [[]]
    used = [1]
    wide: list[int] = []
    for p in sorted(parts, key=lambda q: (len(parts[q].weights), q)):
        need = len(parts[p].weights) - 1
        if need > WORD_BITS - 1:
            wide.append(p)
            continue
        if used[-1] + need > WORD_BITS:
            packed.append([])
            used.append(0)
        slots[p] = [_Slot(len(packed) - 1, used[-1] + i) for i in range(need)]
        used[-1] += need
        packed[-1].append(p)
    groups = list(range(len(packed) + 1))
    tables = [_packed_values(word, members, parts, slots) for word, members in enumerate(packed)]
    for p in wide:
        inner = parts[p].weights[1:]
        slots[p] = [_Slot(len(tables) + i // WORD_BITS, i % WORD_BITS) for i in range(len(inner))]
        tables += [_bit_sums(inner[i : i + WORD_BITS]) for i in range(0, len(inner), WORD_BITS)]
        groups.append(len(tables))
    return slots, np.array(tables), np.array(groups, dtype=np.int64)


def _bit_sums(weights: Sequence[float]) -> NDArray[np.float64]:
    sums = np.zeros(2**WORD_BITS)
    bits = np.arange(2**WORD_BITS)
    for i, weight in enumerate(weights):
        sums += np.where(bits >> i & 1, weight, 0.0)
    return sums


def _packed_values(
    word: int, members: list[int], parts: dict[int, Part], slots: dict[int, list[_Slot]]
) -> NDArray[np.float64]:
    bits = np.arange(2**WORD_BITS)
    left = np.ones(2**WORD_BITS)
    if word == 0:
        left = np.where(bits & DEAD, 0.0, 1.0)
    for p in members:
        hit = np.zeros(2**WORD_BITS)
        for slot, weight in zip(slots[p], parts[p].weights[1:], strict=True):
            hit += np.where(bits >> slot.bit & 1, weight, 0.0)
        left = left * (1.0 - np.minimum(hit, 1.0))
    return 1.0 - left


DEAD = 1
"""In word 0 of a state: every instant of this state is an edge."""


def _mark(
    cube: NDArray[np.uint16],
    a: int,
    factors: dict[int, int],
    core: dict[int, int],
    low: dict[int, Part],
    high: dict[int, Part],
    order: Sequence[int],
    slots: dict[int, list[_Slot]],
) -> None:
    """Mark one event in the states where its core conditions hold."""
    where: list[list[int]] = []
    marks: list[_Slot] = []
    for p in order:
        e = factors.get(p, 0)
        where.append(low[p].inside(_low(a, p, e, core[p])) if e else list(range(len(low[p].weights))))
    for p, e in factors.items():
        c = core.get(p, 0)
        if e > c:
            marks = [slots[p][i - 1] for i in high[p].inside(_high(a, p, e, c))]
    if not marks:
        cube[np.ix_(*where, [0])] |= np.uint16(DEAD)
    for slot in marks:
        cube[np.ix_(*where, [slot.word])] |= np.uint16(1 << slot.bit)
