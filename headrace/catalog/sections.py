"""The document as objects: each section of the file read by itself, its findings collected.

What the file leaves out is filled here, where it depends on more than the object: the name (its key), the
site (`local`, or the first one declared), the columns of the rate source, the place of a query's SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from headrace.catalog.columns import read_columns
from headrace.catalog.document import Data, Document, Trail
from headrace.catalog.model import Link, PlannerChoices, Project, Query, Site, Stream, Table
from headrace.catalog.problems import Problem, shown
from headrace.catalog.sqltext import Located, read_sql
from headrace.catalog.translate import (
    DURATION_KEYS,
    PERCENT_KEYS,
    Model,
    bad_name,
    keys_of,
    missing_key,
    unknown_key,
    validate,
    wrong_type,
)
from headrace.ids import is_name
from headrace.plan.types import DataType

T = TypeVar("T")

LOCAL = "local"
TOP_KEYS = ("name", "streams", "tables", "sites", "links", "queries", "planner")
RATE_COLUMNS: dict[str, DataType] = {"timestamp": DataType.TIMESTAMP, "value": DataType.BIGINT}
RATE_TIME = "timestamp"
QUERY_KEYS = ("sql", "file", "site", "sink", "engine", "engines")
_FRACTIONS = (DataType.FLOAT, DataType.DOUBLE)


class Reader:
    """Reads one document; `problems` is what was found wrong so far."""

    def __init__(self, document: Document, folder: Path) -> None:
        self.problems: list[Problem] = []
        self._document = document
        self._folder = folder
        self._default_site = LOCAL
        self._distributes = False

    def project(self) -> Project:
        """The project; whole only where no problem was found."""
        body = self._document.data
        if not isinstance(body, dict):
            self.problems.append(wrong_type("a mapping (key: value)", body, ()))
            body = {"name": ""}
        else:
            self._only(body, TOP_KEYS, ())
        sites = self._sites(body.get("sites"))
        planner = self._planner(body.get("planner"))
        self._distributes = planner is not None and planner.distribution != "off"
        return Project(
            name=self._project_name(body),
            root=self._folder.resolve(),
            streams=self._named(body.get("streams"), "streams", self._stream),
            tables=self._named(body.get("tables"), "tables", self._table),
            sites=sites,
            links=self._links(body.get("links")),
            queries=self._named(body.get("queries"), "queries", self._query),
            planner=planner or PlannerChoices(),
        )

    def _planner(self, body: Data) -> PlannerChoices | None:
        given = self._mapping(body, ("planner",))
        rules = given.get("rebalance")
        if isinstance(rules, dict):
            self.problems += bare_numbers(rules, ("planner", "rebalance"))
        return self._valid(PlannerChoices, given, ("planner",))

    def _project_name(self, body: dict[str, Data]) -> str:
        name = body.get("name")
        if "name" not in body:
            self.problems.append(missing_key("name", ()))
        elif not isinstance(name, str):
            self.problems.append(wrong_type("text", name, ("name",)))
        elif not name.strip() and not self.problems:
            self.problems.append(Problem(("name",), "the project's name is empty", "Write: name: my-project"))
        return str(name)

    def _sites(self, body: Data) -> dict[str, Site]:
        sites = self._named(body, "sites", self._site)
        if sites and LOCAL not in sites:
            self._default_site = next(iter(sites))
        if not any(name.lower() == LOCAL for name in sites):
            sites[LOCAL] = Site(name=LOCAL)
        return sites

    def _named(
        self, body: Data, section: str, read: Callable[[str, dict[str, Data], Trail], T | None]
    ) -> dict[str, T]:
        """The objects of one section, by name. A section that is left empty has none."""
        result: dict[str, T] = {}
        for name, item in self._mapping(body, (section,), "a mapping of names").items():
            trail = (section, name)
            if not is_name(name):
                self.problems.append(bad_name(name, trail, at_key=True))
            elif not isinstance(item, dict):
                self.problems.append(wrong_type("a mapping (key: value)", item, trail))
            else:
                found = read(name, item, trail)
                if found is not None:
                    result[name] = found
        return result

    def _mapping(self, body: Data, trail: Trail, wanted: str = "a mapping (key: value)") -> dict[str, Data]:
        if body is not None and not isinstance(body, dict):
            self.problems.append(wrong_type(wanted, body, trail))
        return body if isinstance(body, dict) else {}

    def _stream(self, name: str, body: dict[str, Data], trail: Trail) -> Stream | None:
        given = self._only(body, keys_of(Stream), trail)
        source = given.get("source")
        if isinstance(source, dict):
            self.problems += bare_numbers(source, (*trail, "source"))
            if source.get("kind") == "rate":
                columns: dict[str, Data] = {n: t.value for n, t in RATE_COLUMNS.items()}
                given = {"columns": columns, "time": RATE_TIME, **given}
        given = {"name": name, "site": self._default_site, **self._columns(given, trail)}
        return self._valid(Stream, given, trail)

    def _table(self, name: str, body: dict[str, Data], trail: Trail) -> Table | None:
        given = self._columns(self._only(body, keys_of(Table), trail), trail)
        table = self._valid(Table, {"name": name, **given}, trail)
        return None if table is None else _whole_as_fractions(table)

    def _site(self, name: str, body: dict[str, Data], trail: Trail) -> Site | None:
        return self._valid(Site, {"name": name, **self._only(body, keys_of(Site), trail)}, trail)

    def _links(self, body: Data) -> tuple[Link, ...]:
        if body is None:
            return ()
        if not isinstance(body, list):
            hint = "Write each link as: - between: [edge, core]"
            self.problems.append(Problem(("links",), "links must be a list", hint))
            return ()
        found = []
        for number, item in enumerate(body):
            trail: Trail = ("links", number)
            if isinstance(item, dict):
                found.append(self._valid(Link, dict(self._only(item, keys_of(Link), trail)), trail))
            else:
                self.problems.append(wrong_type("a mapping (key: value)", item, trail))
        return tuple(link for link in found if link is not None)

    def _query(self, name: str, body: dict[str, Data], trail: Trail) -> Query | None:
        given = self._only(body, QUERY_KEYS, trail)
        located = read_sql(given, trail, self._document, self._folder)
        if isinstance(located, Problem):
            self.problems.append(located)
            located = Located("", "", 1, 1)
        sink = given.get("sink", {})
        settings: dict[str, Data] = {
            "name": name,
            "sql": located.sql,
            "site": given.get("site", self._default_site),
            "free": self._distributes and "site" not in given,
            "sink": {"kind": sink} if isinstance(sink, str) else sink,
            **self._engines(given, trail),
        }
        query = self._valid(Query, settings, trail)
        place = {
            "sql_file": located.file,
            "sql_line": located.line,
            "sql_column": located.column,
            "engines_place": self._document.at_key((*trail, "engines")) if "engines" in given else None,
        }
        return query.model_copy(update=place) if query is not None else None

    def _engines(self, given: dict[str, Data], trail: Trail) -> dict[str, Data]:
        """What is said of the query's engines: nothing, one word, or one word for each operator."""
        said: dict[str, Data] = {key: given[key] for key in ("engine", "engines") if key in given}
        if len(said) == 2:
            message = f'{shown(trail)} has both "engine" and "engines"'
            self.problems.append(Problem((*trail, "engines"), message, "Keep one of them.", at_key=True))
        for key, value in said.items():
            if value is None:
                hint = "Write engine: auto, spark or duckdb, or leave it out."
                self.problems.append(Problem((*trail, key), f"{shown((*trail, key))} is empty", hint))
        return said

    def _valid(self, kind: type[Model], body: dict[str, Data], trail: Trail) -> Model | None:
        self.problems += bare_numbers(body, trail)
        found, problems = validate(kind, body, trail)
        self.problems += problems
        return found

    def _only(
        self, body: dict[str, Data], known: list[str] | tuple[str, ...], trail: Trail
    ) -> dict[str, Data]:
        """The keys that are known; the others are reported."""
        self.problems += [unknown_key(key, known, trail) for key in body if key not in known]
        return {key: value for key, value in body.items() if key in known}

    def _columns(self, given: dict[str, Data], trail: Trail) -> dict[str, Data]:
        if "columns" not in given:
            return given
        columns, problems = read_columns(given["columns"], (*trail, "columns"))
        self.problems += problems
        return {**given, "columns": columns}


