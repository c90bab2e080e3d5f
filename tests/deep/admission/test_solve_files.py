"""Answers of all planners to many random problem files, checked from the JSON alone."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headrace.service.problem_file import ProblemFile
from headrace.service.solve_admission import solve_admission
from headrace.service.solve_request import Request
from tests.unit.service.admission_audit import Audit
from tests.unit.service.admission_problems import drawn

REQUESTS = [
    Request("headrace"),
    Request("headrace", choosy=True),
    Request("headrace", deadline=0.005, seed=1),
    Request("heuristic"),
    Request("soda"),
    Request("soda", batch=3),
]


def solved(problem: Any, request: Request) -> Any:
    found = solve_admission(ProblemFile("p.json", json.dumps(problem)), request)
    return json.loads(json.dumps(found, allow_nan=False))


@pytest.mark.parametrize("seed", range(100, 130))
def test_every_answer_can_be_checked(seed: int) -> None:
    problem = drawn(seed, hosts=2 + seed % 4, streams=4 + seed % 3)
    for request in REQUESTS:
        assert Audit(problem, solved(problem, request)).wrong == [], request


@pytest.mark.parametrize("seed", range(100, 110))
def test_those_of_the_milp_too(seed: int) -> None:
    problem = drawn(seed, hosts=3, streams=4, queries=4, zeros=seed % 2 == 0)
    batch = 2 if seed % 3 == 0 else None
    answer = solved(problem, Request("milp", deadline=1.0, batch=batch))
    assert Audit(problem, answer).wrong == []
