"""docs/project-file.md says what the model says: every key, every default, and examples that load."""

from __future__ import annotations

import re
from enum import Enum
from pathlib import Path

import pytest
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from headrace.catalog import model
from headrace.catalog.columns import ALIASES
from headrace.catalog.document import Document
from headrace.catalog.generators import PARAMETERS
from headrace.catalog.load import load_project
from headrace.catalog.sections import QUERY_KEYS, TOP_KEYS
from headrace.catalog.translate import keys_of
from headrace.plan.types import COLUMN_TYPES
from headrace.units import parse_duration, parse_instant, parse_percent, parse_size

TEXT = (Path(__file__).parents[3] / "docs" / "project-file.md").read_text()
KINDS: dict[str, type[BaseModel]] = {
    "Streams": model.Stream,
    "Files": model.FileSource,
    "Generator": model.GeneratorSource,
    "Rate": model.RateSource,
    "Tables": model.Table,
    "Sites": model.Site,
    "Links": model.Link,
    "Sink": model.Sink,
    "Planner": model.PlannerChoices,
    "Rebalancing": model.Rebalance,
    "State": model.StateRange,
}


def table(heading: str, number: int = 0) -> list[list[str]]:
    """The cells of a table under a heading, without its head."""
    section = re.split(r"^#+ ", TEXT.split(f"# {heading}\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]
    found = re.findall(r"(?:^\|.*\n)+", section, flags=re.MULTILINE)[number]
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in found.splitlines()]
    return [[cell.strip() for cell in row] for row in rows[2:]]


def same(written: str, field: FieldInfo) -> bool:
    """Whether a default in the table is the field's default."""
    if field.is_required() or written == "required":
        return written == "required"
    default = field.get_default(call_default_factory=True)
    if isinstance(default, BaseModel):
        return written == "the defaults"
    if default is None or default == {}:
        return written in ("none", "all", "`results/<query>`")
    text = written.strip("`")
    if isinstance(default, (str, Enum)):
        return text == str(default)
    if isinstance(default, bool):
        return text == str(default).lower()
    for read in (float, parse_duration, parse_size, parse_instant, parse_percent):
        try:
            if read(text) == default:
                return True
        except ValueError:
            continue
    return False


@pytest.mark.parametrize("heading", KINDS)
def test_every_key_with_its_default(heading: str) -> None:
    kind = KINDS[heading]
    rows = table(heading)
    assert [row[0].strip("`") for row in rows] == keys_of(kind)
    for key, _, default, _ in rows:
        if key == "`kind`" and heading in ("Generator", "Rate"):
            assert default == "required"
        else:
            assert same(default, kind.model_fields[key.strip("`")]), f"{heading}: {key} is not {default}"


def test_keys_that_are_not_of_a_model() -> None:
    assert [row[0].strip("`") for row in table("Top level")] == list(TOP_KEYS)
    assert [row[0].strip("`") for row in table("Queries")] == list(QUERY_KEYS)


def test_choices() -> None:
    formats, sinks = table("Files")[2][1], table("Sink")[0][1]
    assert re.findall(r"`(\w+)`", formats) == list(model.Format)
    assert re.findall(r"`(\w+)`", sinks) == list(model.SinkKind)


def test_types() -> None:
    rows = table("Types")
    assert [row[0].strip("`") for row in rows] == list(COLUMN_TYPES)
    others = {other: row[0].strip("`") for row in rows for other in re.findall(r"`(\w+)`", row[1])}
    assert others == ALIASES


def test_distributions() -> None:
    documented = {row[0].strip("`"): set(re.findall(r"`(\w+)`", row[1])) for row in table("Generator", 1)}
    assert documented == {kind: {*p.needs, *p.may} for kind, p in PARAMETERS.items()}


EXAMPLES = re.findall(r"```yaml\n(.*?)```", TEXT, flags=re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_load(tmp_path: Path, example: str) -> None:
    """An example is a whole file, or sections of one, or the source of a stream of two columns."""
    (tmp_path / "queries").mkdir()
    (tmp_path / "queries" / "every_room.sql").write_text("SELECT 1")
    if example.startswith("source:") and "rate" not in example:
        stream = "columns: {ts: timestamp, room: string, temperature: double}\ntime: ts\n" + example
    else:
        stream = example
    if example.startswith("source:"):
        example = "streams:\n  s:\n" + "".join(f"    {line}\n" for line in stream.splitlines())
    if "links" in example:
        example += "sites: {edge: {}, core: {}}\n"
    text = example if example.startswith("name:") else f"name: p\n{example}"
    (tmp_path / "headrace.yaml").write_text(text)
    project = load_project(tmp_path)
    given = Document(text, "x").data
    assert isinstance(given, dict)
    assert all(getattr(project, section) for section in given)
