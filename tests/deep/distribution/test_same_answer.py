"""A problem has one answer, to the last bit, in whatever process it is asked for."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from random import Random

from headrace.planners.distribution.costs import MODELS
from headrace.planners.distribution.redistribute import POLICIES, redistribute
from tests.unit.planners.distribution.drawn import drawn

PROBLEMS = 40


def answers() -> str:
    told: list[str] = []
    for seed in range(PROBLEMS):
        rng = Random(seed)
        problem = drawn(rng, rng.randint(4, 24), rng.randint(2, 5), limits=seed % 2 == 0)
        sites = tuple(replace(s, alive=seed % 3 > 0 or i > 0) for i, s in enumerate(problem.sites))
        table = {o.id: rng.choice(sites).id for o in problem.operators}
        problem = replace(problem, sites=sites, table=table)
        model = MODELS["combined" if seed % 2 else "cpu"]
        told += [repr(redistribute(problem, policy, model)) for policy in POLICIES]
    return "\n".join(told)


def test_no_answer_depends_on_how_names_are_hashed() -> None:
    found = [
        subprocess.run(
            [sys.executable, "-c", f"from {__name__} import answers; print(answers())"],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    ]
    assert found[0].count("Decision(") == PROBLEMS * len(POLICIES)
    assert found[1] == found[0]
    assert found[2] == found[0]
