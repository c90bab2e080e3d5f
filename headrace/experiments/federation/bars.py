"""The issue's bars that these runs can speak about."""

from __future__ import annotations

from collections.abc import Iterator

from headrace.experiments.federation.cases import SPARK, TABLE_2, TABLE_3
from headrace.experiments.federation.tables import CHOSEN, Tables
from headrace.experiments.judged import Bar

AT_MOST_MS = {5: 50.0, 8: 1000.0}
TIMES = 8.0
WITHIN = 5.0
CORRELATED = ("cq1", "cq2")


def bars(tables: Tables) -> tuple[Bar, ...]:
    return (*_plans(tables), *_times(tables), *_speed_ups(tables), *_choices(tables), _answers(tables))


def _plans(tables: Tables) -> Iterator[Bar]:
    for (ways, (paper, _, _)), found in zip(TABLE_2.items(), tables.joins, strict=True):
        text = f"Plans examined, {ways}-way join"
        yield Bar(text, f"<= {paper:,}", f"{found.plans:,}", found.plans <= paper, 1)
    for found in tables.chains:
        most = found.operators + 1
        text = f"Plans examined, {found.operators} unary operators"
        yield Bar(text, f"<= {most}", str(found.plans), found.plans <= most, 1)


def _times(tables: Tables) -> Iterator[Bar]:
    for (ways, _), found in zip(TABLE_2.items(), tables.joins, strict=True):
        if ways in AT_MOST_MS:
            total, most = found.phase_one + found.phase_two, AT_MOST_MS[ways]
            yield Bar(f"Both phases, {ways}-way join, ms", f"< {most:g}", f"{total:.3g}", total < most, 1)


def _speed_ups(tables: Tables) -> Iterator[Bar]:
    for query in CORRELATED:
        mine, spark = tables.maximum(query, CHOSEN), tables.maximum(query, SPARK)
        if mine is None or spark is None:
            continue
        text = f"{query}: highest throughput of the split, against Spark alone"
        count = sum(point.query == query and point.split == spark.split for point in tables.points)
        if not spark.rows:
            yield Bar(text, f">= {TIMES:g} x", "Spark alone was not measured", False, count)
            continue
        # Where it kept up with one rate and was not measured at the next, that one favours it.
        most = max(spark.rows, spark.ceiling or 0.0)
        times = mine.rows / most
        sign = ">= " if mine.at_least else ""
        told = f"{sign}{times:.1f} x ({sign}{mine.rows:,.0f} to {most:,.0f} rows/s)"
        yield Bar(text, f">= {TIMES:g} x", told, times >= TIMES, count)


def _choices(tables: Tables) -> Iterator[Bar]:
    for query in TABLE_3:
        found = tables.of(query)
        if found:
            worst = max(found, key=lambda one: one.short)
            told = f"at most {worst.short:.1f} % below" + (
                f", at {worst.rate:,} rows/s" if worst.short else ""
            )
            more = [one.dearer for one in found if one.dearer is not None]
            told += f"; CPU at most {max(more):.0f} % above the best's" if more else ""
            text = f"{query}: throughput of the choice, against the best measured"
            yield Bar(text, f"within {WITHIN:g} % at every rate", told, worst.short <= WITHIN, len(found))


def _answers(tables: Tables) -> Bar:
    compared = [point for point in tables.points if point.compared]
    wrong = [point for point in tables.points if point.problem.startswith("wrong")]
    rows = sum(point.compared for point in compared)
    told = f"{rows:,} rows of {len(compared)} runs compared, {len(wrong)} runs differ"
    return Bar("Answers equal the reference and each other's", "all", told, not wrong, len(compared))
