"""Random trees through the engine, without a JVM: `engine_case(seed)`, and with members that come and go.

The stream is cut into its micro-batches, everything is restored from its state at random batch boundaries,
and at the end the stream is closed.
"""

from __future__ import annotations

import random
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from headrace.plan.placed import TreeMember, TreeShape, shape_of
from tests.property.generate_trees import TreeCase, member_of, random_tree
from tests.property.tree_judge import Judge, Outcome, Part
from tests.property.tree_loop import Loop


@dataclass(frozen=True, slots=True)
class Schedule:
    """Who is in the tree from before which batch on; the first entry is 0."""

    shape: TreeShape
    sets: Mapping[int, tuple[TreeMember, ...]]


def schedule_of(case: TreeCase, rng: random.Random, *, changes: bool) -> Schedule:
    """With changes: members are added and dropped at random boundaries; there is always one."""
    members = list(case.members().values())
    if not changes:
        return Schedule(shape_of(tuple(members)), {0: tuple(members)})
    again = rng.choice(sorted(case.sql))
    members.append(member_of(case.stream, f"{again}_again", case.sql[again]))
    rng.shuffle(members)
    now = members[: rng.randrange(1, len(members))]
    shape = shape_of(tuple(members if rng.random() < 0.6 else now))
    waiting = [m for m in members if m not in now and shape.takes(m)]
    sets = {0: tuple(now)}
    most = min(len(case.batches), rng.randrange(1, 5))
    for place in sorted(rng.sample(range(1, len(case.batches) + 1), most)):
        leaving = rng.sample(now, rng.randrange(len(now) + 1)) if rng.random() < 0.5 else []
        coming = [waiting.pop() for _ in range(rng.randrange(3)) if waiting]
        now = [m for m in now if m not in leaving] + coming or now
        sets[place] = tuple(now)
    return Schedule(shape, sets)


@dataclass
class _Stay:
    """A member while the loop runs."""

    member: TreeMember
    part: Part


class Played:
    """A schedule played batch by batch. `swap` starts with other members, `step` takes a batch."""

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self.stays: dict[str, _Stay] = {}
        self.marks: list[int] = []

    def swap(self, members: Sequence[TreeMember]) -> None:
        number, until = len(self.marks), self.loop.watermark.before
        left = set(self.present) - {m.query for m in members}
        for name in left:
            stay = self.stays[name]
            stay.part = replace(stay.part, until=until, last=number)
        new = [m for m in members if m.query not in self.stays]
        self.loop.start(members)
        for m in new:
            self.stays[m.query] = _Stay(m, Part(self.loop.valid_from(m.query), first=number))

    @property
    def present(self) -> list[str]:
        return [name for name, stay in self.stays.items() if stay.part.last is None]

    def step(self, batch: pa.Table) -> None:
        self.marks.append(self.loop.watermark.before)
        self.loop.batch(batch)


def play(case: TreeCase, schedule: Schedule, rng: random.Random, buckets: int) -> Played:
    loop = Loop(schedule.shape, case.stream.name, case.stream.watermark, buckets=buckets, rng=rng)
    played = Played(loop)
    restarts = rng.choice((0.0, 0.3, 1.0))
    for number in range(len(case.batches) + 1):
        if number in schedule.sets:
            played.swap(schedule.sets[number])
        elif rng.random() < restarts:
            loop.restore()
        if number < len(case.batches):
            played.step(case.batches[number])
            if rng.random() < 0.2:
                loop.batch_without_rows()
    loop.close()
    return played


def engine_case(seed: int, *, changes: bool = False) -> Outcome:
    """Play the case of a seed and judge every member."""
    case = random_tree(seed)
    rng = random.Random(seed + 1)
    try:
        schedule = schedule_of(case, rng, changes=changes)
        played = play(case, schedule, rng, rng.choice((1, 2, 3)))
    except Exception:
        return Outcome(seed, len(case.sql), 0, 0, (f"{case.told()}\n{traceback.format_exc()}",))
    return _judged(case, played)


def _judged(case: TreeCase, played: Played) -> Outcome:
    judge = Judge(case.stream, case.batches, played.marks)
    rows = late = 0
    problems: list[str] = []
    for name, stay in played.stays.items():
        given, counted = played.loop.given(stay.member), played.loop.late[name]
        more, missed, wrong = judge.problems(stay.member, given, counted, stay.part)
        rows, late, problems = rows + more, late + missed, problems + wrong
    told = (case.told(),) if problems else ()
    return Outcome(case.seed, len(played.stays), rows, late, (*told, *problems))
