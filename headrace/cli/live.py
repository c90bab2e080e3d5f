"""Watch a run: a live table on a terminal, a line every few seconds anywhere else."""

from __future__ import annotations

from types import TracebackType
from typing import Protocol, Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from headrace.cli.render import count
from headrace.service.run import Snapshot
from headrace.service.view import WAITING, JobRow, count_states, job_rows, rows_read, total_share

_PLAIN_SECONDS = 5.0
_STYLES = {
    "failed": "bold red",
    "finished": "green",
    "stopped": "yellow",
    "waiting": "dim",
    "running": "cyan",
}


class View(Protocol):
    """Something that shows snapshots while a `with` block lasts."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def show(self, snapshot: Snapshot) -> None: ...

    def data(self, stream: str, done: int, total: int) -> None: ...

    def note(self, text: str) -> None: ...


def view(console: Console, *, quiet: bool) -> View:
    if quiet:
        return SilentView()
    return LiveView(console) if console.is_terminal else PlainView(console)


class SilentView:
    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def show(self, snapshot: Snapshot) -> None:
        return None

    def data(self, stream: str, done: int, total: int) -> None:
        return None

    def note(self, text: str) -> None:
        return None


class PlainView(SilentView):
    """A line when a job starts, ends or fails, and one every few seconds for all of them."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._said: float | None = None
        self._states: dict[str, str] = {}
        self._data: set[str] = set()

    def data(self, stream: str, done: int, total: int) -> None:
        if done >= total and stream not in self._data:
            self._data.add(stream)
            self._print(f"data of stream {stream}: {total:,} rows")

    def note(self, text: str) -> None:
        self._print(text)

    def show(self, snapshot: Snapshot) -> None:
        rows = job_rows(snapshot)
        for row in rows:
            if row["ended"] and self._states.get(row["job"]) != row["state"]:
                self._print(f"{snapshot.seconds:6.1f} s  {plain_line(row)}")
            self._states[row["job"]] = row["state"]
        if self._said is None or snapshot.seconds - self._said >= _PLAIN_SECONDS:
            self._said = snapshot.seconds
            self._print(f"{snapshot.seconds:6.1f} s  {totals(rows)}")

    def _print(self, line: str) -> None:
        self._console.print(line, soft_wrap=True)


class LiveView(SilentView):
    """A table that is drawn again at every snapshot."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, auto_refresh=False, transient=True)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def data(self, stream: str, done: int, total: int) -> None:
        bar = ProgressBar(total=max(total, 1), completed=done, width=40)
        self._live.update(
            Group(Text(f"data of stream {stream}: {done:,} of {total:,} rows"), bar), refresh=True
        )

    def note(self, text: str) -> None:
        """Above the table, where it stays."""
        self._live.console.print(text, soft_wrap=True)

    def show(self, snapshot: Snapshot) -> None:
        rows = job_rows(snapshot)
        shown = most_telling(rows, max(3, self._console.height - 6))
        parts: list[Table | Text | ProgressBar] = [run_table(shown)]
        if len(shown) < len(rows):
            parts.append(Text(f"... and {len(rows) - len(shown)} more", style="dim"))
        parts.append(Text(f"{snapshot.seconds:.0f} s  {totals(rows)}", style="bold"))
        share = total_share(rows)
        if share is not None:
            parts.append(ProgressBar(total=1.0, completed=share, width=60))
        self._live.update(Group(*parts), refresh=True)


def most_telling(rows: list[JobRow], room: int) -> list[JobRow]:
    """The rows that fit: failed ones, running ones, ended ones, waiting ones; shown in plan order."""
    rank = {"failed": 0, "running": 1, "draining": 1, "starting": 1, "finished": 2, "stopped": 2}
    order = sorted(range(len(rows)), key=lambda i: (rank.get(rows[i]["state"], 3), i))
    return [rows[i] for i in sorted(order[:room])]


def run_table(rows: list[JobRow], *, bars: bool = True) -> Table:
    """One line per query, with a bar (or a percentage) where the size of the input is known, and its tree."""
    made = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    made.add_column("query", overflow="fold")
    made.add_column("state")
    for name in ("batch", "rows in", "rows/s", "rows out", "late", "lag"):
        made.add_column(name, justify="right")
    made.add_column("read")
    trees = any(row["tree"] for row in rows)
    if trees:
        made.add_column("tree", no_wrap=True)
    for row in rows:
        made.add_row(*_cells(row, bars=bars), *((Text(_tree(row)),) if trees else ()))
    return made


def _tree(row: JobRow) -> str:
    valid = f" valid from {row['valid_from']}" if row["valid_from"] else ""
    return f"{row['tree'] or ''}{valid}"


def _cells(row: JobRow, *, bars: bool) -> list[Text | ProgressBar]:
    begun = row["state"] != WAITING
    speed, lag, share = row["rows_per_second"], row["lag_seconds"], row["share"]
    numbers = (
        count(row["batch"]),
        count(row["input_rows"]) if begun else "",
        "" if speed is None or row["ended"] else f"{speed:,.0f}",
        count(row["output_rows"]) if begun else "",
        count(row["late_rows"]) if begun else "",
        "" if lag is None else f"{lag:.1f} s",
    )
    bar: Text | ProgressBar = Text("" if share is None else f"{share:.0%}")
    if share is not None and bars:
        bar = ProgressBar(total=1.0, completed=share, width=16)
    state = Text(row["state"], style=_STYLES.get(row["state"], ""))
    return [Text(row["job"]), state, *(Text(n) for n in numbers), bar]


def plain_line(row: JobRow) -> str:
    text = (
        f"{row['job']}: {row['state']}, {row['input_rows']:,} rows in, {row['output_rows']:,} rows out, "
        f"{row['late_rows']:,} late"
    )
    return f"{text}: {row['error'].splitlines()[0]}" if row["error"] else text


def totals(rows: list[JobRow]) -> str:
    """All queries in one line; what a tree has read counts once for all of its members."""
    states = ", ".join(f"{number} {state}" for state, number in count_states(rows).items())
    read = rows_read(rows)
    given = sum(row["output_rows"] for row in rows)
    late = sum(row["late_rows"] for row in rows)
    return f"{states}; {read:,} rows in, {given:,} rows out, {late:,} late"
