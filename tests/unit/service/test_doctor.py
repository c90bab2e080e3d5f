"""Each check says ok or gives a fix, and a machine without something is told what."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from headrace.errors import EngineError
from headrace.runtime.java import Java, Skipped
from headrace.service import doctor


def _java(environ: Mapping[str, str]) -> Java:
    return Java(Path("/opt/java"), 17, "PATH", (Skipped("/old/java", "is Java 8"),))


def _no_java(environ: Mapping[str, str]) -> Java:
    raise EngineError("no Java 17 or later was found", detail="/old/java: is Java 8", hint="Install one.")


def test_a_good_machine(tmp_path: Path) -> None:
    versions = {"pyspark": "4.3.0", "duckdb": "2.0.0"}
    checks = doctor.examine({}, tmp_path, _java, versions.__getitem__)
    assert [c.name for c in checks] == ["Python", "Java", "Spark", "DuckDB", "Cores", "Memory", "Disk"]
    found = {c.name: c for c in checks}
    assert found["Java"].found == "17 from PATH (/opt/java)"
    assert found["Java"].notes == ("not used: /old/java is Java 8",)
    assert found["Spark"].found == "4.3.0"
    assert all(c.ok or c.fix for c in checks)


def test_no_java(tmp_path: Path) -> None:
    check = doctor.check_java({}, _no_java)
    assert not check.ok
    assert (check.fix, check.notes) == ("Install one.", ("/old/java: is Java 8",))
    assert not doctor.runnable((check,))


def _absent(package: str) -> str:
    raise PackageNotFoundError(package)


@pytest.mark.parametrize(
    ("version", "ok"), [("4.3.0", True), ("4.3", True), ("4.30.0", False), ("3.5.1", False)]
)
def test_versions_of_packages(version: str, ok: bool) -> None:
    check = doctor.check_package("Spark", "pyspark", "4.3", lambda _: version)
    assert (check.ok, check.found, check.fix == "") == (ok, version, ok)


def test_a_missing_package() -> None:
    check = doctor.check_package("DuckDB", "duckdb", "2", _absent)
    assert (check.ok, check.found) == (False, "not installed")
    assert "pip install 'duckdb==2.*'" in check.fix


@pytest.mark.parametrize(("version", "ok"), [((3, 11, 0), True), ((3, 14, 2), True), ((3, 10, 9), False)])
def test_python(version: tuple[int, int, int], ok: bool) -> None:
    assert doctor.check_python(version).ok is ok


def test_memory() -> None:
    assert doctor.check_memory(8 << 30, 1 << 30).found == "8.0 GiB, 1.0 GiB free"
    assert not doctor.check_memory(1 << 30, 1 << 29).ok


def test_the_disk_of_a_project_that_is_not_there_yet(tmp_path: Path) -> None:
    check = doctor.check_disk(tmp_path / "not" / "yet")
    assert check.found.endswith(f"free at {tmp_path}")
