"""Wrong values of the project file come with what to write instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.catalog.load import load_project
from headrace.errors import UserError

GOOD = """\
name: p
streams:
  m:
    columns: {ts: timestamp, k: int}
    time: ts
    watermark: 10 seconds
    source: {kind: files, path: data, format: parquet}
tables:
  t:
    columns: {k: int}
    rows: [[1]]
planner: {parallel: 2}
"""


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        ("10 seconds", "-5 seconds", "as in 10 seconds"),
        ("10 seconds", "soon", "as in 10 seconds"),
        ("10 seconds", "99999999999 weeks", "as in 10 seconds"),
        ("[[1]]", "[[one]]", "Write a whole number, or null"),
        ("parallel: 2", "parallel: 0", "at least 1"),
        (GOOD, "- a\n- b\n", "name: my-project"),
    ],
)
def test_the_hint_says_what_to_write(tmp_path: Path, old: str, new: str, hint: str) -> None:
    (tmp_path / "headrace.yaml").write_text(GOOD.replace(old, new))
    with pytest.raises(UserError) as caught:
        load_project(tmp_path)
    assert hint in caught.value.hint and caught.value.span is not None
