"""Make a running stream another way or at another host, and keep all who use it supplied.

A move is tried on the state itself; whoever asks for it measures what it brought and takes it back if that
was nothing. Streams of a plan are made from smaller ones only, so no move can close a circle of operators;
circles of senders are avoided by cutting the way from the old maker to the new one first.
"""

from __future__ import annotations

import numpy as np

from headrace.planners.admission.ours_search import IMPOSSIBLE, Prices, Table, carry_out
from headrace.planners.admission.problem import Host, Operator, Stream, cpu_of, memory_of
from headrace.planners.admission.state import DELIVERY, Floats, State


def reach(state: State, prices: Prices, stream: Stream) -> tuple[Floats, Host]:
    """The price of having a running stream at each host, and who sends it to those that lack it."""
    rate = state.problem.rate(stream)
    holders = list(state.have[stream])
    share = rate * prices.carry(stream)
    offer = np.where(state.out[holders] + rate <= state.out_limit[holders], prices.out[holders], np.inf)
    best = int(offer.argmin())
    # A stream without a rate costs nothing to send, but a host that cannot send still cannot.
    price = share * prices.into + (share * offer[best] if np.isfinite(offer[best]) else np.inf)
    price[state.into + rate > state.into_limit] = np.inf
    price[holders] = 0.0
    return price, holders[best]


def remake(state: State, prices: Prices, host: Host, old: Operator, new: Operator, leave: bool) -> bool:
    """Let `new` make what `old` makes at `host`, at the host where that is cheapest; `leave`: not at `host`.
    False: no host has the room; the state is as before.

    What only the old operator needs is taken away first, so that its room counts for the new one."""
    mark = state.mark()
    gone = _Gone(state, host, old)
    left, from_left = reach(state, prices, new.left)
    right, from_right = reach(state, prices, new.right)
    price = left + right + _place_price(state, prices, host, old, new)
    price[list(state.made.get(new.output, ()))] = np.inf
    if leave:
        price[host] = np.inf
    best = int(price.argmin())
    if np.isfinite(price[best]):
        _cut(state, best, new.output)
        if _bring(state, from_left, best, new.left) and _bring(state, from_right, best, new.right):
            state.place(best, new)
            if gone.supply_from(best):
                return True
    state.undo_to(mark)
    return False


def rebuild(state: State, prices: Prices, host: Host, old: Operator) -> bool:
    """Make what `old` makes at `host` from scratch, of all else that runs. False: as before."""
    mark, stream = state.mark(), old.output
    gone = _Gone(state, host, old)
    gone.drop_parts()
    if not state.have[stream]:  # else others pass it on, and would be taken for a source
        table = Table(state, prices, stream)
        best, price = table.delivery()
        if price < IMPOSSIBLE and carry_out(table, best) and gone.supply_from(int(table.hosts[best])):
            return True
    state.undo_to(mark)
    return False


def _place_price(state: State, prices: Prices, user: Host, old: Operator, new: Operator) -> Floats:
    """Of an operator at each host, its output sent to `user`, where `old` was taken out: a host that had too
    much to do already may have as much as before."""
    room = state.cpu_limit - state.cpu
    room[user] = max(room[user], cpu_of(state.problem, old))
    need = np.array(cpu_of(state.problem, new))
    output = state.problem.rate(new.output)
    price: Floats = prices.cpu_price(need, room)
    price = price + output * (prices.out + prices.into[user]) * (np.arange(len(price)) != user)
    memory_room = state.memory_limit - state.memory
    memory_room[user] = max(memory_room[user], memory_of(state.problem, old))
    price[(need > room) | (memory_of(state.problem, new) > memory_room)] = np.inf
    return price


class _Gone:
    """An operator taken out, with what it received alone and with what its output went to."""

    def __init__(self, state: State, host: Host, old: Operator) -> None:
        self._state, self._host, self._old = state, host, old
        state.unplace(host, old)
        self._senders = [
            (sender, part) for part in (old.left, old.right) if (sender := self._unbring(part)) >= 0
        ]
        users = state.users[host, old.output]
        self._delivered = DELIVERY in users
        if self._delivered:
            state.undeliver(old.output)
        self._read_here = any(isinstance(user, Operator) for user in users)
        self._receivers = [] if self._read_here else sorted(user for user in users if isinstance(user, int))
        for receiver in self._receivers:
            state.unsend(host, receiver, old.output)

    def _unbring(self, part: Stream) -> Host:
        state, host = self._state, self._host
        source = state.have[part].get(host)
        if not isinstance(source, int) or state.users[host, part]:
            return -1
        state.unsend(source, host, part)
        return source

    def supply_from(self, maker: Host) -> bool:
        """Those who had the output get it from where it is made now."""
        state, stream = self._state, self._old.output
        if self._delivered:
            if not state.can_deliver(maker, stream):
                return False
            state.deliver(stream, maker)
        receivers = [self._host] if self._read_here else self._receivers
        if not all(_bring(state, maker, receiver, stream) for receiver in receivers):
            return False
        self.drop_parts()
        return True

    def drop_parts(self) -> None:
        """All that only the old operator needed goes."""
        for sender, part in self._senders:
            self._state.drop_unused(sender, part)
        for part in (self._old.left, self._old.right):
            self._state.drop_unused(self._host, part)


