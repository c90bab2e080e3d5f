"""The report: claims, bars, tables and figures as text cells, for the terminal and for Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.experiments.federation.cases import DECOMPOSED, NAMED, TABLE_2, TABLE_3
from headrace.experiments.federation.plots import PREFIX
from headrace.experiments.federation.results import Results
from headrace.experiments.federation.tables import Point, Tables
from headrace.experiments.judged import Bar, Claim, bars_table, claims_table, reasons, statement
from headrace.experiments.shown import TextTable, pictures, section

PICTURES = {"Figure 5": ("5", "5-cpu"), "Figure 6": ("6",)}


def text_tables(tables: Tables, claims: Sequence[Claim], bars: Sequence[Bar]) -> tuple[TextTable, ...]:
    return (
        claims_table(claims),
        bars_table(bars, "cases", "Throughputs are of this machine, under whatever else it did at the time."),
        _table_2(tables),
        _table_3(tables),
        _figure_5(tables),
        _maxima(tables),
        _figure_6(tables),
        _runs(tables),
    )


def _table_2(tables: Tables) -> TextTable:
    def line(label: str, *cells: str) -> tuple[str, ...]:
        return (label, *cells)

    joins, paper = tables.joins, list(TABLE_2.values())
    rows = (
        line("operators", *(str(one.operators) for one in joins)),
        line("plans without pruning", *(f"{2**one.operators:,}" for one in joins)),
        line("plans examined: paper", *(f"{plans:,}" for plans, _, _ in paper)),
        line("its pruning on its join tree", *(f"{one.plans_on_its_tree:,}" for one in joins)),
        line("its pruning on our join tree", *(f"{one.plans_by_paper:,}" for one in joins)),
        line("our pruning", *(f"{one.plans:,}" for one in joins)),
        line("both phases, ms: paper", *(f"{total:,.5g}" for _, _, total in paper)),
        line("phase one, ms", *(f"{one.phase_one:.3g}" for one in joins)),
        line("phase two, ms, the paper's pruning", *(f"{one.phase_two_by_paper:,.3g}" for one in joins)),
        line(
            f"the same in pieces of {DECOMPOSED} operators",
            *(f"{one.decomposed_by_paper:,.3g}" for one in joins),
        ),
        line("phase two, ms", *(f"{one.phase_two:.3g}" for one in joins)),
        line("both phases, ms", *(f"{one.phase_one + one.phase_two:.3g}" for one in joins)),
    )
    note = "Plans are complete ones, compared at the root in phase two. Times are medians."
    return TextTable(
        "Table 2: the optimiser and large joins", ("", *(one.query for one in joins)), rows, note
    )


def _table_3(tables: Tables) -> TextTable:
    rows = tuple(
        (
            one.query,
            str(one.operators),
            f"{TABLE_3[one.query]:g}",
            f"{one.phase_one:.3g}",
            f"{one.phase_two:.3g}",
            f"{one.phase_one + one.phase_two:.3g}",
            str(one.plans),
        )
        for one in tables.plug_queries
    )
    columns = ("query", "operators", "paper, ms", "phase one", "phase two", "both, ms", "plans")
    return TextTable("Table 3: the optimiser and CQ1-CQ6", columns, rows, "Medians, from the query as data.")


def _figure_5(tables: Tables) -> TextTable:
    rows = tuple(
        (
            one.query,
            f"{one.rate:,}",
            one.split,
            f"{one.throughput:,.0f}",
            one.best,
            f"{one.best_throughput:,.0f}",
            f"{one.short:.1f}",
            "-" if one.dearer is None else f"{one.dearer:+.0f}",
        )
        for one in tables.at_rates
    )
    columns = ("query", "rows/s", "chosen", "throughput", "best", "its throughput", "% short", "% CPU more")
    note = (
        f"A letter for each operator, inputs first: s on Spark, d on DuckDB. Batches of {tables.batch} s of "
        "event time with full windows; what takes longer than that does not keep up. `best`: of the splits "
        "that were run, the highest throughput, then the least CPU; `% CPU more`: what the choice takes "
        "beyond that one's."
    )
    return TextTable("Figure 5: what is chosen at rising rates", columns, rows, note, left=3)


def _maxima(tables: Tables) -> TextTable:
    rows = tuple(
        (
            one.query,
            one.label,
            one.split,
            (">= " if one.at_least or one.ceiling else "") + f"{one.rows:,.0f}",
            "-" if one.foretold is None else f"{one.foretold:,.0f}",
        )
        for one in tables.maxima
    )
    names = "; ".join(f"{name}: {text}" for name, text in NAMED.items())
    note = (
        f"{names}. `chosen` is the choice at the highest rate. `foretold`: the rate at which a batch would "
        "take as long as it may, by the line through the two highest rates that were run."
    )
    columns = ("query", "split", "engines", "highest rows/s", "foretold")
    return TextTable("Highest throughputs", columns, rows, note, left=3)


def _figure_6(tables: Tables) -> TextTable:
    rows = tuple(
        (
            one.query,
            f"{one.rate:,}",
            one.split,
            one.unchecked,
            f"{one.throughput:,.0f}",
            f"{one.throughput_unchecked:,.0f}",
        )
        for one in tables.at_rates
    )
    columns = ("query", "rows/s", "with the check", "without", "throughput", "without")
    return TextTable("Figure 6: with and without the feasibility check", columns, rows, "", left=4)


def _runs(tables: Tables) -> TextTable:
    rows = tuple(_run(point) for point in tables.points)
    clock = "CPU time over the cores" if tables.by_cpu else "the wall clock"
    columns = (
        "query", "rows/s", "split", "names", "s a batch", "keeps up", "CPU-s per s", "believed", "MB",
        "compared", "problem",
    )  # fmt: skip
    note = (
        f"Medians; seconds by {clock}. `believed`: C_u, without what a micro-batch costs whatever is done in "
        "it. `MB`: of all processes in the end, the JVM of earlier splits included. `compared`: result rows "
        "that were compared with the first split's and, at the lowest rate, for two houses, with the "
        "reference."
    )
    return TextTable("Every run", columns, rows, note, left=4)


def _run(point: Point) -> tuple[str, ...]:
    return (
        point.query,
        f"{point.rate:,}",
        point.split + ("*" if point.chosen else ""),
        ", ".join(point.names),
        "-" if point.seconds is None else f"{point.seconds:.2f}",
        "yes" if point.keeps_up else "no",
        "-" if point.cpu is None else f"{point.cpu:.3f}",
        f"{point.believed:.3f}" + ("" if point.feasible else "!"),
        f"{point.memory >> 20:,}",
        f"{point.compared:,}",
        point.problem.splitlines()[0][:80] if point.problem else "",
    )


def markdown(results: Results, tables: Tables, claims: Sequence[Claim], bars: Sequence[Bar]) -> str:
    """The report. The pictures lie beside it."""
    made, shown = results.made, text_tables(tables, claims, bars)
    parts = [
        "# Paper 004's tables and figures, made again",
        f"    {made.get('command', 'headrace experiment federation')}",
        f"Made {made.get('date', 'at an unknown time')} on {made.get('machine', 'an unknown machine')}; "
        f"{len(tables.points)} runs in {float(made.get('seconds', 0)):.0f} s, timed by {_clock(tables)}. "
        "Smart plugs, half of the rows loads; windows of up to 5 minutes, sliding by 1 s.",
        statement(claims),
        section(shown[0]),
        reasons(claims),
        *(section(table) + pictures(table, PREFIX, PICTURES) for table in shown[1:]),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _clock(tables: Tables) -> str:
    return "CPU time, because the machine had other work" if tables.by_cpu else "the wall clock"
