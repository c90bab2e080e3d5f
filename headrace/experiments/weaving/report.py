"""Tables as text cells, for the terminal and for Markdown, and the report that holds them all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from headrace.experiments.shown import TextTable, section, timed_by
from headrace.experiments.weaving.claims import Claim
from headrace.experiments.weaving.results import MAIN, THIRTEEN, THREE, Results
from headrace.experiments.weaving.tables import PAPER_TABLE_3, PAPER_TABLE_4, Bars, Breakdown, Tables


def text_tables(tables: Tables, claims: Sequence[Claim]) -> tuple[TextTable, ...]:
    return (
        _claims(claims),
        _table_3(tables),
        _table_3_ours(tables),
        _bars(tables),
        _table_4(tables),
        _everyone(tables),
        _figure_2(tables),
        *([_figure_3(tables)] if tables.figure_3 else []),
        _forks(tables),
        _readings(tables),
    )


def statement(claims: Sequence[Claim]) -> str:
    """Which claims reproduce, in plain words."""
    count = Counter(claim.verdict for claim in claims)
    told = ", ".join(f"{number} {verdict}" for verdict, number in count.most_common())
    return f"Of {len(claims)} claims of the paper: {told}."


def _claims(claims: Sequence[Claim]) -> TextTable:
    rows = tuple((c.text, c.where, c.paper, c.ours, c.verdict) for c in claims)
    return TextTable(
        "Claims", ("claim", "where", "paper", "here", "verdict"), rows, statement(claims), left=5
    )


def _table_3(tables: Tables) -> TextTable:
    rows = []
    for mean, single in zip(tables.table_3, tables.table_3_workloads, strict=True):
        best, above = PAPER_TABLE_3[mean.optimiser, mean.criterion]
        rows.append((
            mean.criterion, mean.optimiser, f"{best:.0f}", f"{mean.best:.1f}", f"{single.best:.1f}",
            f"{above:g}", _percent(mean.above), _percent(single.above),
        ))  # fmt: skip
    heads = ("best in %: paper", "here", "per workload")
    more = ("% above best where not best: paper", "here ", "per workload ")
    columns = ("cost", "optimiser", *heads, *more)
    note = (
        "Among the thirteen, ties (within 1e-9) count as best. `here`: costs averaged over the repeats "
        "first, as in the paper; `per workload`: every workload is a case."
    )
    return TextTable("Table 3: WG_I and WG_TN, wins and losses", columns, tuple(rows), note, left=2)


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _table_3_ours(tables: Tables) -> TextTable:
    rows = tuple((b.criterion, b.optimiser, f"{b.best:.1f}", _percent(b.above)) for b in tables.table_3_ours)
    note = (
        "The thirteen, ours and ours with balance 1 compete; the front is judged by its plan nearest to the "
        "best of the thirteen on both costs, without being a rival."
    )
    columns = ("cost", "optimiser", "best in %", "% above best where not best")
    return TextTable("Table 3 with ours beside", columns, rows, note, left=2)


def _bars(tables: Tables) -> TextTable:
    one, many = tables.bars, tables.bars_workloads
    rows = tuple(_bar_rows(one, many))
    note = (
        "One plan has 30 ms, the front 0.3 s. Shares are of the experiments (averaged costs) and of the "
        "single workloads; ratios are geometric means. The bars are meant for all 256 experiments with the "
        "prose readings."
    )
    columns = ("bar", "wanted", "here", "met", "per workload", "met ")
    return TextTable("Ours against the issue's bars", columns, rows, note, left=1)


def _bar_rows(one: Bars, many: Bars) -> Iterator[tuple[str, ...]]:
    at_least = (
        ("one plan: total <= WG_TN's and max <= WG_I's, % of cases", 82.0, one.both, many.both),
        ("front: a plan <= best of the thirteen on both, % of cases", 85.0, one.front, many.front),
    )
    for text, wanted, mean, single in at_least:
        met = ("yes" if value >= wanted else "no" for value in (mean, single))
        yield text, f">= {wanted:.0f}", f"{mean:.1f}", next(met), f"{single:.1f}", next(met)
    at_most = (
        ("balance 1: total / WG_TN's total", 0.93, one.balanced_total, many.balanced_total),
        ("balance 1: max / WG_I's max", 0.70, one.balanced_max, many.balanced_max),
    )
    for text, wanted, mean, single in at_most:
        met = ("yes" if value <= wanted else "no" for value in (mean, single))
        yield text, f"<= {wanted:.2f}", f"{mean:.3f}", next(met), f"{single:.3f}", next(met)
    for text, mean, single in (
        ("(one plan: total <= WG_TN's alone)", one.both_ours_total, many.both_ours_total),
        ("(one plan: max <= WG_I's alone)", one.both_ours_max, many.both_ours_max),
    ):
        yield text, "", f"{mean:.1f}", "", f"{single:.1f}", ""


def _table_4(tables: Tables) -> TextTable:
    rows = []
    for name in (*THIRTEEN, *THREE):
        paper = PAPER_TABLE_4.get(name)
        mean, most = tables.seconds[name]
        ratio = "-" if paper is None else f"{paper / mean:,.0f}"
        rows.append((name, "-" if paper is None else f"{paper:g}", f"{mean:.4f}", f"{most:.4f}", ratio))
    columns = ("optimiser", "paper, s", "here, s", "longest, s", "paper / here")
    note = (
        "Mean seconds of the search alone; the paper's were Java on a Xeon E5-2650 v2. The time of ours is a "
        "budget it is given, not what it needs."
    )
    return TextTable("Table 4: mean plan generation time", columns, tuple(rows), note)


def _everyone(tables: Tables) -> TextTable:
    cells: dict[str, list[str]] = {}
    for b in tables.everyone:
        cells.setdefault(b.optimiser, []).extend((f"{b.best:.1f}", _percent(b.above)))
    rows = tuple((name, *values) for name, values in cells.items())
    columns = ("optimiser", "total: best in %", "% above where not", "max: best in %", "% above where not ")
    return TextTable("All thirteen by Table 3's measure", columns, rows)


def _figure_2(tables: Tables) -> TextTable:
    rows = []
    for name in (*THIRTEEN, *THREE):
        row = [name]
        for bars in (tables.figure_2["max"], tables.figure_2["total"]):
            bar = bars[name]
            row += [f"{bar.mean:.1f}", f"{bar.deviation:.1f}", f"{bar.pooled:.1f}"]
        rows.append(tuple(row))
    columns = ("optimiser", "max: mean %", "sd", "pooled", "total: mean %", "sd ", "pooled ")
    note = (
        "The caption's 0 and 100 % (`average plan costs of all best and worst plans`) are read per "
        "experiment: best and worst of the thirteen there, then mean and standard deviation over the "
        "experiments; the front's bar is its plan nearest to both bests. `pooled` is the other reading: 0 "
        "and 100 % are the means of all best and of all worst costs. The paper prints no numbers."
    )
    return TextTable("Figure 2: average plan quality", columns, tuple(rows), note)


def _figure_3(tables: Tables) -> TextTable:
    rows = []
    for name, nodes in tables.figure_3.items():
        total = sum(nodes)
        costs = [f"{cost:,.0f}" for cost in nodes]
        rows.append((name, *costs, f"{total:,.0f}", f"{max(nodes) * len(nodes) / total:.2f}"))
    columns = ("optimiser", "dearest node", "second", "third", "cheapest", "total", "max / mean")
    note = "Node costs sorted within each plan, then averaged over the repeats. The paper prints no numbers."
    return TextTable("Figure 3: costs per node, Experiment 2", columns, tuple(rows), note)


def _forks(tables: Tables) -> TextTable:
    rows = tuple((f.reading, f.optimiser, f"{f.total:.3f}", f"{f.max:.3f}") for f in tables.forks)
    note = (
        "First repeat of every experiment; mean over the experiments of cost under the reading / cost as "
        "set. `order=backwards` shows what ties and the order of arrival are worth."
    )
    columns = ("reading", "optimiser", "total", "max")
    return TextTable("Other readings against the one set", columns, rows, note, left=2)


def _readings(tables: Tables) -> TextTable:
    head = [f"{name} {criterion}: best in %, above %" for name, criterion in PAPER_TABLE_3]
    paper = tuple(f"{best:.0f}, {above:g}" for best, above in PAPER_TABLE_3.values())
    rows = [("the paper", *paper, "0.0")]
    for reading, cells in tables.table_3_readings.items():
        rows.append((reading, *map(_cell, cells), f"{_points_away(cells):.1f}"))
    note = (
        f"First repeat of every experiment. `{MAIN}` is the reading of the main runs. The last column is the "
        "mean distance of the four shares from the paper's, in points."
    )
    return TextTable("Table 3 under every reading", ("reading", *head, "points away"), tuple(rows), note)


def _points_away(cells: Sequence[Breakdown]) -> float:
    away = [abs(cell.best - PAPER_TABLE_3[cell.optimiser, cell.criterion][0]) for cell in cells]
    return sum(away) / len(away)


def _cell(cell: Breakdown) -> str:
    return f"{cell.best:.1f}, {_percent(cell.above)}"


def markdown(results: Results, tables: Tables, claims: Sequence[Claim], command: str) -> str:
    """The report. The pictures lie beside it."""
    made = results.made
    shown = text_tables(tables, claims)
    parts = [
        "# Paper 000's experiments, made again",
        f"    {command}",
        f"Made {made.get('date', 'at an unknown time')} on {made.get('machine', 'an unknown machine')}; "
        f"{tables.experiments} experiments, {tables.repeats} workloads each, {len(results.rows):,} runs in "
        f"{float(made.get('seconds', 0)):.0f} s. Searches are timed and limited by {timed_by(made)}. "
        f"Readings: "
        f"{', '.join(f'{name} {value}' for name, value in results.readings.items())}. "
        f"{tables.checked:,} runs were recomputed exactly from their plans; the largest relative difference "
        f"is {tables.check_worst:.1e}.",
        statement(claims),
        *(section(table) for table in shown[:1]),
        _reasons(claims),
        *(section(table) + _picture(table) for table in shown[1:]),
    ]
    return "\n\n".join(parts) + "\n"


def _reasons(claims: Sequence[Claim]) -> str:
    lines = [f"- **{c.text}** ({c.verdict}). {c.why}" for c in claims if c.why]
    return "\n".join(["### What the data say about why", "", *lines])


def _picture(table: TextTable) -> str:
    for number in (2, 3):
        if table.title.startswith(f"Figure {number}"):
            return f"\n\n![{table.title}](fig{number}.png)"
    return ""
