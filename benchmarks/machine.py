"""When and where a run was made: without this a figure means nothing."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from pathlib import Path

import psutil

from headrace import __version__
from headrace.runtime.java import find_java
from headrace.service.doctor import usable_cores
from headrace.units import format_size


@dataclass(frozen=True, slots=True)
class Machine:
    date: str
    cpu: str
    cores: int
    memory: str
    load: float
    """Runnable processes over the last minute, before the run: well above 0 is a busy machine."""
    system: str
    versions: Mapping[str, str]

    def lines(self) -> tuple[str, str, str]:
        load = f"load {self.load:.1f} before the run"
        versions = ", ".join(f"{name} {number}" for name, number in self.versions.items())
        return self.date, f"{self.cpu}, {self.cores} cores, {self.memory}, {self.system}, {load}", versions


def describe(now: datetime, environ: Mapping[str, str]) -> Machine:
    return Machine(
        date=now.isoformat(sep=" ", timespec="minutes"),
        cpu=_cpu_model(),
        cores=usable_cores(),
        memory=format_size(psutil.virtual_memory().total),
        load=round(os.getloadavg()[0], 2),
        system=f"{platform.system()} {platform.release()}",
        versions={
            "Headrace": __version__,
            "Spark": version("pyspark"),
            "DuckDB": version("duckdb"),
            "Java": str(find_java(environ).version),
            "Python": platform.python_version(),
        },
    )


def _cpu_model() -> str:
    """The processor's name; Linux says it in a file, other systems through Python."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()
