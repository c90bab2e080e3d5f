"""Plans that were not chosen, and why: the runners-up, and the two that do without federation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from headrace.plan.federated import Engine
from headrace.planners.federation.compare import Rank, rank
from headrace.planners.federation.cost import bottleneck
from headrace.planners.federation.fronts import Done
from headrace.planners.federation.phase_two import allowed_engines, engines_of, search
from headrace.planners.federation.problem import FEASIBLE, Loser, Options, Part, Plan, Split
from headrace.planners.federation.recount import Recount

FEW = 8
"""Plans of no more operators are all looked at, so that their runners-up are exact. Of larger ones the
runners-up are the best of what was compared at the root and what differs from the chosen plan in one
operator."""
_SAME = 1e-9
_MOST_NAMES = 4
_Engines = tuple[Engine, ...]


def losers(
    plan: Plan, options: Options, recount: Recount, chosen: Split, seen: Iterable[Done]
) -> tuple[Loser, ...]:
    """The best first."""
    if options.runners < 1:
        return ()
    limit = options.limit

    def ranked(split: Split) -> tuple[Rank, _Engines]:
        return rank(split.bottleneck, split.utilisation, limit), split.engines

    others = {recount.split(e) for e in _candidates(plan, options, chosen, seen) if e != chosen.engines}
    found = sorted(others, key=ranked)[: options.runners]
    pure = (recount.split(e) for e in _pure(plan) if e != chosen.engines)
    found += [split for split in pure if split not in found]
    told = sorted(found, key=ranked)
    return tuple(Loser(split, _why(plan, options, chosen, split, limit)) for split in told)


def _why(plan: Plan, options: Options, chosen: Split, split: Split, limit: float) -> str:
    pairs = zip(plan.operators, split.engines, strict=True)
    if any(engine not in allowed_engines(operator.engine, options.engine) for operator, engine in pairs):
        return f"ruled out: only {options.engine} was asked for"
    return why_lost(chosen, split, plan.cores, limit)


def why_lost(chosen: Split, split: Split, cores: float | None, limit: float = FEASIBLE) -> str:
    """In the order of Definition 1."""
    if chosen.bottleneck <= limit < split.bottleneck:
        return f"infeasible: {_worst(split, cores)}"
    if chosen.bottleneck > limit:
        if split.bottleneck <= limit:
            return "feasible, but the search in pieces did not see it"
        if split.bottleneck > chosen.bottleneck * (1 + _SAME):
            return f"slower: {_slower(chosen, split, cores)}"
        if split.bottleneck < chosen.bottleneck * (1 - _SAME):
            faster, than = _told_apart(split.bottleneck, chosen.bottleneck)
            return f"faster (C_b {faster} instead of {than}), but the search in pieces did not see it"
    more = split.utilisation - chosen.utilisation
    if abs(more) <= chosen.utilisation * _SAME:
        return _same_sum(chosen, split)
    if more < 0 and chosen.bottleneck > limit:
        return f"as slow, and takes {-more:.3g} cores less, which Definition 1 leaves out of account"
    if more < 0:
        return f"takes {-more:.3g} cores less, but the search in pieces did not see it"
    share = f", {more / chosen.utilisation:.0%}" if chosen.utilisation else ""
    return f"takes {more:.3g} cores more ({split.utilisation:.3g}{share}): {_dearest(chosen, split)}"


def _same_sum(chosen: Split, split: Split) -> str:
    if split.bottleneck <= chosen.bottleneck * (1 + _SAME):
        return "costs the same"
    larger, smaller = _told_apart(split.bottleneck, chosen.bottleneck)
    return f"takes as much, with C_b {larger} instead of {smaller}"


def _slower(chosen: Split, split: Split, cores: float | None) -> str:
    """Of a part against a part, of a machine against a machine; else C_b, which both have."""
    larger, smaller = _told_apart(split.bottleneck, chosen.bottleneck)
    shared = _is_shared(split, cores)
    if shared != _is_shared(chosen, cores):
        return f"{_worst(split, cores)}: C_b {larger} against {smaller}"
    if shared:
        larger, smaller = _told_apart(split.utilisation, chosen.utilisation)
    return f"{_worst(split, cores, larger)}, against {smaller}"


def _is_shared(split: Split, cores: float | None) -> bool:
    """Whether all parts together are the bottleneck, and no one alone."""
    return cores is not None and split.utilisation / cores > max(part.u for part in split.parts)


def _worst(split: Split, cores: float | None, figure: str = "") -> str:
    part = max(split.parts, key=lambda one: one.u)
    if cores is not None and _is_shared(split, cores):
        return f"it takes {figure or _told_apart(split.utilisation, cores)[0]} of {cores:g} cores"
    return f"{part_name(part)} takes {figure or _told_apart(part.u, 1.0)[0]} of one core"


def _told_apart(one: float, other: float) -> tuple[str, str]:
    """With as many digits as it takes."""
    for digits in range(3, 18):
        pair = f"{one:.{digits}g}", f"{other:.{digits}g}"
        if pair[0] != pair[1]:
            break
    return pair


def part_name(part: Part) -> str:
    where = "Spark" if part.engine is Engine.SPARK else "DuckDB"
    names = ", ".join(part.operators)
    if len(part.operators) > _MOST_NAMES:
        names = f"{part.operators[0]} ... {part.operators[-1]} ({len(part.operators)} operators)"
    return f"{names} on {where}"


def _dearest(chosen: Split, split: Split) -> str:
    """The kind of work that grew most."""
    before, after = _kinds(chosen), _kinds(split)
    kind = max(after, key=lambda one: after[one] - before[one])
    larger, smaller = _told_apart(after[kind], before[kind])
    return f"{kind} {larger} instead of {smaller}"


def _kinds(split: Split) -> dict[str, float]:
    on = {engine: [part for part in split.parts if part.engine is engine] for engine in Engine}
    duckdb = on[Engine.DUCKDB]
    return {
        "work on Spark": sum(part.u for part in on[Engine.SPARK]),
        "work in DuckDB": sum(part.work for part in duckdb),
        "statements": sum(part.statement for part in duckdb),
        "transfer into DuckDB": sum(part.transfer_in for part in duckdb),
        "transfer out of DuckDB": sum(part.transfer_out for part in duckdb),
    }


def _candidates(plan: Plan, options: Options, chosen: Split, seen: Iterable[Done]) -> set[_Engines]:
    few = len(plan.operators) <= FEW
    if few:
        seen = search(plan, Options(options.feasibility, options.engine, "none")).complete
    found = set(_best_of(plan, options, seen))
    if not few:
        for i, operator in enumerate(plan.operators):
            for engine in allowed_engines(operator.engine, options.engine):
                found.add((*chosen.engines[:i], engine, *chosen.engines[i + 1 :]))
    return found


def _best_of(plan: Plan, options: Options, seen: Iterable[Done]) -> Iterator[_Engines]:
    """As many as are told, and one that may be the chosen plan itself."""
    limit = options.limit

    def ranked(done: Done) -> tuple[Rank, int]:
        return rank(bottleneck(done[0], done[1], plan.cores), done[1], limit), done[2]

    by_bits = {done[2]: done for done in seen}
    for done in sorted(by_bits.values(), key=ranked)[: options.runners + 1]:
        yield engines_of(done[2], len(plan.operators))


def _pure(plan: Plan) -> Iterable[_Engines]:
    """All on Spark and all on DuckDB, but for operators that must be elsewhere."""
    return dict.fromkeys(tuple(operator.engine or engine for operator in plan.operators) for engine in Engine)
