"""What the paper claims in sections 5 and 6, what we find, and whether it is the same; each by a rule that is
written here, in `claims_moving` or in `judgement`. What the model says is marked; the rest was measured."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from headrace.experiments.distribution.cases import (
    GROUPING,
    JOINS,
    LABELS,
    OURS,
    ROUND_ROBIN,
    SITES,
)
from headrace.experiments.distribution.claims_moving import (
    doubles,
    fewer_moves,
    good_start,
    helps_grouping,
    moving_is_free,
    nothing_lost,
)
from headrace.experiments.distribution.judgement import NOT_RUN, SAME, MakeClaim, gained, held
from headrace.experiments.distribution.tables import Run, Tables
from headrace.experiments.judged import Claim

MOST_SITES = SITES[-1]
_OUTSIDE = 7
"""Streams and results of the plan of 20 operators."""


# -- one site against several -------------------------------------------------------------------------


def same_throughput(plan: str, sites: int, text: str, where: str) -> MakeClaim:
    def claim(tables: Tables) -> Claim:
        one, many = tables.run(plan, 1, ROUND_ROBIN), tables.run(plan, sites, ROUND_ROBIN)
        if one is None or many is None:
            return Claim(text, where, "the same", NOT_RUN, "not compared")
        told = f"{_kept(one)} of what comes at 1 site, {_kept(many)} at {sites}"
        held_up = many.kept_up >= SAME * one.kept_up
        why = "Sites were far from full; what it costs to distribute is the next claim."
        return Claim(text, where, "the same", told, held(held_up), why)

    return claim


def _kept(run: Run) -> str:
    return f"{run.kept_up:.1%}"


def no_overhead(tables: Tables) -> Claim:
    text = "To distribute a plan takes no more than to run it at one site, even where the load is light"
    one, many = tables.run("5", 1, ROUND_ROBIN), tables.run("5", 5, ROUND_ROBIN)
    if one is None or many is None:
        return Claim(text, "abstract, section 5.2.1", "no overhead", NOT_RUN, "not compared")
    times = many.total / one.total
    told = f"{one.total:.2f} to {many.total:.2f} cores, {times:.1f} x"
    why = (
        "Measured on 5 operators at 40 rows a second. An operator is a job of its own there: its "
        "batches, its checkpoint and its channel cost more than the rows do."
    )
    return Claim(
        text, "abstract, section 5.2.1", "no overhead", told, held(times <= 1.05, times <= 1.25), why
    )


def more_sites(plan: str, pattern: str, paper: float, where: str) -> MakeClaim:
    def claim(tables: Tables) -> Claim:
        one, many = (tables.placement(plan, n, pattern).capacity for n in (1, MOST_SITES))
        text = f"{plan} operators by {LABELS[pattern]}: five sites do {paper:.0%} more than one"
        if not one:
            return Claim(text, where, f"+{paper:.0%}", "one site can do nothing", "holds")
        found = many / one - 1
        told = f"{found:+.0%} (model: {one:,.0f} to {many:,.0f} rows/s)"
        return Claim(text, where, f"+{paper:.0%}", told, gained(found, paper))

    return claim


def rises(plan: str) -> MakeClaim:
    def claim(tables: Tables) -> Claim:
        text = f"{plan} operators: throughput rises with every site more"
        steps = {
            pattern: [tables.placement(plan, n, pattern).capacity for n in SITES]
            for pattern in (ROUND_ROBIN, GROUPING)
        }
        up = {p: sum(b > a for a, b in pairwise(c)) for p, c in steps.items()}
        told = ", ".join(f"{LABELS[p]} on {count} of {len(SITES) - 1} steps" for p, count in up.items())
        whole = all(count == len(SITES) - 1 for count in up.values())
        ours = [tables.placement(plan, n, OURS).capacity for n in SITES]
        why = f"Ours: {', '.join(f'{one:,.0f}' for one in ours)} rows/s of each stream at 1 to 5 sites."
        return Claim(
            text,
            "section 5.2.2, Fig. 24, 25",
            "every step",
            f"{told} (model)",
            held(whole, any(up.values())),
            why,
        )

    return claim


def memory(tables: Tables) -> Claim:
    one, many = (tables.placement("80", n, GROUPING).state for n in (1, MOST_SITES))
    return Claim(
        "80 operators do not fit the memory of one site; of five sites each has a part of it",
        "section 5.2.2, Fig. 27, 28",
        "out of memory after 20 min",
        f"{one:,.0f} rows of state at one site, {many:,.0f} at the fullest of five (model)",
        held(many <= 0.5 * one, many < one),
        "Spark keeps state within the window and on disk; no site ran out of memory here.",
    )


def twice(tables: Tables) -> Claim:
    found = {
        (plan, pattern): _times(tables, plan, pattern)
        for plan in ("20", "40", "80")
        for pattern in (ROUND_ROBIN, GROUPING)
    }
    (plan, pattern), best = max(found.items(), key=lambda one: one[1])
    mine = max(_times(tables, plan, OURS) for plan in ("20", "40", "80"))
    return Claim(
        "Several sites do up to twice of what one does",
        "abstract, section 7",
        "2 x",
        f"up to {best:.1f} x ({plan} operators, {LABELS[pattern]}; model)",
        gained(best - 1, 1.0),
        f"Ours: up to {mine:.1f} x.",
    )


def _times(tables: Tables, plan: str, pattern: str) -> float:
    """What five sites do, against one; none where one can do nothing: that says nothing."""
    one, many = (tables.placement(plan, n, pattern).capacity for n in (1, MOST_SITES))
    return many / one if one else 0.0


# -- patterns -----------------------------------------------------------------------------------------


def connections(tables: Tables) -> Claim:
    found = {n: [tables.placement("20", n, p) for p in (ROUND_ROBIN, GROUPING)] for n in SITES if n > 1}
    less = {n: turns.connections - grouped.connections for n, (turns, grouped) in found.items()}
    told = ", ".join(f"{turns.connections:g} to {grouped.connections:g}" for turns, grouped in found.values())
    return Claim(
        "20 operators: grouping saves nine of round robin's connections",
        "section 5.1.3, Fig. 19, 20",
        "17 to 8",
        f"{told} at 2 to 5 sites (streams and results included)",
        held(max(less.values()) >= 9, min(less.values()) > 0),
    )


def connections_at_site(tables: Tables) -> Claim:
    turns = max(tables.placement("20", n, ROUND_ROBIN).busiest for n in SITES if n > 1)
    grouped = max(tables.placement("20", n, GROUPING).busiest for n in SITES if n > 1)
    return Claim(
        "20 operators: at most 5 connections at a site by grouping, up to 15 by round robin",
        "section 5.2.3",
        "5 and 15",
        f"{grouped:g} and {turns:g}",
        held(grouped <= 6 and turns >= 13, grouped < turns),
    )


def joins_together(tables: Tables) -> Claim:
    turns = [tables.placement("20", n, ROUND_ROBIN).joins for n in (2, 3, 4)]
    grouped = [tables.placement("20", n, GROUPING).joins for n in (2, 3, 4)]
    return Claim(
        "20 operators: round robin puts three of the five joins on one site, grouping spreads them",
        "section 5.2.3",
        "3 of 5 by round robin",
        f"{_listed(turns)} by round robin, {_listed(grouped)} by grouping, at 2 to 4 sites",
        held(min(turns) >= 3 and max(grouped) < 3, any(t > g for t, g in zip(turns, grouped, strict=True))),
        "Medians over drawn plans. Either pattern looks only at shapes; which one has luck depends on the "
        "order in which operators are listed.",
    )


def _listed(numbers: Sequence[float]) -> str:
    return ", ".join(f"{one:g}" for one in numbers)


def joins_in_a_row(tables: Tables) -> Claim:
    text = "Five joins at four sites: grouping does more than round robin"
    turns, grouped = (tables.placement(JOINS, 4, p).capacity for p in (ROUND_ROBIN, GROUPING))
    told = f"{grouped:,.0f} to {turns:,.0f} rows/s (model)"
    runs = [tables.run(JOINS, 4, p) for p in (ROUND_ROBIN, GROUPING, OURS)]
    why = ""
    if all(runs):
        cores = ", ".join(f"{run.total:.2f} ({run.busiest:.2f})" for run in runs if run)
        why = f"Measured, cores of all sites (of the busiest): {cores} by round robin, grouping and ours."
    return Claim(
        text, "section 5.2.3, Fig. 29", "better over time", told, held(grouped > turns, grouped == turns), why
    )


def grouping_wins(tables: Tables) -> Claim:
    pairs = {
        n: [tables.placement("20", n, p).capacity for p in (ROUND_ROBIN, GROUPING, OURS)]
        for n in SITES
        if n > 1
    }
    wins = sum(grouped > turns for turns, grouped, _ in pairs.values())
    told = ", ".join(f"{grouped:,.0f} to {turns:,.0f}" for turns, grouped, _ in pairs.values())
    ours = ", ".join(f"{one:,.0f}" for _, _, one in pairs.values())
    return Claim(
        "20 operators: grouping always wins over round robin",
        "section 5.2.3, Fig. 31",
        "always",
        f"{wins} of {len(pairs)}: {told} rows/s at 2 to 5 sites (model)",
        held(wins == len(pairs), wins > 0),
        f"Ours: {ours}. Grouping counts operators, and the joins nearest to the result cost most; it often "
        "has all of them at one site. Where connections are cheap beside joins, round robin is more even.",
    )


def drift_apart(tables: Tables) -> Claim:
    def gain(plan: str, sites: int) -> float:
        turns = max(tables.placement(plan, sites, ROUND_ROBIN).capacity, 1e-9)
        return tables.placement(plan, sites, GROUPING).capacity / turns - 1

    found = [gain("20", 4), gain("40", 4), gain("80", 5)]
    return Claim(
        "The more operators, the further grouping is ahead of round robin",
        "section 5.2.3, Fig. 32, 33",
        "rises",
        f"{', '.join(f'{one:+.0%}' for one in found)} with 20, 40, 80 operators (model)",
        held(0 < found[0] < found[1] < found[2], found[2] > found[0]),
    )


def connections_limit(tables: Tables) -> Claim:
    text = "What limits a site is the number of its connections, not rows nor operators"
    run = tables.run("20", 5, ROUND_ROBIN)
    if run is None or not tables.measured:
        return Claim(text, "abstract, section 4.4", "8 to 12 at a site", NOT_RUN, "not compared")
    prices = tables.prices
    # A connection between two sites has two ends; those of six streams and a result have one.
    share = min(1.0, (2 * run.connections - _OUTSIDE) * prices.connection / max(run.total, 1e-9))
    filled = f"{1 / prices.connection:.0f} fill a site" if prices.connection else "nothing beside the rest"
    told = f"an end of a connection takes {prices.connection:.3f} cores: {filled}"
    why = (
        f"By the fitted prices about {share:.0%} of what 20 operators at five sites by round robin take "
        f"is for connections, whatever flows over them; idle sites take {5 * prices.idle:.2f} cores."
    )
    return Claim(
        text,
        "abstract, section 4.4",
        "8 to 12 at a site",
        told,
        held(share >= 0.5, share >= 0.25),
        why,
    )


CLAIMS: Sequence[MakeClaim] = (
    same_throughput(
        "5", 5, "5 operators give as many rows from five sites as from one", "section 5.2.1, Fig. 21"
    ),
    same_throughput(
        JOINS, 4, "Five joins with small windows do, too, from four sites", "section 5.2.1, Fig. 22, 23"
    ),
    no_overhead,
    more_sites("20", ROUND_ROBIN, 0.25, "section 5.2.2, Fig. 24"),
    more_sites("20", GROUPING, 0.25, "section 5.2.2, Fig. 25"),
    rises("20"),
    more_sites("40", GROUPING, 0.33, "section 5.2.2, Fig. 26"),
    memory,
    twice,
    connections,
    connections_at_site,
    joins_together,
    joins_in_a_row,
    grouping_wins,
    drift_apart,
    connections_limit,
    moving_is_free,
    nothing_lost,
    doubles,
    helps_grouping(2, 38),
    helps_grouping(3, 39),
    fewer_moves,
    good_start(2, 38),
    good_start(3, 39),
)


def judge(tables: Tables) -> tuple[Claim, ...]:
    return tuple(claim(tables) for claim in CLAIMS)
