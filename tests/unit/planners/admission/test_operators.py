"""O(q) against what the words say: cuts of which all have a rate, and inputs that can be made."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from headrace.planners.admission.problem import (
    AdmissionProblem,
    Base,
    HostLimits,
    Stream,
    operator,
    operators_of,
)

NAMES = "abcde"
SETS = [frozenset(some) for size in range(2, 6) for some in combinations(NAMES, size)]


def can_be(known: set[Stream], stream: Stream) -> bool:
    """From the top, by its cuts."""
    if len(stream) == 1:
        return True
    return stream in known and any(can_be(known, a) and can_be(known, stream - a) for a in parts(stream))


def parts(stream: Stream) -> list[Stream]:
    return [frozenset(some) for size in range(1, len(stream)) for some in combinations(sorted(stream), size)]


@given(st.sets(st.sampled_from(SETS)))
def test_operators_are_the_cuts_whose_parts_can_be_made(known: set[Stream]) -> None:
    problem = AdmissionProblem(
        (HostLimits("h", 1.0, 1.0, 1.0),),
        1.0,
        {name: Base(name, 0, 1.0) for name in NAMES},
        dict.fromkeys(known, 1.0),
        (),
    )
    expected = {
        operator(part, stream - part)
        for stream in known
        for part in parts(stream)
        if can_be(known, part) and can_be(known, stream - part)
    }
    found = operators_of(problem, frozenset(NAMES))
    assert set(found) == expected
    assert len(found) == len(expected)
