"""What the sites use that this machine can see: cores between two looks, and memory.

A server that was started here is looked at as a tree of processes: the JVM and its Python workers. Sites
without an address are the Spark in this process. Of any other site nothing is known.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from headrace.catalog.model import Project

REMOTE = "sc://"


@dataclass(frozen=True, slots=True)
class SiteUse:
    """None: not known."""

    cpu: float | None = None
    """Cores, on average since the last look."""
    memory: float | None = None
    """Bytes."""


@dataclass(frozen=True, slots=True)
class Seen:
    uses: Mapping[str, SiteUse]
    """By site."""
    down: tuple[str, ...] = ()
    """Sites whose server was started here, and is dead."""


Probe = Callable[[Project], Seen]
Roots = dict[str, psutil.Process]
"""By site."""


def nothing(project: Project) -> Seen:
    """For jobs that all run in one other Spark: nothing is known of the sites."""
    return Seen({})


class Processes:
    """A `Probe` of real processes. `clock` gives seconds that never go back."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._before: dict[int, tuple[float, float]] = {}
        """By process id: when it was looked at, and its processor seconds until then."""

    def __call__(self, project: Project) -> Seen:
        remote = [name for name, site in project.sites.items() if site.endpoint.startswith(REMOTE)]
        local = [name for name in project.sites if name not in remote]
        roots, down = self._servers(project, remote)
        # Two sites without an address are the same Spark: whose is what cannot be told.
        if len(local) == 1:
            roots[local[0]] = psutil.Process()
        below = _below([root.pid for root in roots.values()])
        uses = {name: self._used(root, below[root.pid]) for name, root in roots.items()}
        self._before = {
            root.pid: self._before[root.pid] for root in roots.values() if root.pid in self._before
        }
        return Seen(uses, down)

    @staticmethod
    def _servers(
        project: Project, remote: Iterable[str]
    ) -> tuple[dict[str, psutil.Process], tuple[str, ...]]:
        """The processes of the sites that were started here, and those that are dead."""
        from headrace.runtime.spark.servers import servers

        known = {server.address: server.process() for server in servers(project.root.resolve() / FOLDER)}
        here = {name: known[e] for name in remote if (e := project.sites[name].endpoint) in known}
        down = tuple(name for name, process in here.items() if process is None)
        return {name: process for name, process in here.items() if process is not None}, down

    def _used(self, root: psutil.Process, workers: Iterable[psutil.Process]) -> SiteUse:
        seconds, memory = 0.0, 0
        for process in (root, *workers):
            with contextlib.suppress(psutil.Error), process.oneshot():
                times = process.cpu_times()
                # Workers that have ended are counted by who waited for them.
                seconds += sum(times[:2]) + sum(getattr(times, name, 0.0) for name in _ENDED)
                memory += process.memory_info().rss
        now = self._clock()
        before = self._before.get(root.pid)
        self._before[root.pid] = (now, seconds)
        if before is None or now <= before[0]:
            return SiteUse(memory=float(memory))
        return SiteUse(max(0.0, seconds - before[1]) / (now - before[0]), float(memory))


_ENDED = ("children_user", "children_system")
FOLDER = Path(".headrace") / "sites"
"""As service/sites.py has it, which is not imported here: it brings the engine's client with it."""


def _below(roots: Iterable[int]) -> dict[int, list[psutil.Process]]:
    """The processes below each root, none of them below two. One pass over all processes of the machine:
    asking for the children of each root makes one for every root."""
    parents: dict[int, int] = {}
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            parents[process.pid] = process.ppid()
    found: dict[int, list[psutil.Process]] = {root: [] for root in roots}
    for pid in parents:
        owner = _owner(pid, parents, found)
        if owner is not None and pid != owner:
            with contextlib.suppress(psutil.Error):
                found[owner].append(psutil.Process(pid))
    return found


def _owner(pid: int, parents: Mapping[int, int], roots: Mapping[int, object]) -> int | None:
    """The nearest root above a process, itself included."""
    seen: set[int] = set()
    while pid not in roots:
        if pid in seen or pid not in parents:
            return None
        seen.add(pid)
        pid = parents[pid]
    return pid