def bare_numbers(body: dict[str, Data], trail: Trail) -> Iterator[Problem]:
    """A bare number is no duration and no instant: microseconds would be meant by nobody. Nor is it a
    percentage: 0.8 may be meant as 80%."""
    for key, value in body.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value == 0:
            continue
        place = (*trail, key)
        if key in DURATION_KEYS:
            yield Problem(place, f"{shown(place)}: {value} of which unit?", f"Write: {key}: {value} seconds")
        elif key in PERCENT_KEYS:
            hint = f"Write a percentage, as in {key}: 20%"
            yield Problem(place, f"{shown(place)}: {value} of what?", hint)
        elif key == "start":
            hint = 'Write it like "2024-05-01 12:00:00" (UTC).'
            yield Problem(place, f"{shown(place)}: {value} is not an instant", hint)


def _whole_as_fractions(table: Table) -> Table:
    """The table with `1` read as `1.0` in columns of fractions, so that a value has its column's type."""
    kinds = tuple(table.columns.values())
    rows = tuple(
        tuple(
            float(value)
            if type(value) is int and place < len(kinds) and kinds[place] in _FRACTIONS
            else value
            for place, value in enumerate(row)
        )
        for row in table.rows or ()
    )
    return table if table.rows is None else table.model_copy(update={"rows": rows})
