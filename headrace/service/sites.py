"""Sites for development: Spark Connect servers on this machine, started, shown and stopped.

.headrace/sites/NAME/   one server each (runtime/spark/servers.py)
.headrace/sites.lock    held while servers are started or stopped
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import psutil
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from headrace.catalog.load import load_project
from headrace.catalog.model import Project
from headrace.catalog.redact import redact
from headrace.errors import EngineError, UserError
from headrace.ids import did_you_mean
from headrace.runtime.files import write_whole
from headrace.runtime.spark.health import Checker, Health, listens
from headrace.runtime.spark.servers import Server, Starting, Wanted, free_ports, servers, stop
from headrace.service.layout import lock_file, state_file
from headrace.state.lock import Locked, RunLock
from headrace.state.store import Store
from headrace.units import format_size, parse_size

FOLDER = Path(".headrace") / "sites"
PATIENCE = 5.0
"""Seconds in which a site must answer to be called alive."""
MOST = 32
_START_SECONDS = 180.0
_LEAST_MEMORY = 512 << 20
_POLL_SECONDS = 0.2
_ABOUT = "server.json"
_RUNNING = frozenset({"starting", "running", "draining"})

Note = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class SiteStatus:
    """One site as it is now. None: not known, because the process is not ours to look at."""

    name: str
    address: str
    state: str
    """`answers`, `silent` (it runs and does not answer), `dead`, or `away` (not ours, no answer)."""
    pid: int | None = None
    since: str | None = None
    seconds: float | None = None
    """How long it took to answer."""
    spark: str = ""
    memory: int | None = None
    """Bytes in use, of the server and its workers."""
    cpu: float | None = None
    """Cores in use at this moment."""
    jobs: tuple[str, ...] = ()
    """Queries that run there."""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Up:
    """How servers are started."""

    count: int
    memory: str = "2g"
    cores: int = 1


def checker() -> Checker:
    return Checker(time.monotonic, lambda: str(uuid.uuid4()))


# -- up ---------------------------------------------------------------------------------------------


def up(folder: Path, how: Up, environ: Mapping[str, str], note: Note = lambda _: None) -> tuple[Server, ...]:
    """Start servers and return once every one answers. All of them, or, whatever goes wrong, none. Where so
    many were started before and some have died, those are started again, as and where they were; the others
    run on. Raises UserError where others run already, EngineError where one does not come up."""
    memory = _memory(how)
    if not _are_some_dead(servers(folder), how.count):
        # Before the lock: what is refused leaves nothing behind.
        _check_memory(parse_size(memory) * how.count, how.count)
    with _changing(folder):
        known = servers(folder)
        if _are_some_dead(known, how.count):
            return _again(known, environ, note)
        _refuse_running(folder)
        for dead in known:
            stop(dead)
        names = [f"site{number}" for number in range(1, how.count + 1)]
        wanted = [
            Wanted(name, folder.resolve() / name, port, memory, how.cores)
            for name, port in zip(names, free_ports(how.count), strict=True)
        ]
        return _start(wanted, environ, note)


def _start(wanted: Sequence[Wanted], environ: Mapping[str, str], note: Note) -> tuple[Server, ...]:
    with ExitStack() as stack:
        begun = [stack.enter_context(Starting(one, environ)) for one in wanted]
        for one in begun:
            _wait(one)
            note(f"{one.wanted.name} answers at {_address(one.wanted)}")
        return tuple(one.keep() for one in begun)


def _named(found: Iterable[Server]) -> str:
    return ", ".join(server.name for server in found)


def _alive(found: Iterable[Server]) -> list[Server]:
    return [server for server in found if server.process() is not None]


def _are_some_dead(known: Sequence[Server], count: int) -> bool:
    """Whether so many were started, and only some of them run."""
    return len(known) == count and 0 < len(_alive(known)) < count


def _again(known: Sequence[Server], environ: Mapping[str, str], note: Note) -> tuple[Server, ...]:
    """Start the dead ones. Where that fails, they are as dead as before."""
    alive = _alive(known)
    dead = [server for server in known if server not in alive]
    _check_memory(sum(parse_size(one.memory) for one in dead), len(dead))
    about = {one.folder / _ABOUT: (one.folder / _ABOUT).read_bytes() for one in dead}
    note(f"{_named(alive)} {'run' if alive[1:] else 'runs'} on; {_named(dead)} had died")
    try:
        for one in dead:
            stop(one)
        wanted = [Wanted(one.name, one.folder.resolve(), one.port, one.memory, one.cores) for one in dead]
        found = {one.name: one for one in (*alive, *_start(wanted, environ, note))}
    except BaseException:
        for file, data in about.items():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
        raise
    return tuple(found[one.name] for one in known)


def _memory(how: Up) -> str:
    """As Java writes it. Raises UserError for what no server, or not this machine, can do."""
    if not 1 <= how.count <= MOST:
        raise UserError(f"{how.count} is not a number of sites", hint=f"Start between 1 and {MOST}.")
    if how.cores < 1:
        raise UserError(f"{how.cores} is not a number of cores")
    try:
        size = parse_size(how.memory)
    except ValueError as error:
        raise UserError(f'"{how.memory}" is not a size: {error}', hint="Write: --memory 1g") from None
    if size < _LEAST_MEMORY:
        raise UserError(
            f"{format_size(size)} is too little for a Spark server",
            hint=f"Give each {format_size(_LEAST_MEMORY)} or more.",
        )
    return f"{size >> 20}m"


def _check_memory(size: int, count: int) -> None:
    free = psutil.virtual_memory().available
    if size > free:
        raise UserError(
            f"{count} servers of {format_size(size // count)} need more than the {format_size(free)} left",
            hint="Start fewer, or give each less with --memory.",
        )


@contextmanager
def _changing(folder: Path) -> Iterator[None]:
    """Nobody else starts or stops servers in this folder meanwhile."""
    lock = RunLock(folder.with_name(f"{folder.name}.lock"), "sites")
    try:
        lock.acquire()
    except Locked as error:
        raise UserError(
            f"servers of {folder} are being started or stopped by another process",
            detail=error.detail,
            hint="Wait for it to end.",
        ) from None
    try:
        yield
    finally:
        lock.release()


def _refuse_running(folder: Path) -> None:
    alive = _alive(servers(folder))
    if alive:
        raise UserError(
            f"{len(alive)} site{'s run' if alive[1:] else ' runs'} already in {folder}",
            detail="\n".join(f"{one.name}: {one.address}, process {one.pid}" for one in alive),
            hint="Use them, or stop them first with: headrace sites down",
        )


def _address(wanted: Wanted) -> str:
    return f"sc://127.0.0.1:{wanted.port}"


def _wait(begun: Starting) -> None:
    """Until it answers a query; the first one takes a JVM seconds."""
    address, deadline = _address(begun.wanted), time.monotonic() + _START_SECONDS
    health: Health | None = None
    while time.monotonic() < deadline:
        begun.check_alive()
        if not listens(address, 1.0):
            time.sleep(_POLL_SECONDS)
            continue
        health = checker().check(address, deadline - time.monotonic())
        if health.answers:
            return
        time.sleep(_POLL_SECONDS)
    reason = health.reason if health is not None else ""
    raise EngineError(
        f"{begun.wanted.name} did not answer within {_START_SECONDS:.0f} seconds", detail=reason
    )


# -- what to write in the project file --------------------------------------------------------------


def as_yaml(found: Iterable[Server]) -> str:
    """A `sites` section for headrace.yaml."""
    lines = [
        f'  {one.name}: {{endpoint: "{one.address}", cpu: {one.cores}, memory: {one.memory}}}'
        for one in found
    ]
    return "\n".join(("sites:", *lines)) + "\n"


def check_writable(project: Path) -> Path:
    """The project file, if it can take a `sites` section. Raises UserError where it has one, and where
    nothing can be put behind its end, as when all of it stands in braces."""
    path = load_project(project).root / "headrace.yaml"
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    hint = "Leave --write out, and put the lines that are printed there by hand."
    if any(line.split(":")[0].strip("\"' ") == "sites" for line in lines if line[:1].strip()):
        raise UserError(f"{path} has a `sites` section already", hint=hint)
    try:
        YAML(typ="safe", pure=True).compose(_behind(text, "sites: {}\n"))
    except YAMLError:
        raise UserError(f"no section can be put at the end of {path}", hint=hint) from None
    return path


def write_sites(project: Path, text: str) -> Path:
    """Put a `sites` section into the project file. Raises UserError where the file would no longer be right:
    then it stays as it was."""
    path = check_writable(project)
    old = path.read_text(encoding="utf-8")
    write_whole(path, _behind(old, text))
    try:
        load_project(project)
    except UserError:
        write_whole(path, old)
        raise
    return path


def _behind(text: str, section: str) -> str:
    return text + ("" if text.endswith("\n") else "\n") + "\n" + section


# -- status -----------------------------------------------------------------------------------------


def status(
    folder: Path, project: Project | None = None, patience: float = PATIENCE
) -> tuple[SiteStatus, ...]:
    """The servers of a folder and the `sc://` sites of a project, each asked whether it answers."""
    ours = servers(folder)
    alive = {server.address for server in ours if server.process() is not None}
    sites = {} if project is None else {name: site.endpoint for name, site in project.sites.items()}
    known = {server.address for server in ours}
    foreign = {n: e for n, e in sites.items() if e.startswith("sc://") and e not in known}
    found = checker().check_all({address: address for address in (*alive, *foreign.values())}, patience)
    running = _running(project) if project is not None else {}
    rows = (_ours(one, found.get(one.address), _jobs(one.address, sites, running)) for one in ours)
    return (*rows, *(_foreign(n, e, found[e], running.get(n, ())) for n, e in foreign.items()))


def _ours(server: Server, health: Health | None, jobs: tuple[str, ...]) -> SiteStatus:
    if health is None:
        return SiteStatus(
            server.name, server.address, "dead", server.pid, reason=f"see {server.folder / 'log'}"
        )
    memory, cpu = _used(server)
    since = datetime.fromtimestamp(server.started, UTC).isoformat(timespec="seconds")
    state = "answers" if health.answers else "silent"
    return SiteStatus(
        server.name,
        server.address,
        state,
        server.pid,
        since,
        health.seconds,
        health.version,
        memory,
        cpu,
        jobs,
        health.reason,
    )


def _foreign(name: str, endpoint: str, health: Health, jobs: Sequence[str]) -> SiteStatus:
    state = "answers" if health.answers else "away"
    return SiteStatus(
        name,
        redact(endpoint),
        state,
        seconds=health.seconds,
        spark=health.version,
        jobs=tuple(jobs),
        reason=health.reason,
    )


def _used(server: Server) -> tuple[int | None, float | None]:
    """Memory and cores of the server and its Python workers, over a tenth of a second."""
    root = server.process()
    if root is None:
        return None, None
    try:
        processes = [root, *root.children(recursive=True)]
        for process in processes:
            process.cpu_percent()
        time.sleep(0.1)
        memory = sum(process.memory_info().rss for process in processes)
        return memory, sum(process.cpu_percent() for process in processes) / 100
    except psutil.Error:
        return None, None


def _running(project: Project) -> dict[str, tuple[str, ...]]:
    """The queries that run at each site, by what the run of the project has seen last."""
    if RunLock.holder(lock_file(project)) is None or not state_file(project).exists():
        return {}
    with Store(state_file(project)) as store:
        records = [one for one in store.all() if one.observed in _RUNNING]
    return {site: tuple(r.query for r in records if r.site == site) for site in {r.site for r in records}}


def _jobs(address: str, sites: Mapping[str, str], running: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(
        job for name, endpoint in sites.items() if endpoint == address for job in running.get(name, ())
    )


# -- down -------------------------------------------------------------------------------------------


def down(folder: Path, names: Sequence[str] = ()) -> tuple[str, ...]:
    """Stop the servers of these names, or all; the names of those that were there."""
    if not folder.is_dir():
        if names:
            raise UserError(f'site "{names[0]}" was not started here', hint="No sites were.")
        return ()
    with _changing(folder):
        there = {server.name: server for server in servers(folder)}
        for name in names:
            if name not in there:
                raise UserError(
                    f'site "{name}" was not started here', hint=did_you_mean(name, there, "sites")
                )
        chosen = [there[name] for name in (names or there)]
        for server in chosen:
            stop(server)
        return tuple(server.name for server in chosen)
