"""The documentation says what the code does: examples bind, refusals are refused, names and files exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from headrace.catalog.load import load_project
from headrace.catalog.model import Project, Query
from headrace.cli.main import app
from headrace.errors import NotSupported
from headrace.plan.logical import LogicalPlan
from headrace.sql.bind import bind_query
from headrace.sql.names import AGGREGATE_NAMES, SCALAR_NAMES

ROOT = Path(__file__).parents[2]
SQL = (ROOT / "docs" / "sql.md").read_text()
README = (ROOT / "README.md").read_text()
ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text()
PAGES = [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")]
PAGES += sorted((ROOT / "docs").rglob("*.md"))
_WINDOWED = "readings [RANGE 1 MINUTE SLIDE 1 MINUTE]"


def blocks(info: str) -> list[str]:
    """The code blocks of docs/sql.md that start with exactly this word (or these)."""
    return re.findall(rf"^```{info}\n(.*?)^```$", SQL, flags=re.DOTALL | re.MULTILINE)


def table(heading: str) -> list[list[str]]:
    """The cells of the table under a heading of docs/sql.md."""
    section = re.split(r"^## ", SQL.split(f"## {heading}\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip().replace("\\|", "|") for cell in row] for row in rows[2:]]


def code(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    folder = tmp_path_factory.mktemp("docs")
    (folder / "headrace.yaml").write_text(blocks("yaml")[0])
    return load_project(folder)


def bind(project: Project, sql: str) -> LogicalPlan:
    return bind_query(Query(name="q", sql=sql), project.streams, project.tables)


@pytest.mark.parametrize("sql", blocks("sql"))
def test_examples_bind(project: Project, sql: str) -> None:
    assert bind(project, sql).schema.columns


REFUSED = [line for block in blocks("sql refused") for line in block.splitlines()]


@pytest.mark.parametrize("sql", REFUSED)
def test_refusals_are_refused(project: Project, sql: str) -> None:
    with pytest.raises(NotSupported):
        bind(project, sql)


TYPED = [(row[-1], row[-2], "readings") for row in table("Operators") + table("Scalar functions")]
TYPED += [(row[-1], row[-2], _WINDOWED) for row in table("Aggregates")]
TYPED += [(written, kind, "readings") for written, kind in table("Types and literals")]


@pytest.mark.parametrize(("example", "gives", "source"), TYPED)
def test_expressions_give_the_type_they_say(project: Project, example: str, gives: str, source: str) -> None:
    plan = bind(project, f"SELECT {code(example)[0]} AS x FROM {source}")
    assert plan.schema["x"].type == gives


@pytest.mark.parametrize(
    ("heading", "names"), [("Scalar functions", SCALAR_NAMES), ("Aggregates", AGGREGATE_NAMES)]
)
def test_every_function_is_listed(heading: str, names: dict[str, str]) -> None:
    listed = {name: code(row[0])[0] for row in table(heading) for name in code(row[0]) + code(row[1])}
    assert set(listed) == set(names)
    assert {name: names[first] for name, first in listed.items()} == names


def test_commands_of_the_readme_exist() -> None:
    known = {c.name or getattr(c.callback, "__name__", "") for c in app.registered_commands}
    named = set(re.findall(r"(?:^|[`$ ])headrace ([a-z]+)", README, flags=re.MULTILINE))
    assert named == known


def test_targets_of_the_readme_exist() -> None:
    made = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    named = re.findall(r"(?:^ {4}|`)make ([a-z]+)", README, flags=re.MULTILINE)
    assert named and set(named) <= made


def test_files_of_the_architecture_exist() -> None:
    named = re.findall(r"`([\w./-]+(?:\.(?:py|md|txt|toml|lock|properties)|/))`", ARCHITECTURE)
    assert len(named) > 40
    lost = [n for n in named if not (ROOT / n).exists() and not (ROOT / "headrace" / n).exists()]
    assert not lost


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text())
    lost = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert not lost
