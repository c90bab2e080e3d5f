"""What is done about what was observed of a running plan, to read: who was picked, the steps, their price."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from headrace.cli.render import out, table
from headrace.service.solve import AdaptedData, Name, StepData

_MOST = 20


def print_adapted(done: AdaptedData) -> None:
    """Nothing is printed of what did not happen."""
    picked = [(str(one["query"]), one["reason"], one["detail"]) for one in done["picked"]]
    _table(("picked", "reason", "detail"), picked)
    _table(("dropped", "why"), [(str(one["query"]), one["why"]) for one in done["dropped"]])
    _table(("step", "stream", "from", "to", "state"), [_step(one) for one in done["steps"]])


def adapted_summary(done: AdaptedData, running: int) -> list[Text]:
    """`running`: how many queries ran."""
    starve = sum(one["reason"] == "starves" for one in done["picked"])
    ran = f"{running:,} {'query' if running == 1 else 'queries'} ran"
    picked = f"{starve:,} starve, {len(done['picked']) - starve:,} deviate"
    planned = f"{len(done['replanned']):,} planned again, {len(done['dropped']):,} dropped"
    price = done["price"]
    joins = f"joins moved {price['moved']:,}, started {price['started']:,}, stopped {price['stopped']:,}"
    line = f"{joins}; copies started or stopped {price['flows']:,}; {_size(price['bytes'])} of state to move"
    lines = [Text(f"{ran}: {picked}; {planned}", style="bold"), Text(line)]
    if price["seconds_to_fill"]:
        lines.append(Text(f"joins that start without state fill theirs in {price['seconds_to_fill']:g} s"))
    return lines


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    if not rows:
        return
    console = out()
    console.print(table(columns, rows[:_MOST]))
    if len(rows) > _MOST:
        console.print(Text(f"... and {len(rows) - _MOST:,} more; --json gives all", style="dim"))
    console.print()


def _step(one: StepData) -> tuple[str, ...]:
    ends = [str(one[end]) if end in one else "" for end in ("from", "to")]
    return (one["step"], _joined(one["stream"]), *ends, _size(one["bytes"]) if "bytes" in one else "")


def _joined(stream: Sequence[Name]) -> str:
    return "*".join(map(str, stream))


def _size(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.4g} {unit}"
        count /= 1000
    return f"{count:,.4g} TB"
