"""Claims on moving and redistribution (section 6), judged as `claims` does."""

from __future__ import annotations

from headrace.experiments.distribution.cases import GROUPING, OFF, ROUND_ROBIN
from headrace.experiments.distribution.judgement import NOT_RUN, SAME, MakeClaim, gained, held
from headrace.experiments.distribution.tables import Policy, Tables, speed
from headrace.experiments.judged import Claim

_PAPER_MOVES = (17, 4)


def moving_is_free(tables: Tables) -> Claim:
    text = "A join moved back and forth does not lower the throughput"
    still, moving = tables.still(), tables.moving()
    if still is None or moving is None:
        return Claim(text, "section 6.3.1, Fig. 36", "the same", NOT_RUN, "not compared")
    found = speed(moving.curve) / max(speed(still.curve), 1e-9)
    pauses = f", pauses of {min(moving.pauses):.1f} to {max(moving.pauses):.1f} s" if moving.pauses else ""
    told = f"{found:.1%} of the rows, {moving.carried} moves{pauses}"
    why = (
        f"{moving.seconds / max(moving.moves, 1):.0f} s apart, not a minute. A pause delays rows; what was "
        "held up comes out after it."
    )
    verdict = held(found >= SAME and moving.carried == moving.moves, found >= 0.8)
    return Claim(text, "section 6.3.1, Fig. 36", "the same", told, verdict, why)


def nothing_lost(tables: Tables) -> Claim:
    text = "A move loses nothing"
    moving = tables.moving()
    if moving is None:
        return Claim(text, "section 6.3", "no data lost", NOT_RUN, "not compared")
    told = f"{moving.missing} of {moving.right + moving.missing:,} rows missing, {moving.extra} too many"
    return Claim(text, "section 6.3", "no data lost", told, held(not moving.missing and not moving.extra))


def doubles(tables: Tables) -> Claim:
    found = {p: _ends(tables, "20", 3, ROUND_ROBIN, p) for p in ("degradation", "balance", "pays")}
    best = found["degradation"]
    told = ", ".join(f"{policy} {gain:+.0%}" for policy, gain in found.items())
    return Claim(
        "20 operators at three sites: redistribution doubles what round robin does",
        "section 6.4, Fig. 37",
        "+100 % by degradation",
        f"{told} in 30 minutes (model)",
        gained(best, 1.0),
        _room(tables, "20", 3, ROUND_ROBIN),
    )


def _ends(tables: Tables, plan: str, sites: int, start: str, policy: str) -> float:
    """What a policy gains in the end."""
    off = tables.policy(plan, sites, start, OFF).end
    return tables.policy(plan, sites, start, policy).end / off - 1


def _room(tables: Tables, plan: str, sites: int, start: str) -> str:
    """At the rate of the model, what could be gained at all."""
    off = tables.policy(plan, sites, start, OFF)
    return (
        f"Without moving {off.before:.0%} of what comes in is done, so that {1 / off.before - 1:+.0%} is all "
        "that there is to gain at this rate, with which our own placement just keeps up."
    )


def helps_grouping(sites: int, figure: int) -> MakeClaim:
    def claim(tables: Tables) -> Claim:
        found = {p: _ends(tables, "40", sites, GROUPING, p) for p in ("degradation", "balance", "pays")}
        return Claim(
            f"40 operators at {sites} sites: redistribution gains 5 to 10 % even from grouping",
            f"section 6.4, Fig. {figure}",
            "+5 to +10 %",
            ", ".join(f"{policy} {gain:+.0%}" for policy, gain in found.items()) + " (model)",
            gained(found["degradation"], 0.05),
            _room(tables, "40", sites, GROUPING),
        )

    return claim


def fewer_moves(tables: Tables) -> Claim:
    def moves(start: str, policy: str) -> float:
        return tables.policy("40", 3, start, policy).moves

    turns, grouped = moves(ROUND_ROBIN, "degradation"), moves(GROUPING, "degradation")
    ours = (moves(ROUND_ROBIN, "pays"), moves(GROUPING, "pays"))
    paper = f"{_PAPER_MOVES[0]} and {_PAPER_MOVES[1]}"
    return Claim(
        "From grouping fewer moves are needed than from round robin",
        "section 6.4",
        paper,
        f"{turns:g} and {grouped:g} by degradation, {ours[0]:g} and {ours[1]:g} by ours (model)",
        held(turns > grouped, ours[0] > ours[1]),
        "40 operators at three sites, in 30 minutes.",
    )


def good_start(sites: int, figure: int) -> MakeClaim:
    def claim(tables: Tables) -> Claim:
        def end(start: str, policy: str) -> Policy:
            return tables.policy("40", sites, start, policy)

        turns = end(ROUND_ROBIN, "degradation").end
        grouped, plain = end(GROUPING, "degradation").end, end(GROUPING, OFF).end
        ours = end(ROUND_ROBIN, "pays").end
        return Claim(
            f"40 operators at {sites} sites: grouping is ahead of round robin, redistributed or not",
            f"section 6.4, Fig. {figure}",
            "a big advantage",
            f"{grouped:.1f} (unmoved {plain:.1f}) to {turns:.1f} of 30 minutes done (model)",
            held(min(grouped, plain) > turns, grouped > turns),
            f"Ours brings round robin to {ours:.1f}: with costs known, a bad start is made good in a round.",
        )

    return claim
