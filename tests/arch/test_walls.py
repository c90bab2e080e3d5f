"""The walls hold in the real tree, and the test that says so can see each kind of breach."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import headrace
from tests.arch.walls import HOMES, NEVER, ONLY, Breach, breaches

ROOT = Path(headrace.__file__).parent


def test_no_wall_is_broken() -> None:
    found = breaches(ROOT)
    assert not found, "\n" + "\n".join(map(str, found))


def test_every_folder_has_a_wall() -> None:
    """A new folder must be given its place in the layers before it can be used."""
    folders = {p.name for p in ROOT.iterdir() if p.is_dir() and (p / "__init__.py").exists()}
    assert folders <= set(ONLY) | set(NEVER)


@pytest.mark.parametrize("home", sorted(set(HOMES.values())))
def test_homes_of_libraries_exist(home: str) -> None:
    assert (ROOT / home).is_dir()


PLANTED = [
    ("plan/text.py", "import headrace.catalog.model", "plan imports headrace.catalog.model"),
    ("plan/text.py", "from headrace import catalog", "plan imports headrace.catalog"),
    ("plan/text.py", "from .. import service", "plan imports headrace.service"),
    ("catalog/model.py", "from headrace.sql import bind", "catalog imports headrace.sql.bind"),
    ("rewrite/driver.py", "from headrace.catalog.load import load_project", "rewrite imports"),
    ("sql/parse.py", "def f():\n    from headrace.runtime import executor", "sql imports"),
    ("runtime/fake.py", "def f():\n    import headrace.service.run", "runtime imports"),
    ("runtime/fake.py", "import importlib\nimportlib.import_module('headrace.sql.bind')", "runtime imports"),
    ("service/run.py", "from headrace.cli import main", "service imports headrace.cli.main"),
    ("cli/main.py", "from headrace.catalog.load import load_project", "cli imports"),
    ("cli/main.py", "from headrace.plan import logical", "cli imports headrace.plan.logical"),
    ("service/run.py", "def f():\n    import pyspark.sql", "imports pyspark"),
    ("service/run.py", "import duckdb", "imports duckdb"),
    ("runtime/duckdb/__init__.py", "from sqlglot import parse_one", "imports sqlglot"),
    ("runtime/spark/__init__.py", "import duckdb", "imports duckdb"),
    ("units.py", "import headrace.errors", "units.py imports headrace.errors"),
    ("planners/sharing/weave.py", "from headrace.runtime import executor", "planners imports"),
    ("planners/sharing/weave.py", "def f():\n    import headrace.service.sharing", "planners imports"),
    ("planners/sharing/weave.py", "from headrace.sql import bind", "planners imports headrace.sql.bind"),
    ("planners/sharing/ours.py", "import headrace.planners.placement.problem", "planners imports"),
    ("planners/sharing/ours.py", "from .. import placement", "planners imports headrace.planners.placement"),
    ("planners/sharing/ours.py", "import time\nNOW = time.time()", "calls time.time"),
    ("experiments/weaving/runs.py", "from headrace.runtime import fake", "experiments imports"),
    ("experiments/weaving/runs.py", "from headrace.cli import main", "experiments imports"),
    ("cli/main.py", "from headrace.planners.sharing import solve", "cli imports headrace.planners"),
    ("cli/main.py", "def f():\n    from headrace.experiments import weaving", "cli imports"),
    ("runtime/fake.py", "from headrace.planners.sharing import problem", "runtime imports headrace.planners"),
    ("service/run.py", "import numba", "imports numba"),
    ("service/run.py", "import matplotlib.pyplot", "imports matplotlib"),
    ("catalog/model.py", "from datetime import datetime\nNOW = datetime.now()", "calls datetime.now"),
    ("runtime/fake.py", "\n" * 500, "more than 500 lines"),
]


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> list[Breach]:
    """What is found in a copy of the files that have every one of PLANTED in them."""
    copy = tmp_path_factory.mktemp("walls") / "headrace"
    for package in ROOT.rglob("__init__.py"):
        (copy / package.relative_to(ROOT)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(package, copy / package.relative_to(ROOT))
    for file in {file for file, _, _ in PLANTED}:
        shutil.copy(ROOT / file, copy / file)
    for file, code, _ in PLANTED:
        (copy / file).write_text((copy / file).read_text() + f"\n{code}\n")
    return breaches(copy)


@pytest.mark.parametrize(("file", "code", "what"), PLANTED)
def test_a_planted_breach_is_seen(planted: list[Breach], file: str, code: str, what: str) -> None:
    lines = len((ROOT / file).read_text().splitlines())
    seen = [b for b in planted if b.file == file and what in b.what and b.line > min(lines, 499)]
    assert seen, f"{code!r} in {file} is not seen"


def test_allowed_imports_are_allowed(tmp_path: Path) -> None:
    copy = tmp_path / "headrace"
    (copy / "sql").mkdir(parents=True)
    (copy / "sql" / "bind.py").write_text("import sqlglot\nfrom headrace.catalog.model import Query\n")
    (copy / "cli").mkdir()
    (copy / "cli" / "main.py").write_text(
        "from headrace.plan.text import format_plan\nimport headrace.service\n"
    )
    (copy / "planners" / "sharing").mkdir(parents=True)
    (copy / "planners" / "sharing" / "weave.py").write_text(
        "import numba\nfrom headrace.planners.sharing import rates\nfrom headrace.plan import shared\n"
    )
    assert breaches(copy) == []


def test_commands_start_without_heavy_libraries() -> None:
    """`headrace --help` loads none of them: each is half a second that most commands have no use for."""
    heavy = ("scipy", "numba", "networkx", "pyspark", "duckdb", "pandas", "matplotlib")
    code = f"import sys, headrace.cli.main; print([m for m in {heavy} if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"
