"""The issue's bars on cost, judged on what was run."""

from __future__ import annotations

from collections.abc import Iterator

from headrace.experiments.judged import Bar
from headrace.experiments.placement.cases import (
    AIRLINE,
    BOTTOM_UP,
    JOINT,
    NPC,
    RELAXATION,
    SYNTHETIC,
    TOP_DOWN,
    Part,
)
from headrace.experiments.placement.tables import Above, Tables

AT_MOST = {
    SYNTHETIC.name: {TOP_DOWN: 10.0, NPC: 18.0, BOTTOM_UP: 34.0},
    AIRLINE.name: {TOP_DOWN: 10.0, NPC: 10.0, BOTTOM_UP: 36.0},
}
"""% above exact."""
JOINT_BELOW = 4.0
CLEARLY = 5.0
"""Points by which Relaxation must be above the second worst to be clearly worst."""


def bars(tables: Tables) -> tuple[Bar, ...]:
    found = {(one.part, one.planner): one for one in tables.above}
    made = [
        _at_most(found[part, planner], most)
        for part, bars in AT_MOST.items()
        for planner, most in bars.items()
    ]
    made += [_worst(tables, part) for part in (SYNTHETIC, AIRLINE)]
    return (*made, *_joint(found.get((SYNTHETIC.name, JOINT))))


def _at_most(one: Above, most: float) -> Bar:
    text = f"{one.part}: {one.planner} above exact, %"
    return Bar(text, f"<= {most:.0f}", f"{one.mean:.1f}", one.mean <= most, one.seeds)


def _worst(tables: Tables, part: Part) -> Bar:
    here = {one.planner: one for one in tables.above if one.part == part.name}
    mine = here.pop(RELAXATION)
    second = max(here.values(), key=lambda one: one.mean)
    told = f"{mine.mean:.1f}, then {second.planner} {second.mean:.1f}"
    text = f"{part.name}: relaxation clearly worst, % above exact"
    return Bar(text, f"{CLEARLY:.0f} points", told, mine.mean >= second.mean + CLEARLY, mine.seeds)


def _joint(one: Above | None) -> Iterator[Bar]:
    if one is not None:
        text = f"{one.part}: joint below exact, query by query, %"
        yield Bar(text, f">= {JOINT_BELOW:.0f}", f"{-one.mean:.1f}", -one.mean >= JOINT_BELOW, one.seeds)
