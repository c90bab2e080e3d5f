"""Ours: a low maximum load with no more connections than grouping needs.

    cut the plans into few, even pieces (`cutting`), pack the pieces on the sites; and the paper's two
    patterns, as more starts -> improve each by moving operators and pieces -> the best

Limits of sites and links come first, then connections up to those allowed, then load (`draft.Score`). Since
grouping is one of the starts and nothing is ever made worse, the answer has no more connections than
grouping's, and no higher load, on every problem where grouping keeps the limits. Where the plans are trees,
the sites are alike and grouping makes no more pieces than there are sites, the cut alone is optimal. Where
there are few tables, all are looked at, and the answer is the lowest load that these connections allow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product

from headrace.planners.distribution.cutting import lightest_limit
from headrace.planners.distribution.draft import Allowed, Draft, Score, least_load
from headrace.planners.distribution.patterns import NOBODY, grouping, round_robin, sites_to_use
from headrace.planners.distribution.problem import Problem, Site
from headrace.planners.distribution.usage import ROUNDING, usage

MOST_ROUNDS = 2_000
MOST_TABLES = 20_000
"""With more than that, they are not all looked at."""
MOST_CUTS_TRIED = 12
MOST_STARTS = 5
MOST_IN_TURN = 40
"""With more operators than that, round robin is no start: too many connections have to be undone."""
MOST_IN_PAIRS = 120
"""With more operators than that, two at a time are not exchanged, which grows with the square, and the first
move that helps is taken instead of the best."""


def balanced(problem: Problem, running: Mapping[str, int] = NOBODY) -> dict[str, str]:
    """No more connections than grouping makes in total, unless limits ask for it; nor at the busiest site,
    unless that would keep the load as high as grouping's or round robin's, or a site overloaded. `running`:
    operators of each site that are not in this problem, for those two."""
    return _found(problem, running, few=False)


def balanced_or_best(problem: Problem, running: Mapping[str, int] = NOBODY) -> dict[str, str]:
    """Where there are few tables, the best of all of them by the same rules. It takes up to a second, so what
    decides again and again does without."""
    return _found(problem, running, few=len(problem.alive) ** len(problem.operators) <= MOST_TABLES)


def _found(problem: Problem, running: Mapping[str, int], *, few: bool) -> dict[str, str]:
    sites = sites_to_use(problem)
    grouped = grouping(problem, running)
    used = usage(problem, grouped)
    turns = round_robin(problem, running)
    starts = [grouped, *_packed(problem, sites, used.connections.between)]
    if len(problem.operators) <= MOST_IN_TURN:
        starts.append(turns)
    total = used.connections.total
    score, table = _searched(problem, starts, Allowed(total, used.max_connections), few=few)
    wanted = min(used.max_load, usage(problem, turns).max_load) * (1 - ROUNDING)
    least = least_load(problem) * (1 + 2 * ROUNDING)
    if score.max_load < max(min(wanted, 1 + 2 * ROUNDING), least):
        return table
    other, looser = _searched(problem, starts, Allowed(total, total), few=few)
    keeps = other.beyond <= score.beyond and other.too_many <= score.too_many
    better = keeps and other.max_load < score.max_load * (1 - ROUNDING)
    return looser if better else table


def _searched(
    problem: Problem, starts: Sequence[dict[str, str]], allowed: Allowed, *, few: bool
) -> tuple[Score, dict[str, str]]:
    """The best table reached from grouping, which comes first, and from the most promising of the others.
    Where there are few tables, the best of all, unless it is plain that none has a lower load."""
    drafts = [Draft(problem, problem.alive, start, allowed) for start in starts]
    drafts[1:] = sorted(drafts[1:], key=lambda draft: draft.score().key())[: MOST_STARTS - 1]
    best: tuple[Score, Draft] | None = None
    for draft in drafts:
        score = improve(draft)
        if best is None or score.better(best[0]):
            best = score, draft
    assert best is not None
    score, draft = best
    if few and not (score.tight and score.max_load <= draft.least_load * (1 + ROUNDING)):
        return _best_of_all(draft)
    return score, draft.table()


def _best_of_all(draft: Draft) -> tuple[Score, dict[str, str]]:
    """Neighbouring tables differ in little, so that each takes a move or two."""
    score, table = draft.score(), draft.table()
    for chosen in product(range(len(draft.sites)), repeat=len(draft.at)):
        for i, site in enumerate(chosen):
            if draft.at[i] != site:
                draft.move((i,), site)
        found = draft.score()
        if found.better(score):
            score, table = found, draft.table()
    return score, table


def improve(draft: Draft) -> Score:
    """Move pieces until no move makes it better; the score reached."""
    score, turn = draft.score(), 0
    for _ in range(MOST_ROUNDS):
        found = _best_move(draft, score, turn)
        if found is None:
            break
        if len(draft.at) > MOST_IN_PAIRS:
            turn = draft.at[found[1][0][0][0]]
        for operators, target in found[1]:
            draft.move(operators, target)
        score = found[0]
    return score


Moves = tuple[tuple[tuple[int, ...], int], ...]
"""Some moves at once: operators, and the site they go to."""


def _best_move(draft: Draft, score: Score, turn: int) -> tuple[Score, Moves] | None:
    """Exchanges are only looked at where no single move helps, for there are many more of them, and not where
    the load cannot fall any more. `turn`: the site to begin with. Where the first move that helps is taken,
    that is the one which the last came from, or sites that nothing can leave are asked again every time."""
    holding = _holding(draft, score)
    for kind in (_moves, _exchanges):
        if kind is _exchanges and score.max_load <= draft.least_load * (1 + ROUNDING):
            break
        best: tuple[Score, Moves] | None = None
        for moves in kind(draft, holding, turn):
            if score.tight and _overfills(draft, score, moves):
                continue
            found = _tried(draft, moves)
            if found.better(best[0] if best else score):
                best = found, moves
                if len(draft.at) > MOST_IN_PAIRS:
                    break
        if best is not None:
            return best
    return None


def _overfills(draft: Draft, score: Score, moves: Moves) -> bool:
    """Whether a target would be fuller than the fullest site is now, by the cpu of operators alone. Most
    moves are left out by that, at a fraction of the price of trying them."""
    more = dict.fromkeys(range(len(draft.sites)), 0.0)
    for group, target in moves:
        weight = sum(draft.weights[i] for i in group)
        more[target] += weight
        more[draft.at[group[0]]] -= weight
    return any(
        (draft.cpu[site] + weight) / draft.sites[site].cpu > score.max_load * (1 + ROUNDING)
        for site, weight in more.items()
        if weight > 0
    )


def _tried(draft: Draft, moves: Moves) -> Score:
    back = [(i, draft.at[i]) for group, _ in moves for i in group]
    for group, target in moves:
        draft.move(group, target)
    found = draft.score()
    for i, site in back:
        draft.move((i,), site)
    return found


def _moves(draft: Draft, holding: set[int], turn: int) -> Iterator[Moves]:
    """One operator, or a part that hangs together, from the sites that hold the score up."""
    for source in sorted(holding, key=lambda site: (site - turn) % len(draft.sites)):
        own = [i for i, at in enumerate(draft.at) if at == source]
        parts = dict.fromkeys(frozenset(part) for i in own for part in ({i}, *_parts(draft, i)))
        for part in parts:
            group = tuple(sorted(part))
            for target in range(len(draft.sites)):
                if target != source:
                    yield ((group, target),)


def _parts(draft: Draft, i: int) -> Iterable[set[int]]:
    """The whole piece of an operator, and what hangs on it when one neighbour is taken off: moving that
    shifts a cut and makes no new one."""
    yield draft.piece(i)
    for other in draft.neighbours[i]:
        if draft.at[other] == draft.at[i]:
            yield draft.piece(i, without=other)


def _exchanges(draft: Draft, holding: set[int], turn: int) -> Iterator[Moves]:
    if len(draft.at) > MOST_IN_PAIRS:
        return
    for i, source in enumerate(draft.at):
        if source in holding:
            for j, target in enumerate(draft.at):
                if target != source:
                    yield ((i,), target), ((j,), source)


def _holding(draft: Draft, score: Score) -> set[int]:
    """The sites that something must leave for the score to fall: the busiest ones, or, where limits are
    passed, any."""
    if score.beyond > 0 or score.too_many > 0:
        return set(range(len(draft.sites)))
    loads = [cpu / site.cpu for cpu, site in zip(draft.cpu, draft.sites, strict=True)]
    top = max(loads)
    return {i for i, load in enumerate(loads) if load >= top * (1 - ROUNDING)}


def _packed(problem: Problem, sites: Sequence[Site], more: int) -> Iterator[dict[str, str]]:
    """Pieces on sites, for one piece a site and for more; the heaviest piece goes first, to where the load
    stays lowest."""
    if not problem.operators:
        return
    weights = [one.cpu + problem.row_cpu * problem.rows_in[one.id] for one in problem.operators]
    seen: set[int] = set()
    for most in range(len(sites), len(sites) + min(MOST_CUTS_TRIED, more + 1)):
        pieces = lightest_limit(problem, weights, most)
        if len(pieces) not in seen:
            seen.add(len(pieces))
            yield _pack(problem, sites, pieces)


def _pack(problem: Problem, sites: Sequence[Site], pieces: list[list[str]]) -> dict[str, str]:
    def weight(piece: list[str]) -> float:
        return sum(problem.operator[name].cpu for name in piece)

    cpu = {site.id: site.cpu_other for site in sites}
    table: dict[str, str] = {}
    for piece in sorted(pieces, key=weight, reverse=True):
        target = min(sites, key=lambda site: (cpu[site.id] + weight(piece)) / site.cpu)
        cpu[target.id] += weight(piece)
        table.update(dict.fromkeys(piece, target.id))
    return table
