"""Operators of sites that do not answer, put elsewhere: such a site runs nothing, so no rule holds them.

What hangs together goes together, the dearest first, to where the fullest site stays emptiest. Where that
would fill a site too far or pass a limit its operators go one by one, and where that passes a limit, together
all the same. Sites that the rules allow come first, then all that answer. If some then fit nowhere, all that
is lost is placed at once: at one site, or as if nothing ran yet (`anew`). If limits are passed by that too,
what fits nowhere goes where they are passed least: a site that is beyond a limit does more than one that is
gone.

On the way, connections to operators that are still at lost sites do not count: they are opened where these
go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from headrace.planners.distribution.anew import surrounded
from headrace.planners.distribution.balanced import balanced
from headrace.planners.distribution.running import Running
from headrace.units import first_of

_SHOWN = 8


def evacuate(running: Running) -> str:
    """Which operators were moved beyond limits, in words; empty: none."""
    lost = [name for name in running.problem.operator if running.table[name] not in running.on]
    if lost and _by_pieces(running.trial()):
        for table in _at_once(running, lost):
            if not running.breaks([((name,), site) for name, site in table.items()], without_lost=True):
                _apply_all(running, table)
                return ""
    waiting = _by_pieces(running)
    for name in waiting:
        _forced(running, name)
    return f"no site has room for {first_of(waiting, _SHOWN)}." if waiting else ""


def _by_pieces(running: Running) -> list[str]:
    """The operators that fit nowhere."""
    waiting: list[str] = []
    for piece in sorted(_pieces(running), key=lambda piece: -_cpu(running, piece)):
        waiting += _moved_piece(running, piece)
    return [name for name in waiting if not _moved(running, (name,))]


def _at_once(running: Running, lost: Sequence[str]) -> Iterator[dict[str, str]]:
    """Tables of all that is lost."""
    for targets in dict.fromkeys((tuple(running.targets), tuple(running.costs))):
        for _, target in _ranked(running, lost, targets):
            yield dict.fromkeys(lost, target)
        if targets:
            yield balanced(surrounded(running.problem, running.table, lost, targets))


def _pieces(running: Running) -> Iterator[tuple[str, ...]]:
    """What hangs together at one lost site, in the order of the problem."""
    left = {name: site for name, site in running.table.items() if site not in running.on}
    for one in running.problem.operators:
        if one.id in left:
            site = left[one.id]
            piece = running.piece(one.id, {name for name, at in left.items() if at == site})
            yield tuple(name for name in running.problem.operator if name in piece)
            left = {name: at for name, at in left.items() if name not in piece}


def _cpu(running: Running, names: Sequence[str]) -> float:
    return sum(running.problem.operator[name].cpu for name in names)


def _moved_piece(running: Running, piece: Sequence[str]) -> list[str]:
    """The operators of it that fit nowhere."""
    if _moved(running, piece, most=max(running.rules.full, running.top)):
        return []
    alone = _one_by_one(running, piece)
    left = [name for name in piece if name not in alone]
    if left and _moved(running, piece):
        return []
    _apply_all(running, alone)
    return left


def _one_by_one(running: Running, piece: Sequence[str]) -> dict[str, str]:
    """Where each would go if all go alone, again and again while some fit: one that comes may close a
    connection. Nothing is changed."""
    found: dict[str, str] = {}
    left = sorted(piece, key=lambda name: -running.problem.operator[name].cpu)
    while True:
        before = len(found)
        for name in [name for name in left if name not in found]:
            target = _refuge(running, (name,))
            if target is not None:
                found[name] = target
                running.put([((name,), target)])
        if len(found) == before:
            break
    back = {name: running.problem.table[name] for name in found}
    running.put([((name,), site) for name, site in back.items()])
    return found


def _moved(running: Running, names: Sequence[str], most: float | None = None) -> bool:
    target = _refuge(running, names, most)
    if target is not None:
        _apply(running, names, target)
    return target is not None


def _apply(running: Running, names: Sequence[str], target: str, more: str = "") -> None:
    rows = sum(running.problem.rows_in[name] for name in names)
    running.apply(tuple(names), target, rows, f"{running.table[names[0]]} does not answer{more}")


def _apply_all(running: Running, table: Mapping[str, str]) -> None:
    """Those that leave one site for another together."""
    groups: dict[tuple[str, str], list[str]] = {}
    for name in running.problem.operator:
        if name in table:
            groups.setdefault((running.table[name], table[name]), []).append(name)
    for (_, target), names in groups.items():
        _apply(running, names, target)


def _refuge(running: Running, names: Sequence[str], most: float | None = None) -> str | None:
    """Where they pass no limit and, if asked, fill no site further than to `most`."""
    allowed = running.targets
    others = [site for site in running.costs if site not in allowed]
    for targets in (allowed, others):
        for top, target in _ranked(running, names, targets):
            full = most is not None and top > most
            if not full and not running.breaks([(names, target)], without_lost=True):
                return target
    return None


def _ranked(running: Running, names: Sequence[str], targets: Sequence[str]) -> list[tuple[float, str]]:
    """Sites with the cost of the fullest one if these go there, the best first; of equals the one that they
    hang together with."""
    found = []
    for place, target in enumerate(targets):
        after = running.tried([(names, target)]).costs
        top = max(after[site] if site in after else running.costs[site].cost for site in running.costs)
        removed = running.connections_removed(names, target)
        found.append((round(top, 9), -removed, round(after[target], 9), place, target))
    return [(one[0], one[-1]) for one in sorted(found)]


def _forced(running: Running, name: str) -> None:
    """To where limits are passed least."""
    ranked = [target for _, target in _ranked(running, (name,), list(running.costs))]
    allowed = running.targets
    target = min(ranked, key=lambda site: (running.beyond([((name,), site)]), site not in allowed))
    broken = running.breaks([((name,), target)], without_lost=True)
    _apply(running, (name,), target, f" and no site has room: {broken}")
