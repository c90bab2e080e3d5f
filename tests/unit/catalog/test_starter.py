from __future__ import annotations

from pathlib import Path

import pytest

from headrace.catalog.load import load_project
from headrace.catalog.model import GeneratorSource
from headrace.catalog.starter import write_starter
from headrace.errors import UserError


def files(folder: Path) -> set[str]:
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}


def test_it_loads(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "project"
    written = write_starter(folder, "my-project")
    project = load_project(folder)
    assert project.name == "my-project"
    assert written[-1] == folder / "headrace.yaml"
    assert {str(p.relative_to(folder)) for p in written} == files(folder)
    assert files(folder) == {"headrace.yaml", ".gitignore", "queries/spread_5m.sql"}
    assert isinstance(project.streams["readings"].source, GeneratorSource)
    assert project.tables["sensors"].rows
    assert (folder / "headrace.yaml").stat().st_mode & 0o777 == 0o644


def test_it_shows_the_three_window_forms_and_a_join(tmp_path: Path) -> None:
    write_starter(tmp_path, "p")
    sqls = [query.sql for query in load_project(tmp_path).queries.values()]
    for form in ("window(ts", "[RANGE", "TUMBLE(", "JOIN sensors"):
        assert sum(form in sql for sql in sqls) == 1


@pytest.mark.parametrize("name", ["a: b", "true", "12", "été", 'it\'s "x" # y', "- a", "{x}", "a\\b"])
def test_any_name_comes_back(tmp_path: Path, name: str) -> None:
    write_starter(tmp_path, name)
    assert load_project(tmp_path).name == name


def test_no_name(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="needs a name"):
        write_starter(tmp_path, "  ")
    assert files(tmp_path) == set()


def test_a_project_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "headrace.yaml").write_text("mine")
    with pytest.raises(UserError, match=r"headrace\.yaml is there already"):
        write_starter(tmp_path, "p")
    assert files(tmp_path) == {"headrace.yaml"}
    assert (tmp_path / "headrace.yaml").read_text() == "mine"


def test_a_query_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "queries").mkdir()
    (tmp_path / "queries" / "spread_5m.sql").write_text("mine")
    with pytest.raises(UserError, match=r"spread_5m\.sql is there already"):
        write_starter(tmp_path, "p")
    assert files(tmp_path) == {"queries/spread_5m.sql"}


def test_an_own_gitignore_stays(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("mine")
    assert len(write_starter(tmp_path, "p")) == 2
    assert (tmp_path / ".gitignore").read_text() == "mine"


def test_a_file_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("")
    with pytest.raises(UserError, match="is a file, not a folder"):
        write_starter(tmp_path / "x", "p")
    with pytest.raises(UserError, match="cannot be written"):
        write_starter(tmp_path / "x" / "y", "p")


def test_a_failure_leaves_no_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Path.replace

    def fail(self: Path, target: Path) -> Path:
        if target.name == "headrace.yaml":
            raise OSError(28, "No space left on device")
        return real(self, target)

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(UserError, match="No space left"):
        write_starter(tmp_path, "p")
    assert not any("headrace.yaml" in name for name in files(tmp_path))
