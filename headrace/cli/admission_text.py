"""The answer to an admission problem, to read: how many queries run, why others do not, what is used."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from headrace.cli.adapted_text import adapted_summary, print_adapted
from headrace.cli.render import out, table
from headrace.service.solve import AdmissionAnswer, HostData

_MOST_REFUSALS = 20
_MOST_HOSTS = 50
_BAR = 8
_Figures = tuple[str, float | None, float | None]
"""A resource, what is used of it, and what there is."""


def print_admission(answer: AdmissionAnswer) -> None:
    console = out()
    if "adapted" in answer:
        print_adapted(answer["adapted"])
    elif answer["refused"]:
        refused = [query for query in answer["queries"] if not query["admitted"]]
        rows = [(str(query["id"]), query["why"]) for query in refused[:_MOST_REFUSALS]]
        console.print(table(("refused", "why"), rows))
        _more(len(refused) - _MOST_REFUSALS, "refusals")
        console.print()
    if rows := _not_removed(answer):
        console.print(table(("not removed", "why"), rows[:_MOST_REFUSALS]))
        _more(len(rows) - _MOST_REFUSALS, "of these")
        console.print()
    if answer["plan"]["deliveries"]:
        console.print(_hosts(answer["hosts"][:_MOST_HOSTS]))
        _more(len(answer["hosts"]) - _MOST_HOSTS, "hosts")
        console.print()
    for line in _summary(answer):
        console.print(line)


def _hosts(hosts: Sequence[HostData]) -> object:
    kinds = [name for name, _, _ in _figures(hosts[0])]
    if not any("memory" in host for host in hosts):
        kinds.remove("memory")
    rows = [
        (str(host["id"]), *(_share(used, limit) for name, used, limit in _figures(host) if name in kinds))
        for host in hosts
    ]
    return table(("host", *kinds), rows)


def _figures(host: HostData) -> tuple[_Figures, ...]:
    return (
        ("cpu", host["cpu_used"], host["cpu"]),
        ("in", host["in_used"], host["in"]),
        ("out", host["out_used"], host["out"]),
        ("memory", host.get("memory_used"), host.get("memory")),
    )


def _share(used: float | None, limit: float | None) -> str:
    """A bar, full only where nothing is left, and a percentage; nothing where there is no limit, or it is
    0."""
    if used is None or not limit:
        return ""
    part = min(max(used / limit, 0.0), 1.0)
    full = int(part * _BAR + 1e-6)
    return f"{'#' * full}{'.' * (_BAR - full)} {part:4.0%}"


def _summary(answer: AdmissionAnswer) -> list[Text]:
    plan, queries = answer["plan"], answer["queries"]
    done = answer.get("adapted")
    lines = adapted_summary(done, answer["admitted"] + len(done["dropped"])) if done else [_counts(answer)]
    if "offline_bound" in answer:
        lines.append(Text(f"no plan admits more than {int(answer['offline_bound'] + 1e-6):,}"))
    if plan["deliveries"]:
        copies = f"{_number(len(plan['flows']), 'copy', 'copies')} between hosts"
        joins = _number(len(plan["operators"]), "join", "joins")
        lines.append(
            Text(f"{joins}, {copies}, {_number(len(plan['deliveries']), 'stream', 'streams')} given")
        )
        lines[-1].append(f"; {_used(answer['hosts'])} of all CPU")
    moved = sum(query["moved"] for query in queries)
    if moved:
        lines.append(Text(f"joins of running queries moved: {moved:,}"))
    times = f"{done['milliseconds']:.2f} ms" if done else _times(answer)
    lines.append(Text(f"{answer['planner']}, {times}"))
    return [*lines, *(Text(f"{name}: {note}") for name, note in answer.get("notes", {}).items())]


def _counts(answer: AdmissionAnswer) -> Text:
    total = f"{answer['admitted']:,} of {_number(len(answer['queries']), 'query', 'queries')} admitted"
    left = sum(one["removed"] for one in answer.get("removals", []))
    removed = f", {left:,} removed" if left else ""
    return Text(f"{total}, {answer['refused']:,} refused{removed}", style="bold")


def _not_removed(answer: AdmissionAnswer) -> list[tuple[str, str]]:
    return [(str(one["id"]), one["why"]) for one in answer.get("removals", []) if not one["removed"]]


def _used(hosts: Sequence[HostData]) -> str:
    limit = sum(host["cpu"] for host in hosts)
    return f"{sum(host['cpu_used'] for host in hosts) / limit:.0%}" if limit else "none"


def _times(answer: AdmissionAnswer) -> str:
    """Of one query: the mean, and what 99 of 100 stay within."""
    ordered = sorted(query["milliseconds"] for query in answer["queries"])
    within = ordered[-(-99 * len(ordered) // 100) - 1]
    mean = sum(ordered) / len(ordered)
    return f"{mean:.2f} ms a query, 99 % within {within:.2f} ms, {answer['seconds']:.2f} s in all"


def _number(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"


def _more(count: int, what: str) -> None:
    if count > 0:
        out().print(Text(f"... and {count:,} more {what}; --json gives all", style="dim"))
