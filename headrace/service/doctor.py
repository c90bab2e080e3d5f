"""What this machine has of all that Headrace needs, and the fix for what is missing."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from headrace.errors import EngineError
from headrace.runtime.java import Java, find_java
from headrace.units import format_size

LEAST_MEMORY = 2 << 30
LEAST_DISK = 1 << 30


@dataclass(frozen=True, slots=True)
class Check:
    """One thing looked at. `fix` is empty where nothing needs fixing; `notes` is worth knowing anyway."""

    name: str
    ok: bool
    found: str
    fix: str = ""
    notes: tuple[str, ...] = ()


def examine(
    environ: Mapping[str, str],
    project: Path,
    java: Callable[[Mapping[str, str]], Java] = find_java,
    version: Callable[[str], str] = importlib.metadata.version,
) -> tuple[Check, ...]:
    """All checks, in the order they are shown. Never raises on what it finds."""
    return (
        check_python(sys.version_info[:3]),
        check_java(environ, java),
        check_package("Spark", "pyspark", "4.3", version),
        check_package("DuckDB", "duckdb", "2", version),
        check_cores(usable_cores()),
        check_memory(psutil.virtual_memory().total, psutil.virtual_memory().available),
        check_disk(project),
    )


def runnable(checks: tuple[Check, ...]) -> bool:
    return all(check.ok for check in checks)


def check_python(version: tuple[int, int, int]) -> Check:
    ok = version >= (3, 11)
    fix = "" if ok else "Install Python 3.11 or later and make the environment again."
    return Check("Python", ok, ".".join(map(str, version)), fix)


def check_java(environ: Mapping[str, str], find: Callable[[Mapping[str, str]], Java]) -> Check:
    try:
        java = find(environ)
    except EngineError as error:
        return Check("Java", False, error.message, error.hint, tuple(error.detail.splitlines()))
    notes = tuple(f"not used: {s.place} {s.reason}" for s in java.skipped)
    return Check("Java", True, f"{java.version} from {java.source} ({java.home})", notes=notes)


def check_package(name: str, package: str, wanted: str, version: Callable[[str], str]) -> Check:
    """An installed package whose version starts with `wanted`."""
    fix = f"Install it with: pip install '{package}=={wanted}.*'"
    try:
        found = version(package)
    except importlib.metadata.PackageNotFoundError:
        return Check(name, False, "not installed", fix)
    ok = found == wanted or found.startswith(f"{wanted}.")
    return Check(name, ok, found, "" if ok else fix)


def usable_cores() -> int:
    """Cores this process may use, which in a container can be fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def check_cores(cores: int) -> Check:
    return Check("Cores", cores >= 1, str(cores))


def check_memory(total: int, available: int) -> Check:
    ok = total >= LEAST_MEMORY
    fix = "" if ok else f"Spark needs a machine with {format_size(LEAST_MEMORY)} or more."
    return Check("Memory", ok, f"{format_size(total)}, {format_size(available)} free", fix)


def check_disk(project: Path) -> Check:
    """Room on the disk that holds the project, or the nearest folder above it that exists."""
    folder = project.absolute()
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    writable = os.access(folder, os.W_OK)
    ok = free >= LEAST_DISK and writable
    fix = "" if ok else f"Headrace needs {format_size(LEAST_DISK)} of space it can write to."
    found = f"{format_size(free)} free at {folder}" + ("" if writable else ", which cannot be written")
    return Check("Disk", ok, found, fix)
