"""What a refusal says: which resources of which hosts bind, and how much of each would have to be freed."""

from __future__ import annotations

from headrace.planners.admission.problem import Host, Stream
from headrace.planners.admission.state import State

MOST = 3
"""Resources named in one message."""


def explain(state: State, stream: Stream, hosts: set[Host]) -> str:
    """Of a plan that passes limits at some of these hosts; nothing if it passes none."""
    over = shortages(state, hosts)
    if not over and hosts:
        return ""
    if not over:
        return f"{_show(stream)} cannot be made: parts of it have no rate, or no link has room for them"
    said = [
        f"{name} of host {state.problem.hosts[host].id}"
        f" ({used:.4g} needed of {limit:.4g}, {used - limit:.3g} to be freed)"
        for used, limit, host, name in over[:MOST]
    ]
    more = f" and {len(over) - MOST} more" if len(over) > MOST else ""
    return f"binding: {'; '.join(said)}{more}"


def shortages(state: State, hosts: set[Host]) -> list[tuple[float, float, Host, str]]:
    """What is used and what there is of every resource of which there is not enough, the worst first."""
    kinds = (
        ("cpu", state.cpu, state.cpu_limit),
        ("outgoing bandwidth", state.out, state.out_limit),
        ("incoming bandwidth", state.into, state.into_limit),
        ("memory", state.memory, state.memory_limit),
    )
    found = [
        (float(used[host]), float(limit[host]), host, name)
        for name, used, limit in kinds
        for host in sorted(hosts)
        if used[host] > limit[host]
    ]
    return sorted(found, key=lambda one: (-(one[0] - one[1]) / max(one[1], 1e-9), one[2], one[3]))


def _show(stream: Stream) -> str:
    return "*".join(sorted(stream))
