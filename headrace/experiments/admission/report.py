"""The report: claims, bars, figures as tables of text cells, for the terminal and for Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.experiments.admission.board import NAMES
from headrace.experiments.admission.cases import (
    COMPLEXITY,
    EFFICIENCY,
    HOSTS,
    OVERLAP,
    RESOURCES,
    SODA,
    SQPR,
    TIMES_HOSTS,
)
from headrace.experiments.admission.plots import PREFIX
from headrace.experiments.admission.results import Results
from headrace.experiments.admission.tables import EPOCHS, Line, Tables, batch_lines
from headrace.experiments.judged import Bar, Claim, bars_table, claims_table, reasons, statement
from headrace.experiments.shown import TextTable, pictures, section, timed_by

PICTURES = {
    "Figure 4(a)": ["4a"], "Figure 4(b)": ["4b"], "Figure 4(c)": ["4c"], "Figure 5": ["5"],
    "Figure 6": ["6"], "Figure 7(a)": ["7"],
}  # fmt: skip
REASONS = (
    "Figures here are measured. They narrow down why ours differ from the paper's; none of them is a test of "
    "a cause, since the paper's CPU limits, host bandwidths and solver runs are not known."
)


def text_tables(tables: Tables, claims: Sequence[Claim], bars: Sequence[Bar]) -> tuple[TextTable, ...]:
    return (
        claims_table(claims),
        _bars(bars),
        _efficiency(tables),
        _batching(tables),
        _overlap(tables),
        _scaling(tables),
        _times(tables),
        _cluster(tables),
        _loads(tables),
    )


def with_sqpr(tables: Tables) -> str:
    """What the slow planner ran on."""
    if not tables.deadline:
        return "SQPR was not run."
    return (
        f"SQPR: {tables.milp_seeds} seed(s), {tables.common['7(a)']} on the cluster of Figure 7, "
        f"{tables.deadline:g} s a query (the paper: 30 s with CPLEX); it ran on the small sides (4 to 16 "
        "hosts), on the paper's size in Figure 4(a) and, for single queries, in Figure 6."
    )


def _bars(found: Sequence[Bar]) -> TextTable:
    return bars_table(
        found, "runs", "The bar on SQPR is meant for 30 s a query; the deadline here is shorter."
    )


def _cells(one: Line) -> tuple[str, ...]:
    share = "-" if one.of_bound is None else f"{one.of_bound:.1f}"
    timed = ("-", "-") if one.planner == "offline" else (f"{one.mean_ms:.2f}", f"{one.p99_ms:.1f}")
    return (f"{one.x:g}", f"{one.queries:,}", f"{one.admitted:,.1f}", share, *timed, str(one.seeds))


COLUMNS = ("submitted", "satisfied", "% of bound", "mean ms", "p99 ms", "seeds")


def _efficiency(tables: Tables) -> TextTable:
    lines = [one for one in tables.lines if one.figure == EFFICIENCY]
    rows = tuple((one.group or "paper's size", one.label, *_cells(one)) for one in lines)
    note = (
        "Means over the seeds; `% of bound`: of the sequential optimistic bound, seed by seed. The offline "
        "bound cannot be passed by any plan. " + with_sqpr(tables)
    )
    return TextTable(
        "Figure 4(a): satisfied and submitted",
        ("side", "planner", "Mbps a host", *COLUMNS),
        rows,
        note,
        left=2,
    )


def _batching(tables: Tables) -> TextTable:
    found = [one for planner in (SQPR, SODA) for one in batch_lines(tables, planner).values()]
    rows = tuple(
        (one.label, str(one.batch), f"{one.admitted:,.1f}", f"{one.mean_ms:.1f}", str(one.seeds))
        for one in found
    )
    note = "The small side; a batch of n has n times the deadline, `mean ms` is for each query of it."
    columns = ("planner", "batch", "satisfied", "mean ms", "seeds")
    return TextTable("Figure 4(b): batches", columns, rows, note)


def _overlap(tables: Tables) -> TextTable:
    lines = [one for one in tables.lines if one.figure == OVERLAP]
    rows = tuple((one.group, one.label, *_cells(one)) for one in lines)
    columns = ("streams", "planner", "Zipf", *COLUMNS)
    note = "Fewer streams and a larger Zipf parameter overlap more."
    return TextTable("Figure 4(c): overlap", columns, rows, note, left=2)


def _scaling(tables: Tables) -> TextTable:
    what = {HOSTS: "5(a) hosts", RESOURCES: "5(b) CPU a host", COMPLEXITY: "5(c) streams a query"}
    rows = tuple(
        (what[one.figure], one.group or "paper's size", one.label, *_cells(one))
        for one in tables.lines
        if one.figure in what
    )
    note = (
        "5(a): 30 queries a host, streams as they are. 5(b): 10 Gbps everywhere, 30 queries for 300 "
        "CPU. 5(c): all queries of one size."
    )
    columns = ("figure", "side", "planner", "x", *COLUMNS)
    return TextTable("Figure 5: hosts, resources, complexity", columns, rows, note, left=3)


def _times(tables: Tables) -> TextTable:
    what = {TIMES_HOSTS: "6(a) hosts"}
    rows = tuple(
        (
            what.get(one.figure, "6(b) streams a query"), NAMES[one.planner], f"{one.x:g}",
            f"{one.mean_ms:.2f}", f"{one.median_ms:.2f}", f"{one.most_ms:.1f}", str(one.queries),
            str(one.proven) if one.planner == SQPR else "-", str(one.fit),
        )
        for one in tables.times
    )  # fmt: skip
    note = (
        "Milliseconds for queries that come when 75 to 95 % of the CPU are in use. SQPR solves its reduced "
        "problem, on plans that Headrace made at 75, 85 and 95 %, to the end or for five deadlines "
        "(`proven`: to the end). The others are timed while they fill the hosts."
    )
    columns = ("figure", "planner", "x", "mean", "median", "most", "queries", "proven", "admitted")
    return TextTable("Figure 6: planning time under load", columns, rows, note, left=2)


def _cluster(tables: Tables) -> TextTable:
    curves, submitted = tables.curves["7(a)"], tables.submitted["7(a)"]
    rows = tuple(
        (
            label,
            *(f"{values[i * len(values) // EPOCHS - 1]:.1f}" for i in range(1, EPOCHS + 1)),
            str(tables.common["7(a)"]),
        )
        for label, values in curves.items()
    )
    note = (
        "15 hosts, queries one by one, means over the seeds that all planners have. SODA's templates "
        "are drawn; `popular first` joins popular streams first, which needs the whole workload known. "
        + with_sqpr(tables)
    )
    columns = ("planner", *(f"of {i * submitted // EPOCHS}" for i in range(1, EPOCHS + 1)), "seeds")
    return TextTable("Figure 7(a): SQPR and SODA on the cluster", columns, rows, note)


def _loads(tables: Tables) -> TextTable:
    rows = tuple(
        (
            NAMES[one.planner], str(one.submitted), f"{100 * one.mean_cpu:.1f}", f"{one.cpu_spread:.1f}",
            f"{100 * one.cpu[0]:.1f}", f"{100 * one.cpu[-1]:.1f}",
            f"{sum(one.network) / len(one.network):.0f}", f"{one.network_spread:.2f}",
        )
        for one in tables.loads
    )  # fmt: skip
    note = (
        "All hosts of all seeds: utilisation of CPU in %, and Kbps sent and received by a host (10,000 each "
        "way are there). `sd / mean`: how uneven the network is."
    )
    columns = ("planner", "submitted", "CPU", "sd", "least", "most", "Kbps", "sd / mean")
    return TextTable("Figures 7(b) and 7(c): load of the hosts", columns, rows, note)


def markdown(results: Results, tables: Tables, claims: Sequence[Claim], bars: Sequence[Bar]) -> str:
    """The report. The pictures lie beside it."""
    made, shown = results.made, text_tables(tables, claims, bars)
    parts = [
        "# Paper 003's figures, made again",
        f"    {made.get('command', 'headrace experiment admission')}",
        f"Made {made.get('date', 'at an unknown time')} on {made.get('machine', 'an unknown machine')}; "
        f"{tables.seeds} seeds, {len(results.rows):,} runs in {float(made.get('seconds', 0)):.0f} s, timed "
        f"by {timed_by(made)}. The last plan of every run went through a checker that no planner shares.",
        *([QUICK] if tables.quick else []),
        with_sqpr(tables),
        statement(claims),
        section(shown[0]),
        reasons(claims, REASONS),
        *(section(table) + pictures(table, PREFIX, PICTURES) for table in shown[1:]),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


QUICK = (
    "**A quick run**: hosts, streams and queries are a twelfth of what stands in the tables and pictures, "
    "three hosts at least, and SQPR has a quarter of the deadline. It shows that everything works, and "
    "nothing else."
)
