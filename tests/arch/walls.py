"""The walls of the design as data, and a reader of imports that sees lazy and relative ones too."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

PACKAGE = "headrace"
MOST_LINES = 500

ROOT = {"headrace.errors", "headrace.ids", "headrace.units"}

ONLY: dict[str, set[str]] = {
    "errors.py": set(),
    "ids.py": set(),
    "units.py": set(),
    "plan": ROOT | {"headrace.plan"},
    "catalog": ROOT | {"headrace.plan", "headrace.catalog"},
    "sql": ROOT | {"headrace.plan", "headrace.catalog.model", "headrace.sql"},
    "rewrite": ROOT | {"headrace.plan", "headrace.catalog.model", "headrace.rewrite"},
    "stats": ROOT | {"headrace.plan", "headrace.stats"},
    "planners": ROOT | {"headrace.plan", "headrace.cost"},
    "experiments": {"headrace.errors", "headrace.planners", "headrace.service", "headrace.experiments"},
    "cli": {"headrace.errors", "headrace.plan.text", "headrace.service", "headrace.cli"},
}
"""What a part may import of headrace, and nothing else of it. A folder of `planners` may also import itself,
and no other planner."""

NEVER: dict[str, set[str]] = {
    "runtime": {"planners", "cost", "sql", "rewrite", "service", "cli", "web", "state"},
    "state": {"planners", "cost", "sql", "rewrite", "service", "cli", "web"},
    "service": {"cli", "web"},
    "cost": {"planners", "runtime", "state", "sql", "service", "cli", "web"},
    "stats": {"planners", "runtime", "state", "sql", "service", "cli", "web"},
}
"""What a part never imports."""

HOMES: dict[str, str] = {
    "pyspark": "runtime/spark/",
    "py4j": "runtime/spark/",
    "duckdb": "runtime/duckdb/",
    "sqlglot": "sql/",
    "typer": "cli/",
    "rich": "cli/",
    "sqlite3": "state/",
    "numba": "planners/",
    "matplotlib": "experiments/",
}
"""Heavy libraries, each with the one folder that may use it."""

AMBIENT = {
    "datetime.now",
    "datetime.utcnow",
    "date.today",
    "time.time",
    "time.time_ns",
    "os.getenv",
    "uuid.uuid4",
}
"""Calls that read the clock, the environment or chance: arguments below `service`."""


@dataclass(frozen=True, slots=True, order=True)
class Breach:
    file: str
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.what}"


Node = ast.Import | ast.ImportFrom | ast.Call


def telling(text: str) -> list[Node]:
    """The nodes of a file that walls have to do with. Trees are walked once: that is what takes time here."""
    return [node for node in ast.walk(ast.parse(text)) if isinstance(node, Node)]


def imports(found: Iterable[Node], module: str) -> Iterator[tuple[int, str]]:
    """(line, dotted name) of every import, wherever in the file it stands. `from a import b` may import the
    module a.b or a name of a, so both are told."""
    for node in found:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, module)
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)
        elif _called(node).split(".")[-1] in ("import_module", "__import__"):
            first = node.args[0] if node.args else None
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield node.lineno, first.value


def _absolute(node: ast.ImportFrom, module: str) -> str:
    if not node.level:
        return node.module or ""
    base = module.split(".")[: -node.level]
    return ".".join([*base, *([node.module] if node.module else [])])


def _called(node: ast.Call) -> str:
    """The dotted name that is called; "?" stands for what is no name."""
    parts: list[str] = []
    found: ast.expr = node.func
    while isinstance(found, ast.Attribute):
        parts.append(found.attr)
        found = found.value
    return ".".join([found.id if isinstance(found, ast.Name) else "?", *reversed(parts)])


def _inside(name: str, allowed: set[str]) -> bool:
    return any(name == a or name.startswith(f"{a}.") for a in allowed)


def breaches(root: Path) -> list[Breach]:
    """Every broken wall under `root`, the folder that holds the package's files."""
    found: list[Breach] = []
    for path in sorted(root.rglob("*.py")):
        file = path.relative_to(root).as_posix()
        text = path.read_text(encoding="utf-8")
        nodes = telling(text)
        module = ".".join((PACKAGE, *Path(file).with_suffix("").parts))
        for line, name in imports(nodes, module):
            found += [Breach(file, line, what) for what in _wrong(file, name)]
        found += [Breach(file, line, what) for line, what in _ambient(file, nodes)]
        if len(text.splitlines()) > MOST_LINES:
            found.append(Breach(file, MOST_LINES, f"more than {MOST_LINES} lines"))
    return sorted(found)


def _wrong(file: str, name: str) -> Iterator[str]:
    part = file.split("/")[0]
    library = name.split(".")[0]
    if library in HOMES and not file.startswith(HOMES[library]):
        yield f"imports {library}, which only {HOMES[library]} may"
    if library != PACKAGE:
        return
    if part in ONLY and not _inside(name, ONLY[part] | _own(file)):
        yield f"{part} imports {name}"
    if part in NEVER and _inside(name, {f"{PACKAGE}.{p}" for p in NEVER[part]}):
        yield f"{part} imports {name}"


def _own(file: str) -> set[str]:
    """The folder of the planner that a file belongs to."""
    parts = file.split("/")
    return {f"{PACKAGE}.planners.{parts[1]}"} if parts[0] == "planners" and len(parts) > 2 else set()


def _ambient(file: str, found: Iterable[Node]) -> Iterator[tuple[int, str]]:
    if file.split("/")[0] in ("service", "cli", "web"):
        return
    for node in found:
        if isinstance(node, ast.Call) and ".".join(_called(node).split(".")[-2:]) in AMBIENT:
            yield node.lineno, f"calls {_called(node)}: give it as an argument"
