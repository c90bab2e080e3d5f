"""The status of a project and the advice of a rebalance, to read."""

from __future__ import annotations

from typing import Any

from rich.text import Text

from headrace.cli.render import err, out, table
from headrace.service.rebalance import RebalanceData
from headrace.service.status import JobData, MoveData, SiteData, StatusData
from headrace.service.telling import first_of

_MOST_JOBS = 200
_MOST_NAMES = 6
_RIGHT = frozenset(
    {
        "rows in/s",
        "rows out/s",
        "cores",
        "state",
        "batch",
        "lag",
        "late",
        "memory",
        "pause",
        "gain",
        "held up",
    }
)
_ALIVE = ("starting", "running", "draining")


def print_status(data: StatusData) -> None:
    console = out()
    console.print(Text(_head(data), style="bold"))
    if data["jobs"]:
        columns = (
            "job",
            "wanted",
            "seen",
            "site",
            "rows in/s",
            "rows out/s",
            "cores",
            "state",
            "batch",
            "lag",
        )
        rows = [_job(one) for one in data["jobs"][:_MOST_JOBS]]
        console.print(table((*columns, "late", "watermark"), rows, _RIGHT))
    if len(data["jobs"]) > _MOST_JOBS:
        console.print(f"... and {len(data['jobs']) - _MOST_JOBS} more; --json gives all")
    console.print()
    console.print(
        table(("site", "health", "cores", "memory", "jobs"), [_site(one) for one in data["sites"]], _RIGHT)
    )
    if data["costs"]:
        console.print()
        console.print(table(("cost of", *data["costs"]), _costs(data)))
    if data["moves"]:
        console.print()
        rows = [_move(one) for one in data["moves"]]
        console.print(table(("move", "job", "from", "to", "state", "pause", "asked"), rows, _RIGHT))
    console.print()
    _print_rebalancing(data)
    _print_troubles(data)


def _print_rebalancing(data: StatusData) -> None:
    told = data["rebalancing"]
    mode = "not by what runs" if told["mode"] is None else told["mode"]
    out().print(f"rebalancing: {mode}; {rules_text(told['rules'])}", soft_wrap=True)
    if told["why"]:
        out().print(f"last decision: {told['why']}", soft_wrap=True)
    _print_stays(told["stays"])


def _print_stays(stays: dict[str, str]) -> None:
    """Why jobs may not be moved, those of the same reason together."""
    by_reason: dict[str, list[str]] = {}
    for job, why in stays.items():
        by_reason.setdefault(why, []).append(job)
    for why, jobs in by_reason.items():
        out().print(f"{first_of(jobs, _MOST_NAMES)} may not be moved: {why}", soft_wrap=True)


def rules_text(rules: dict[str, Any]) -> str:
    """Those that count for the policy, in a line."""
    state, policy = rules["state"], rules["policy"]
    parts = [f"policy {policy} by {rules['model']}", f"percent_difference {rules['percent_difference']:g}%"]
    if policy == "ours":
        parts.append(f"full {rules['full']:g}%, horizon {rules['horizon']}, margin {rules['margin']:g}")
    elif policy == "balance":
        parts.append(f"least_gain {rules['least_gain']:g}%")
    else:
        parts.append(f"degraded {rules['degraded']:g}%")
    parts += [
        f"{key} {', '.join(rules[key]) or 'none'}" for key in ("jobs", "sites") if rules[key] is not None
    ]
    if state["least"] or state["most"] is not None:
        most = "any" if state["most"] is None else _size(state["most"])
        parts.append(f"state {_size(state['least'])} to {most}")
    return ", ".join([*parts, f"rest {rules['rest']}"])


def _head(data: StatusData) -> str:
    process = data["process"]
    text = f"{data['project']}: nothing runs"
    if process["running"]:
        since = f" since {process['since']}" if process["since"] else ""
        text = f"{data['project']}: {process['doing'] or 'run'}, process {process['pid']}{since}"
    if data["age"] is None:
        return f"{text}; no statistics yet"
    return f"{text}; figures of {data['gathered']}, {_age(data['age'])} ago"


