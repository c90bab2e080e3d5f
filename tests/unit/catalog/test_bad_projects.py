"""Every wrong project file gives its own message at the right place, and never anything but a UserError."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.catalog.load import load_project
from headrace.errors import NotSupported, UserError
from tests.unit.catalog import bad_projects, bad_relations
from tests.unit.catalog.bad_projects import Bad

SETS = {
    "syntax": bad_projects.SYNTAX,
    "shape": bad_projects.SHAPE,
    "columns": bad_projects.COLUMNS,
    "queries": bad_projects.QUERIES,
    "times": bad_relations.TIMES,
    "names": bad_relations.NAMES,
    "network": bad_relations.NETWORK,
    "generator": bad_relations.GENERATOR,
    "tables": bad_relations.TABLES,
    "sinks": bad_relations.SINKS,
}
CASES = [pytest.param(bad, id=f"{name}: {bad.id}") for name, listed in SETS.items() for bad in listed]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the few files that the cases mention."""
    (tmp_path / "near.sql").write_text("SELECT 1")
    (tmp_path / "empty.sql").write_text(" \n")
    (tmp_path / "latin.sql").write_bytes(b"SELECT '\xe9'")
    (tmp_path / "empty").mkdir()
    return tmp_path


def refused(folder: Path, text: str) -> UserError:
    (folder / "headrace.yaml").write_text(text)
    with pytest.raises(UserError) as caught:
        load_project(folder)
    return caught.value


@pytest.mark.parametrize("bad", CASES)
def test_message_and_place(bad: Bad, folder: Path) -> None:
    before, _, after = bad.text.partition("▶")
    assert "▶" not in after
    assert before + after != bad.text, "the case does not say where the error is"
    error = refused(folder, before + after)
    assert bad.message in error.message
    assert bad.hint in error.hint
    assert error.span is not None
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    assert (error.span.line, error.span.column) == (line, column), error.render()
    assert error.span.text == (before + after).split("\n")[line - 1]
    assert error.span.file == str(folder / "headrace.yaml")
    assert error.span.end_column > column
    assert error.exit_code == 2


def test_cases_are_distinct() -> None:
    texts = [bad.text for listed in SETS.values() for bad in listed]
    assert len(set(texts)) == len(texts) > 50


def test_end_of_a_key_and_of_a_value(folder: Path) -> None:
    span = refused(folder, "name: p\nstream: {}\n").span
    assert span is not None and span.underlined() == "stream: {}\n^^^^^^"
    span = refused(folder, "name: p\nplanner: {trigger: 5 moons}  # why\n").span
    assert span is not None and span.underlined().splitlines()[1] == " " * 19 + "^" * 7


def test_first_of_several_is_reported_and_the_rest_are_counted(folder: Path) -> None:
    text = "name: p\nplanner: {parallel: 0}\nsites:\n  a: {cpu: 0, memory: x}\nlinks: 3\n"
    error = refused(folder, text)
    assert error.message == "planner.parallel must be at least 1, not 0"
    assert error.detail == "3 more problems in this file, on lines 4, 5."


def test_two_on_one_line(folder: Path) -> None:
    error = refused(folder, "name: p\nsites: {a: {cpu: 0, memory: 0}}\n")
    assert error.message.startswith("sites.a.cpu")
    assert error.detail == "1 more problem in this file, on the same line."


def test_first_means_first_in_the_file_not_first_found(folder: Path) -> None:
    error = refused(folder, "links: 3\nname: p\nstream: {}\n")
    assert error.message == "links must be a list"


def test_refused_types_are_not_supported_rather_than_wrong(folder: Path) -> None:
    text = bad_projects.TABLE.replace("int}", "struct}")
    assert isinstance(refused(folder, text + "    rows: []\n"), NotSupported)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"there is no .*headrace.yaml") as caught:
        load_project(tmp_path)
    assert "headrace init" in caught.value.hint


def test_a_named_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"there is no .*other.yaml"):
        load_project(tmp_path / "other.yaml")


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n", "---\n", "~\n"])
def test_empty(folder: Path, text: str) -> None:
    error = refused(folder, text)
    assert error.message == "the project file is empty"
    assert error.span is not None and error.span.line == 1


def test_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "headrace.yaml").write_bytes(b"name: p\n# caf\xe9\n")
    with pytest.raises(UserError, match="byte 0xe9 is not UTF-8 text") as caught:
        load_project(tmp_path)
    assert caught.value.span is not None
    assert (caught.value.span.line, caught.value.span.column) == (2, 6)


def test_nested_too_deeply(folder: Path) -> None:
    assert "nested too deeply" in refused(folder, "name: " + "[" * 1_200).message


def test_aliases_cannot_blow_up(folder: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
    assert "endless" in refused(folder, "\n".join(lines)).message