def _cut(state: State, host: Host, stream: Stream) -> None:
    """A host that is about to make a stream receives it no longer."""
    source = state.have[stream].get(host)
    if isinstance(source, int):
        state.unsend(source, host, stream)
        state.drop_unused(source, stream)


def _bring(state: State, sender: Host, host: Host, stream: Stream) -> bool:
    if host in state.have[stream]:
        return True
    if not state.can_send(sender, host, state.problem.rate(stream)):
        return False
    state.send(sender, host, stream)
    return True


def relieve(state: State, prices: Prices, hosts: set[Host], tries: int) -> bool:
    """Bring hosts that use more than they have back within their limits. False: some still do."""
    for host in sorted(hosts):
        if state.cpu[host] > state.cpu_limit[host] or state.memory[host] > state.memory_limit[host]:
            _shed_operators(state, prices, host, tries)
        if state.out[host] > state.out_limit[host]:
            _shed_sending(state, prices, host, tries)
        if state.into[host] > state.into_limit[host]:
            _shed_copies(state, prices, host, tries)
    return not any(overloaded(state, host) for host in hosts)


def overloaded(state: State, host: Host) -> str:
    """The resource of which a host uses more than it has."""
    for name, used, limit in (
        ("cpu", state.cpu, state.cpu_limit),
        ("out", state.out, state.out_limit),
        ("in", state.into, state.into_limit),
        ("memory", state.memory, state.memory_limit),
    ):
        if used[host] > limit[host]:
            return name
    return ""


def _shed_operators(state: State, prices: Prices, host: Host, tries: int) -> None:
    """Move operators elsewhere until the CPU is enough."""
    room = float((state.cpu_limit - state.cpu).max())
    order = [one for one in state.running[host] if cpu_of(state.problem, one) <= room]
    order.sort(key=lambda one: _shed_order(state, host, one))
    for one in order[:tries]:
        if one in state.running[host]:
            remake(state, prices, host, one, one, leave=True)
        if state.cpu[host] <= state.cpu_limit[host] and state.memory[host] <= state.memory_limit[host]:
            return


def _shed_order(state: State, host: Host, one: Operator) -> tuple[bool, float, list[str]]:
    """First those that free just enough, then the largest."""
    cpu = cpu_of(state.problem, one)
    enough = cpu >= state.cpu[host] - state.cpu_limit[host]
    return not enough, cpu if enough else -cpu, sorted(one.output)


def _shed_sending(state: State, prices: Prices, host: Host, tries: int) -> None:
    """Let others send what a host sends, or end the need for a copy."""
    flows = _outgoing(state, host)
    for stream, receiver in flows:
        if state.out[host] <= state.out_limit[host]:
            return
        _reroute(state, host, receiver, stream)
    for stream, receiver in flows[:tries]:
        if state.out[host] <= state.out_limit[host]:
            return
        if state.have[stream].get(receiver) == host:
            _drop_copy(state, prices, receiver, stream)


def _shed_copies(state: State, prices: Prices, host: Host, tries: int) -> None:
    """Move those operators away for which alone a host receives a stream."""
    copies = [s for s in _held(state, host) if isinstance(state.have[s].get(host), int)]
    copies.sort(key=lambda s: (-state.problem.rate(s), len(state.users[host, s]), sorted(s)))
    for stream in copies[:tries]:
        if state.into[host] <= state.into_limit[host]:
            return
        _drop_copy(state, prices, host, stream)


MOST_USERS = 3
"""Of a copy that is worth the moves of all who use it."""


def _drop_copy(state: State, prices: Prices, host: Host, stream: Stream) -> bool:
    users = state.users[host, stream]
    if len(users) > MOST_USERS or not all(isinstance(user, Operator) for user in users):
        return False
    mark = state.mark()
    for one in sorted((u for u in users if isinstance(u, Operator)), key=lambda u: sorted(u.output)):
        if one in state.running[host] and not remake(state, prices, host, one, one, leave=True):
            state.undo_to(mark)
            return False
    return True


def _outgoing(state: State, host: Host) -> list[tuple[Stream, Host]]:
    """What a host sends, the widest first."""
    found = [
        (stream, user)
        for stream in _held(state, host)
        for user in state.users[host, stream]
        if isinstance(user, int) and user != DELIVERY
    ]
    return sorted(found, key=lambda f: (-state.problem.rate(f[0]), sorted(f[0]), f[1]))


def _held(state: State, host: Host) -> list[Stream]:
    return list(state.held[host])


def _reroute(state: State, sender: Host, receiver: Host, stream: Stream) -> bool:
    rate = state.problem.rate(stream)
    for other in sorted(state.have[stream], key=lambda h: (state.out[h], h)):
        if other in (sender, receiver) or not state.can_send(other, receiver, rate):
            continue
        if not _comes_through(state, stream, other, receiver):
            state.unsend(sender, receiver, stream)
            state.send(other, receiver, stream)
            return True
    return False


def _comes_through(state: State, stream: Stream, host: Host, through: Host) -> bool:
    """Whether what a host has of a stream passed another host before."""
    source = state.have[stream].get(host)
    while isinstance(source, int):
        if source == through:
            return True
        source = state.have[stream].get(source)
    return False
