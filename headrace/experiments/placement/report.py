"""The report: claims, bars, figures as tables of text cells, for the terminal and for Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.experiments.judged import Bar, Claim, bars_table, claims_table, reasons, statement
from headrace.experiments.placement.bars import bars
from headrace.experiments.placement.cases import (
    AIRLINE,
    BALANCED,
    CLUSTER_SIZES,
    COMPARED,
    EXACT,
    JOINT,
    MODELS,
    SYNTHETIC,
)
from headrace.experiments.placement.plots import PREFIX
from headrace.experiments.placement.results import Results
from headrace.experiments.placement.tables import Tables
from headrace.experiments.shown import TextTable, pictures, section, timed_by

PICTURES = {
    "Figure 2": ["02"], "Figures 6 to 11": ["06-09", "10-11"], "Figures 12 and 13": ["12-13"],
    "Figure 14": ["14"], "Figure 15": ["15"], "Figure 16": ["16"], "Cost above": ["-rates"],
}  # fmt: skip

REASONS = (
    "Figures here are measured. They narrow down why ours differ from the paper's; none of them is a test "
    "of a cause, since the paper's network, rates and code are not known."
)


def text_tables(tables: Tables, claims: Sequence[Claim]) -> tuple[TextTable, ...]:
    return (
        claims_table(claims),
        _bars(bars(tables)),
        _above(tables),
        _figure_2(tables),
        _cluster_sizes(tables),
        _figures_12_13(tables),
        _operators(tables),
        _network_sizes(tables),
        _planning_times(tables),
    )


def _bars(found: Sequence[Bar]) -> TextTable:
    note = (
        f"Mean over the seeds of total cost / the exact planner's; 128 sites, max_cs {COMPARED}, reuse for "
        "all. The bars are meant for 20 seeds. `Exact` is exact for one query given what runs, so joint "
        "planning of all queries may be below it, and so may any planner on some seed."
    )
    return bars_table(found, "seeds", note)


def _above(tables: Tables) -> TextTable:
    rows = tuple(
        (
            one.part, one.planner, f"{one.mean:+.1f}", f"{one.deviation:.1f}", f"{one.least:+.1f}",
            f"{one.most:+.1f}", f"{one.reused:.2f}", f"{one.planning:.2f}", str(one.seeds),
        )
        for one in tables.above
    )  # fmt: skip
    told = "; ".join(
        f"{name}: rates {m.rates[0]:g}-{m.rates[1]:g}, selectivities {m.selectivities[0]:g}-"
        f"{m.selectivities[1]:g}"
        for name, m in MODELS.items()
    )
    note = (
        f"The synthetic workload under three rate models (`{SYNTHETIC.name}` is steady; {told}; all uniform: "
        "the paper gives no ranges) and the airline's. Steady joins of two to four streams are somewhat more "
        "data than one stream, of five and six less; shrinking ones nearly always filter; growing ones are "
        "nearly always more than their inputs."
    )
    columns = ("workload", "planner", "mean %", "sd", "least", "most", "reused", "ms", "seeds")
    return TextTable("Cost above the exact planner's", columns, rows, f"{note} {_per_query()}", left=2)


def _per_query() -> str:
    return "`reused`: derived streams a query reads; `ms`: planning time of a query; both are means."


def _figure_2(tables: Tables) -> TextTable:
    ends = {label: values[-1] for label, values in tables.figures["2"].items()}
    best = ends[EXACT]
    rows = tuple((label, f"{end:,.0f}", f"{100 * (1 - best / end):.1f}") for label, end in ends.items())
    note = (
        "Cost of all queries, mean over the seeds, and what the integrated planner (`exact`) saves of it. "
        "Each query joins five of ten streams. The text leaves open whether the phased planners reused here."
    )
    title = "Figure 2: plan, then deploy, against both together"
    return TextTable(title, ("planner", "cost", "saved by exact, %"), rows, note)


def _cluster_sizes(tables: Tables) -> TextTable:
    rows = tuple(
        (
            one.planner, str(one.max_cs), f"{one.plans:.3g}", f"{one.cost:,.0f}", f"{one.above:+.1f}",
            f"{one.height:.1f}", f"{one.top:.1f}", f"{one.cluster:.1f}",
        )
        for one in tables.cluster_sizes
    )  # fmt: skip
    columns = ("planner", "max_cs", "plans", "cost", "above exact, %", "levels", "top members", "lowest size")
    note = (
        "Synthetic workload, sums over all queries, means over the seeds (of plans the geometric one: a few "
        "queries whose streams meet in one cluster outweigh all others). Plans are counted as in Lemma 1, "
        "join orders times placements of every search within a cluster, though the search is a dynamic "
        f"programme. Figures 6 to 9: max_cs {', '.join(map(str, CLUSTER_SIZES))}; Figures 10 and 11: "
        f"{BALANCED}. The last columns are the mean shape of the hierarchies."
    )
    return TextTable("Figures 6 to 11: cluster size, plans and cost", columns, rows, note)


def _figures_12_13(tables: Tables) -> TextTable:
    left, right = tables.figures["12"], tables.figures["13"]
    rows = [(label, f"{left[label][-1]:,.0f}", f"{right[label][-1]:,.0f}") for label in left]
    rows.append((JOINT, f"{tables.joint:,.0f}", "-"))
    note = (
        f"Cost of all queries at the end of the curves ({len(left[EXACT])} and {len(right[EXACT])}), mean "
        "over the seeds. `no reuse`: what the baseline costs if it finds nothing to reuse. Joint planning "
        "has no curve: it plans all queries at once."
    )
    columns = ("planner", f"Figure 12: {SYNTHETIC.name}", f"Figure 13: {AIRLINE.name}")
    return TextTable("Figures 12 and 13: all planners", columns, tuple(rows), note)


def _operators(tables: Tables) -> TextTable:
    rows = tuple(
        (one.label, f"{one.joins:,.0f}", f"{one.filters:,.0f}", f"{one.reused:,.0f}")
        for one in tables.operators
    )
    note = (
        "A filter runs on each edge on which rows are dropped: from a base stream, and from a join to a "
        "reader that wants fewer rows than the join keeps for all (telescoped). `reused`: reads of running "
        "joins."
    )
    columns = ("planner", "joins", "filters", "reused")
    return TextTable("Figure 14: operators that run, airline workload", columns, rows, note)


def _network_sizes(tables: Tables) -> TextTable:
    rows = tuple(
        (
            f"{one.sites:,}", one.planner, f"{one.plans:,.0f}", f"{one.most:,}",
            "-" if one.bound is None else f"{one.bound:,.0f}", f"{one.exhaustive:.3g}",
            f"{100 * one.plans / one.exhaustive:.2g}", f"{one.height:.1f}", f"{one.cluster:.1f}",
        )
        for one in tables.network_sizes
    )  # fmt: skip
    columns = (
        "sites", "planner", "plans", "most", "Theorems 2, 4", "Lemma 1", "% of Lemma 1", "levels",
        "lowest size",
    )  # fmt: skip
    note = f"Mean plans for one query over four streams, max_cs {COMPARED}; `most`: the largest of any query."
    return TextTable("Figure 15: plans and network size", columns, rows, note, left=2)


def _planning_times(tables: Tables) -> TextTable:
    times = tables.planning_times
    sizes = sorted({one.streams for one in times})
    cells: dict[tuple[str, int], dict[int, str]] = {}
    for one in times:
        cells.setdefault((one.planner, one.max_cs), {})[one.streams] = f"{one.median:.3f}"
    rows = tuple(
        (planner, str(max_cs) if max_cs else "-", *(found.get(size, "-") for size in sizes))
        for (planner, max_cs), found in cells.items()
    )
    note = (
        "Median milliseconds of planning one query on 32 sites, the network prepared. The paper's seconds "
        "are of deployment on Emulab, which we do not have."
    )
    columns = ("planner", "max_cs", *(f"{size} streams" for size in sizes))
    return TextTable("Figure 16: planning time and query size", columns, rows, note)


def markdown(results: Results, tables: Tables, claims: Sequence[Claim]) -> str:
    """The report. The pictures lie beside it."""
    made, shown = results.made, text_tables(tables, claims)
    parts = [
        "# Paper 001's figures, made again",
        f"    {made.get('command', 'headrace experiment placement')}",
        f"Made {made.get('date', 'at an unknown time')} on {made.get('machine', 'an unknown machine')}; "
        f"{tables.seeds} seeds, {len(results.rows):,} runs in {float(made.get('seconds', 0)):.0f} s, timed "
        f"by {timed_by(made)}. Costs of every run were recomputed from its deployment by code that no "
        "planner shares; a run that differs is refused.",
        statement(claims),
        section(shown[0]),
        reasons(claims, REASONS),
        *(section(table) + pictures(table, PREFIX, PICTURES) for table in shown[1:]),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"
