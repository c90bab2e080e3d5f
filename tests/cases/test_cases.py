"""Golden cases: SQL in, plan text or rendered error out.

A file holds cases, each a title, one or more SQL texts that must all give the same, and what they give:

    # title: average per plug
    SELECT ...
    --or--
    SELECT ...
    --gives--
    n0 := Stream ...

`HEADRACE_BLESS=1 pytest tests/cases` writes what comes out now; read the difference before keeping it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from headrace.catalog.model import Query
from headrace.errors import UserError
from headrace.plan.text import format_plan
from headrace.sql.bind import bind_query
from tests.cases.catalog import STREAMS, TABLES

FOLDER = Path(__file__).parent
_BETWEEN = "\n\n========\n\n"


@dataclass(frozen=True)
class Golden:
    file: Path
    title: str
    texts: tuple[str, ...]
    gives: str


def _read(file: Path) -> list[Golden]:
    cases = []
    for block in file.read_text().strip("\n").split(_BETWEEN):
        head, _, body = block.partition("\n")
        assert head.startswith("# title: "), f"{file.name}: a case starts with its title, not with {head!r}"
        sql, _, gives = body.partition("\n--gives--")
        texts = tuple(text.strip("\n") for text in sql.split("\n--or--\n"))
        cases.append(Golden(file, head.removeprefix("# title: "), texts, gives.strip("\n")))
    return cases


FILES = {file: _read(file) for file in sorted(FOLDER.glob("*.txt"))}
CASES = [case for cases in FILES.values() for case in cases]


def outcome(sql: str) -> str:
    query = Query(name="q", sql=sql, sql_file="q.sql")
    try:
        return format_plan(bind_query(query, STREAMS, TABLES))
    except UserError as error:
        return f"{error.kind}: {error.render()}"


@pytest.mark.skipif("HEADRACE_BLESS" not in os.environ, reason="writes the expectations, only when asked to")
def test_bless() -> None:
    for file, cases in FILES.items():
        blocks = [
            f"# title: {c.title}\n" + "\n--or--\n".join(c.texts) + f"\n--gives--\n{outcome(c.texts[0])}"
            for c in cases
        ]
        file.write_text(_BETWEEN.join(blocks) + "\n")


@pytest.mark.skipif("HEADRACE_BLESS" in os.environ, reason="the expectations are being written")
@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c.file.stem}: {c.title}")
def test_case(case: Golden) -> None:
    for sql in case.texts:
        assert outcome(sql) == case.gives


def test_titles_differ() -> None:
    titles = [(case.file.name, case.title) for case in CASES]
    assert len(titles) == len(set(titles))


def test_the_folder_is_large_enough() -> None:
    """What the folder promises: wrong inputs as well as plans, and the window forms held equal."""
    wrong = [c for c in CASES if c.gives.startswith(("user error", "not supported"))]
    assert len(CASES) >= 70
    assert len(wrong) >= 30
    assert len([c for c in CASES if len(c.texts) >= 3 and c not in wrong]) >= 5