def _age(seconds: float) -> str:
    for size, name in ((86_400, "days"), (3_600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {name}"
    return f"{seconds:.0f} s"


def _job(one: JobData) -> tuple[str, ...]:
    seen = one["observed"] or ""
    if seen in _ALIVE and not one["current"]:
        seen = f"was {seen}"
    site = one["site"] if one["site"] == one["wanted_site"] else f"{one['site']} -> {one['wanted_site']}"
    return (
        _named(one),
        one["desired"] or "not yet",
        seen,
        site,
        _number(one["rows_in"]),
        _number(one["rows_out"]),
        "" if one["cpu"] is None else f"{one['cpu']:.2f}",
        _size(one["state_bytes"]),
        _seconds(one["batch_seconds"]),
        _seconds(one["lag_seconds"]),
        f"{one['late_rows']:,}" if one["late_rows"] else "",
        one["watermark"] or "",
    )


def _named(one: JobData) -> str:
    """With its queries, where it is not known by its only one."""
    if one["kind"] == "job":
        return one["job"]
    made = f"makes {one['makes']} for " if one["makes"] else ""
    return f"{one['job']} ({made}{first_of(one['queries'], _MOST_NAMES)})"


def _site(one: SiteData) -> tuple[str, ...]:
    cores = "" if one["cpu"] is None else f"{one['cpu']:.2f} of {one['cpu_limit']:g}"
    memory = "" if one["memory"] is None else f"{_size(one['memory'])} of {_size(one['memory_limit'])}"
    return one["site"], one["health"], cores, memory, first_of(one["jobs"], _MOST_NAMES)


def _costs(data: StatusData) -> list[tuple[str, ...]]:
    return [
        (
            site["site"],
            *(
                f"{by[site['site']]['cost']:.1%}" if site["site"] in by else ""
                for by in data["costs"].values()
            ),
        )
        for site in data["sites"]
    ]


def _move(one: MoveData) -> tuple[str, ...]:
    pause = "" if one["pause"] is None else f"{one['pause']:.1f} s"
    return str(one["move"]), one["job"], one["source"], one["target"], one["state"], pause, one["asked"]


def _print_troubles(data: StatusData) -> None:
    for job in data["jobs"]:
        if job["error"]:
            err().print(
                Text(f"{job['job']}: ", style="bold red") + Text(job["error"].splitlines()[0]), soft_wrap=True
            )
    for site in data["sites"]:
        if site["reason"]:
            err().print(f"{site['site']} does not answer: {site['reason']}", soft_wrap=True)
    for move in data["moves"]:
        if move["message"] and move["state"] in ("refused", "stayed"):
            reason = move["message"].splitlines()[0]
            err().print(f"move {move['move']} of {move['job']}: {reason}", soft_wrap=True)


def print_rebalance(data: RebalanceData) -> None:
    console = out()
    if data["moves"]:
        rows = [
            (
                ", ".join(move["jobs"]),
                move["source"],
                move["target"],
                f"{move['gain']:,.4g}",
                f"{move['cost']:,.4g}",
                f"{move['pause']:.1f} s",
                move["why"],
            )
            for move in data["moves"]
        ]
        console.print(table(("move", "from", "to", "gain", "held up", "pause", "why"), rows, _RIGHT))
    sites = [
        (site, f"{cost:.1%}", f"{data['after'].get(site, cost):.1%}") for site, cost in data["before"].items()
    ]
    after = "after" if data["moves"] else "then"
    console.print(table(("site", f"cost ({data['model']})", after), sites))
    if data["why"]:
        console.print(f"{'then' if data['moves'] else 'nothing moves'}: {data['why']}", soft_wrap=True)
    pauses = "measured" if data["pause_measured"] else "assumed: nothing was moved yet"
    running = "" if data["running"] else "; nothing runs"
    _print_stays(data["stays"])
    console.print(f"rules: {rules_text(data['rules'])}", soft_wrap=True)
    console.print(f"figures {_age(data['age'])} old{running}; pauses {pauses}")


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.1f} s"


def _size(value: float | None) -> str:
    return "" if value is None else f"{value / 2**20:,.1f} MiB"
