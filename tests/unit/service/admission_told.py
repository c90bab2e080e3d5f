"""What a wrong admission file is told, and at which place of it."""

from __future__ import annotations

import pytest

from headrace.errors import UserError
from headrace.service.problem_file import ProblemFile
from headrace.service.solve_admission_file import read_admission


def told(text: str) -> tuple[str, str]:
    """Place and message."""
    with pytest.raises(UserError) as wrong:
        read_admission(ProblemFile("p.json", text))
    assert wrong.value.span is not None
    return wrong.value.span.where(), wrong.value.message


def check_told(right: str, old: str, new: str, says: str) -> None:
    """`old` in a file that is right is replaced by `new`, in which ^ marks the place that is told."""
    assert right.count(old) == 1
    before, after = right.replace(old, new).split("^")
    where, message = told(before + after)
    assert says in message
    assert where == f"p.json:{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}"
