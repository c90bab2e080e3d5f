"""What a refusal says: which resources of which hosts bind, and how much of each is missing.

The figures are those of the one plan that came nearest by price; another plan might lack less, or something
else. Limits are those of the problem, without the slack that comparisons have.
"""

from __future__ import annotations

from copy import copy, deepcopy

import numpy as np

from headrace.planners.admission.ours_search import Table, carry_out, splits
from headrace.planners.admission.problem import Host, Stream
from headrace.planners.admission.state import Floats, State

MOST = 3
"""Resources named in one message."""


def explain(state: State, stream: Stream, hosts: set[Host]) -> str:
    """Of a plan that passes limits at some of these hosts; nothing if it passes none."""
    over = shortages(state, hosts)
    if not over:
        return ""
    # Nothing can be freed where nothing else runs.
    lacks = "missing" if state.deliveries.keys() <= {stream} else "to be freed"
    said = [
        f"{name} of host {state.problem.hosts[host].id}"
        f" ({used:.4g} needed of {limit:.4g}, {used - limit:.3g} {lacks})"
        for used, limit, host, name in over[:MOST]
    ]
    more = f" and {len(over) - MOST} more" if len(over) > MOST else ""
    return f"binding: {'; '.join(said)}{more}"


def explain_link(state: State, sender: Host, receiver: Host) -> str:
    """Of a plan that passes the limit of a link."""
    limit = state.problem.link(sender, receiver)
    used = limit - _room(state)[sender, receiver]
    return f"binding: {_link(state, sender, receiver)} ({used:.4g} needed of {limit:.4g})"


def hopeless(table: Table, best: int, stream: Stream) -> str:
    """Of a plan that costs more than sums are exact for: on a copy, since after taking it back the state
    would not be what it was."""
    trial, problem = copy(table), table.state.problem
    trial.state = deepcopy(table.state, {id(problem): problem})
    mark = trial.state.mark()
    carry_out(trial, best)
    return explain(trial.state, stream, {host for _, a, b, _ in trial.state.since(mark) for host in (a, b)})


def unreachable(table: Table, stream: Stream) -> str:
    """Of a stream that no host can make, whatever the hosts' own limits."""
    state = table.state
    name = "*".join(sorted(stream))
    stuck = _stuck(table) if _has_chain(table) else None
    if stuck is None:
        return f"{name} cannot be made: no chain of joins with known rates leads to it"
    lacking, sender, receiver = stuck
    rate, room = state.problem.rate(lacking), max(float(_room(state)[sender, receiver]), 0.0)
    return (
        f"binding: no link has room to bring the parts of {name} together; {'*'.join(lacking)} comes nearest"
        f" over {_link(state, sender, receiver)} ({rate:.4g} needed of {room:.4g} left)"
    )


def shortages(state: State, hosts: set[Host]) -> list[tuple[float, float, Host, str]]:
    """What is used and what there is of every resource of which there is not enough, the worst first."""
    limits = state.problem.hosts
    kinds = (
        ("cpu", state.cpu, state.cpu_limit, [host.cpu for host in limits]),
        ("outgoing bandwidth", state.out, state.out_limit, [host.outgoing for host in limits]),
        ("incoming bandwidth", state.into, state.into_limit, [host.incoming for host in limits]),
        ("memory", state.memory, state.memory_limit, [host.memory for host in limits]),
    )
    found = [
        (float(used[host]), given[host], host, name)
        for name, used, widened, given in kinds
        for host in sorted(hosts)
        if used[host] > widened[host]
    ]
    return sorted(found, key=lambda one: (-(one[0] - one[1]) / max(one[1], 1e-9), one[2], one[3]))


def _has_chain(table: Table) -> bool:
    """Whether joins with known rates lead from the base streams to the whole."""
    size = (len(table.sets) - 1).bit_length()
    known = {1 << i for i in range(size)}
    for split in splits(size):
        cuts = zip(split.left.tolist(), split.right.tolist(), strict=True)
        if np.isfinite(table.rates[split.mask]) and any(a in known and b in known for a, b in cuts):
            known.add(split.mask)
    return len(table.sets) - 1 in known


def _stuck(table: Table) -> tuple[Stream, Host, Host] | None:
    """The base stream and the link over which least is missing, into a host that lacks fewest of them."""
    masks = [1 << i for i in range((len(table.sets) - 1).bit_length())]
    away, room = np.isinf(table.least[masks]), _room(table.state)
    fewest = int(away.sum(axis=0).min())
    if not fewest:
        return None
    found = [
        (float(table.rates[mask] - room[sender, host]), mask, sender, host)
        for row, mask in enumerate(masks)
        for host in np.flatnonzero(away[row] & (away.sum(axis=0) == fewest)).tolist()
        for sender in [_widest(room[:, host], ~away[row])]
    ]
    _, mask, sender, receiver = min(found)
    return table.sets[mask], sender, receiver


def _widest(room: Floats, able: np.ndarray) -> Host:
    return int(np.where(able, room, -np.inf).argmax())


def _room(state: State) -> Floats:
    """Of links, by the limits of the problem."""
    used: Floats = np.zeros((len(state.cpu),) * 2) if state.links is None else state.links
    room: Floats = state.problem.link_bandwidth - used
    return room


def _link(state: State, sender: Host, receiver: Host) -> str:
    first, second = (state.problem.hosts[host].id for host in (sender, receiver))
    return f"the link from host {first} to host {second}"
