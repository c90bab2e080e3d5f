"""What the paper claims in section 8, what we find, and whether it is the same; each by a rule that is
written here.

Factors hold where ours are at least the paper's, partly at half of them or more. Which plan is chosen is
compared with the plan that the paper names. Maxima beyond the highest rate are compared by what two rates
foretell (`foretold`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headrace.experiments.federation.cases import DUCKDB, SELECT, SPARK, TABLE_2
from headrace.experiments.federation.tables import CHOSEN, AtRate, Maximum, Tables
from headrace.experiments.judged import Claim, Verdict

MakeClaim = Callable[[Tables], Claim]
NOT_RUN = "not run"
FACTOR, PIECES = 8.0, 30.0
NEAR = 5.0
"""% that a throughput may fall short of the best."""


def held(whole: bool, part: bool = False) -> Verdict:
    return "holds" if whole else ("partly" if part else "does not hold")


def reach(one: Maximum | None) -> float | None:
    """The highest throughput: beyond the tested rates where it kept up with all of them, and the most that it
    can be where the next rate was not measured."""
    if one is None or not one.rows:
        return None
    return max(one.rows, one.foretold or 0.0) if one.at_least else one.ceiling or one.rows


def told(one: Maximum | None) -> str:
    found = reach(one)
    if one is None or found is None:
        return NOT_RUN
    if one.ceiling:
        return f"{one.rows:,.0f} to {one.ceiling:,.0f}"
    return f"~{found:,.0f}" if found > one.rows else (">= " if one.at_least else "") + f"{one.rows:,.0f}"


def counts(tables: Tables) -> Claim:
    paper = [plans for plans, _, _ in TABLE_2.values()]
    ours = [one.plans_on_its_tree for one in tables.joins]
    return Claim(
        "With its pruning, phase two examines 11, 312 and 8,411 plans of the 2-, 5- and 8-way join",
        "section 8.2, Table 2",
        ", ".join(f"{n:,}" for n in paper),
        ", ".join(f"{n:,}" for n in ours),
        held(ours == paper),
        "On the join trees that these counts give away; our phase one makes balanced trees, on which the "
        f"same pruning examines {', '.join(f'{one.plans_by_paper:,}' for one in tables.joins)}. "
        f"Our pruning examines {', '.join(f'{one.plans:,}' for one in tables.joins)}.",
    )


def decomposition(tables: Tables) -> Claim:
    large = tables.joins[-1]
    ours = large.phase_two_by_paper / max(large.decomposed_by_paper, 1e-6)
    return Claim(
        "Pieces of at most 15 operators cut the time of the 8-way join from a minute to about 2 s",
        "section 8.2",
        f"about {PIECES:g} x",
        f"{large.phase_two_by_paper:,.0f} to {large.decomposed_by_paper:,.1f} ms, {ours:.0f} x",
        held(ours >= PIECES, ours >= PIECES / 2),
        f"With the paper's pruning, phase two. Ours takes {large.phase_two:.3g} ms without pieces.",
    )


def same_plan(query: str) -> MakeClaim:
    def claim(tables: Tables) -> Claim:
        found = tables.of(query)
        return Claim(
            f"{query}: selections in the stream engine, the rest in the database, at every rate",
            "section 8.3, Fig. 5",
            "all rates",
            _at(found, lambda one: _is(tables, one, SELECT)),
            held(all(_is(tables, one, SELECT) for one in found)) if found else "not compared",
        )

    return claim


def _is(tables: Tables, one: AtRate, name: str) -> bool:
    names = (point.names for point in tables.points if (point.query, point.split) == (one.query, one.split))
    return name in next(names, ())


def _at(found: Sequence[AtRate], true: Callable[[AtRate], bool]) -> str:
    if not found:
        return NOT_RUN
    count = sum(map(true, found))
    return "all rates" if count == len(found) else f"{count} of {len(found)} rates"


def against_spark(query: str) -> MakeClaim:
    def claim(tables: Tables) -> Claim:
        mine, spark = tables.maximum(query, CHOSEN), tables.maximum(query, SPARK)
        top, low = reach(mine), reach(spark)
        times = top / low if top and low else None
        return Claim(
            f"{query}: the federated plan has about 8 times the throughput of the stream engine alone",
            "section 8.3, Fig. 5",
            f"{FACTOR:g} x",
            NOT_RUN if times is None else f"{times:.1f} x ({told(mine)} to {told(spark)} rows/s)",
            "not compared" if times is None else held(times >= FACTOR, times >= FACTOR / 2),
        )

    return claim


def against_duckdb(query: str) -> MakeClaim:
    def claim(tables: Tables) -> Claim:
        mine, duck = tables.maximum(query, CHOSEN), tables.maximum(query, DUCKDB)
        top, low = reach(mine), reach(duck)
        known = bool(top and low)
        # Where both keep up with all rates and nothing is foretold, what they take is all that differs.
        dearer = bool(mine and duck and duck.at_least and (duck.cpu or 0) > (mine.cpu or 0))
        cpu = f", {duck.cpu:.2g} to {mine.cpu:.2g} cores" if dearer and mine and duck else ""
        return Claim(
            f"{query}: the database alone has a lower throughput than the federated plan",
            "section 8.3, Fig. 5",
            "lower",
            f"{told(duck)} to {told(mine)} rows/s{cpu}" if known else NOT_RUN,
            held((low or 0) < (top or 0), dearer) if known else "not compared",
        )

    return claim


def changes(query: str, when: str) -> MakeClaim:
    def claim(tables: Tables) -> Claim:
        found = tables.of(query)
        splits = list(dict.fromkeys(one.split for one in found))
        ours = f"{splits[0]} at all rates" if len(splits) == 1 else " -> ".join(splits) or NOT_RUN
        return Claim(
            f"{query}: the best plan changes with the rate, {when}",
            "section 8.3, Fig. 5",
            "changes",
            ours,
            held(len(splits) > 1) if found else "not compared",
            _why_not_changed(tables, query) if len(splits) == 1 else "",
        )

    return claim


def _why_not_changed(tables: Tables, query: str) -> str:
    """What the planner believes at the highest rate that was run."""
    rates = [point.rate for point in tables.points if point.query == query]
    last = [point for point in tables.points if point.query == query and point.rate == max(rates)]
    listed = ", ".join(f"{'/'.join(point.names) or point.split} {point.believed:.3g}" for point in last)
    return f"Cores that the planner believes are needed at {max(rates):,} rows/s: {listed}."


def spark_faster(tables: Tables) -> Claim:
    three, four = (tables.maximum(query, SPARK) for query in ("cq3", "cq4"))
    low, high = reach(three), reach(four)
    known = bool(low and high)
    return Claim(
        "The stream engine alone keeps up with much higher rates of cq4 than of cq3 (here: 1.5 times)",
        "section 8.3, Fig. 5",
        "much higher",
        f"{told(four)} to {told(three)} rows/s" if known else NOT_RUN,
        held((high or 0) >= 1.5 * (low or 0), (high or 0) > (low or 0)) if known else "not compared",
        "Spark keeps a maximum of each window as it keeps a sum: neither is computed from the window's rows.",
    )


def spark_best_for_five(tables: Tables) -> Claim:
    spark, others = (
        tables.maximum("cq5", SPARK),
        [m for m in tables.maxima if m.query == "cq5" and m.label != SPARK],
    )
    mine, rest = reach(spark), [one for one in map(reach, others) if one]
    known = bool(mine and rest)
    return Claim(
        "cq5: the stream engine alone has a higher throughput than any federated plan",
        "section 8.3, Fig. 5",
        "highest",
        f"{told(spark)} rows/s, others up to {max(rest):,.0f}" if known else NOT_RUN,
        held((mine or 0) > max(rest)) if known else "not compared",
    )


def check_matters(query: str, *, differs: bool) -> MakeClaim:
    def claim(tables: Tables) -> Claim:
        found = tables.of(query)
        other = [one for one in found if one.split != one.unchecked]
        worse = [one for one in other if one.throughput_unchecked < one.throughput]
        told_ours = (
            "the same plans"
            if not other
            else f"other plans at {len(other)} rates, {len(worse)} of them worse"
        )
        text = "without the feasibility check a worse plan is chosen at high rates" if differs else (
            "the choice is the same with and without the feasibility check"
        )  # fmt: skip
        return Claim(
            f"{query}: {text}",
            "section 8.4, Fig. 6",
            "other plans" if differs else "the same plans",
            told_ours if found else NOT_RUN,
            held(bool(worse) if differs else not other, bool(other) and differs) if found else "not compared",
        )

    return claim


def infeasible(tables: Tables) -> Claim:
    behind = [one for one in tables.at_rates if one.best_throughput < one.rate]
    right = [one for one in behind if one.short <= NEAR]
    return Claim(
        "Where no plan keeps up, the choice is the one with the highest throughput",
        "section 8.3",
        "every query",
        f"{len(right)} of {len(behind)} such cases" if behind else "some plan keeps up with every rate",
        held(len(right) == len(behind)) if behind else "not compared",
    )


CLAIMS: Sequence[MakeClaim] = (
    counts,
    decomposition,
    same_plan("cq1"),
    same_plan("cq2"),
    against_spark("cq1"),
    against_spark("cq2"),
    against_duckdb("cq1"),
    against_duckdb("cq2"),
    changes("cq3", "at 20,000 rows/s"),
    against_duckdb("cq3"),
    changes("cq4", "as that of cq3"),
    spark_faster,
    changes("cq5", "at 10,000 rows/s"),
    spark_best_for_five,
    changes("cq6", "twice"),
    infeasible,
    check_matters("cq1", differs=False),
    check_matters("cq2", differs=False),
    check_matters("cq5", differs=False),
    check_matters("cq3", differs=True),
    check_matters("cq4", differs=True),
    check_matters("cq6", differs=True),
)


def judge(tables: Tables) -> tuple[Claim, ...]:
    return tuple(claim(tables) for claim in CLAIMS)
