"""The report: claims, bars, tables and figures as text cells, for the terminal and for Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.experiments.distribution.cases import JOINS, LABELS, MOST_WAITED
from headrace.experiments.distribution.plots import PREFIX
from headrace.experiments.distribution.prices import STRETCHED
from headrace.experiments.distribution.results import KEEPS_UP, ROOM, Results
from headrace.experiments.distribution.tables import Run, Tables
from headrace.experiments.judged import Bar, Claim, bars_table, claims_table, reasons, statement
from headrace.experiments.shown import TextTable, pictures, section

PICTURES = {
    "Measured: plans": ("21-31-measured",),
    "Measured: a join": ("36",),
    "Measured: a bad": ("37-measured",),
    "Model: patterns": ("21-28", "29-33"),
    "Model: redistribution": ("37-39",),
}
_MEASURED = {"21-31-measured", "36", "37-measured"}


def text_tables(tables: Tables, claims: Sequence[Claim], bars: Sequence[Bar]) -> tuple[TextTable, ...]:
    measured = (_runs(tables), _moved(tables), _recovered(tables)) if tables.runs else ()
    return (
        claims_table(claims),
        bars_table(bars, "cases", "By the model unless it says measured."),
        *(table for table in measured if table.rows),
        _prices(tables),
        _patterns(tables),
        _policies(tables),
    )


def _runs(tables: Tables) -> TextTable:
    rows = tuple(_run(run) for run in tables.runs)
    columns = (
        "plan", "sites", "pattern", "jobs", "connections", "rows in", "rows out", "of wanted",
        "cores by site", "cores", "by prices", "busiest", "by prices", "manager", "state rows", "s a batch",
        "problem",
    )  # fmt: skip
    note = (
        "Servers of Spark Connect on this machine, which share its cores; 40 rows/s of each stream, windows "
        "of 10 s, a batch every 2 s. `cores`: CPU seconds a second. `of wanted`: result rows a second, of "
        "what the plan's selectivities say, from the end of one batch to that of a later one. `s a "
        "batch`: the slowest job's last. `manager`: this process, feeding included."
    )
    return TextTable("Measured: plans on sites", columns, rows, note, left=3)


def _run(run: Run) -> tuple[str, ...]:
    return (
        run.plan,
        str(run.sites),
        "any" if run.sites == 1 else ", ".join(LABELS[one] for one in run.patterns),
        str(run.jobs),
        str(run.connections),
        f"{run.rows_in:,}",
        f"{run.rows_out:,}",
        f"{run.kept_up:.0%}",
        " ".join(f"{one:.2f}" for one in run.cores),
        f"{run.total:.2f}",
        f"{run.believed:.2f}",
        f"{run.busiest:.2f}",
        f"{run.believed_busiest:.2f}",
        f"{run.manager:.2f}",
        f"{run.state_rows:,}",
        f"{run.batch_seconds:.2f}",
        run.problem.splitlines()[0][:80] if run.problem else "",
    )


def _moved(tables: Tables) -> TextTable:
    rows = tuple(
        (
            f"{one.moves} moves" if one.moves else "stays",
            str(one.carried),
            f"{one.seconds:.0f}",
            f"{one.rows_out:,}",
            f"{one.rows_out / one.seconds:,.0f}" if one.seconds else "-",
            f"{one.right:,}",
            str(one.missing),
            str(one.extra),
            " ".join(f"{pause:.1f}" for pause in one.pauses),
            f"{one.cpu / one.seconds:.2f}" if one.seconds else "-",
            one.problem.splitlines()[0][:80] if one.problem else "",
        )
        for one in tables.moved
    )
    columns = (
        "join", "carried out", "seconds", "rows out", "rows/s", "right", "missing", "too many", "pauses, s",
        "cores", "problem",
    )  # fmt: skip
    note = (
        "20 operators, a job for each join, at two sites, windows of 20 s. `right`, `missing`, `too many`: "
        "all result rows of the run, drained, against a batch evaluation of the same input. A pause is from "
        "the last batch before a move to the first after it."
    )
    return TextTable("Measured: a join moved back and forth", columns, rows, note)


def _recovered(tables: Tables) -> TextTable:
    rows = tuple(
        (
            one.start,
            one.policy,
            f"{one.rate:,.0f}",
            f"{one.rows_out:,}",
            f"{one.speed:,.0f}" if one.seconds else "-",
            f"{one.part:.0%}" if one.wanted_out else "-",
            str(one.moves),
            str(one.rounds),
            f"{one.waited:.0f}" if one.moves else "",
            " ".join(f"{pause:.1f}" for pause in one.pauses),
            " ".join(f"{cpu / one.seconds:.2f}" for cpu in one.cpu) if one.seconds else "-",
            one.problem.splitlines()[0][:80] if one.problem else "",
        )
        for one in tables.recovered
    )
    columns = (
        "placement", "policy", "rows/s of a stream", "rows out", "rows/s", "of wanted", "jobs moved",
        "rounds", "then waited, s", "pauses, s", "cores by site", "problem",
    )  # fmt: skip
    tried = [f"{rate:,.0f}" for one in tables.recovered for rate in one.tried]
    note = (
        "20 operators, a job for each join, two sites with a core each, windows of 4 s; `bad`: all jobs at "
        "one. The rate is one at which all together take 1.5 cores by the prices, or a lower one at which "
        f"the good placement gives {KEEPS_UP:.0%} of what is wanted and takes at most {ROOM:.0%} of both "
        f"cores (too high: {', '.join(tried) or '-'}). The policy is asked again after its moves until it "
        "wants none. "
        "Rows are counted by the clock, when all jobs have caught up with what was held up, which is waited "
        f"for ({MOST_WAITED:.0f} s at most); where they have not, more than what is wanted can come out."
    )
    return TextTable("Measured: a bad placement put right", columns, rows, note, left=2)


def _prices(tables: Tables) -> TextTable:
    values = tables.prices.as_dict()
    words = {
        "idle": "a site without a job",
        "connection": "an end of a connection",
        "sent": "a row over it, at an end",
        "join": "a join",
        "join_row": "a row that a join reads or gives",
        "row": "a row of any other operator",
    }
    rows = tuple((words[name], f"{value:.4g}") for name, value in values.items())
    told = (
        f"Cores; rows are a second. Fitted to {tables.points} sites of the runs above, off by "
        f"{tables.error:.0%} in the median."
        if tables.measured
        else "Cores; rows are a second. The default ones: nothing was run."
    )
    told += (
        f" A batch every 2 s; in the model, which is about full sites, batches are {STRETCHED:g} times as "
        "long, and connections and joins cost so much less."
    )
    return TextTable("Prices", ("what", "cores"), rows, told)


def _patterns(tables: Tables) -> TextTable:
    rows = tuple(
        (
            "5 joins" if one.plan == JOINS else one.plan,
            str(one.sites),
            LABELS[one.pattern],
            f"{one.connections:g}",
            f"{one.busiest:g}",
            f"{one.joins:g}",
            f"{one.max_load:.3f}",
            f"{one.total:.3f}",
            f"{one.capacity:,.0f}",
            f"{one.state:,.0f}",
            f"{one.ms:.1f}",
        )
        for one in tables.placements
    )
    columns = (
        "plan", "sites", "pattern", "connections", "busiest", "joins", "cores, fullest", "cores, all",
        "rows/s", "state rows", "ms",
    )  # fmt: skip
    note = (
        "Medians over the seeds. `busiest`: connections of the site with most, `joins`: of the site with "
        "most of them; cores at 40 rows/s of each stream; `rows/s`: of each stream, at which the fullest "
        "site is full; `state rows`: of the site with most; `ms`: to find the placement."
    )
    return TextTable("Model: patterns", columns, rows, note, left=3)


def _policies(tables: Tables) -> TextTable:
    rows = tuple(
        (
            one.plan,
            str(one.sites),
            LABELS.get(one.start, one.start),
            one.policy,
            f"{one.filled:.0%}",
            f"{one.before:.0%}",
            f"{one.after:.0%}",
            f"{one.least:.0%}",
            f"{one.moves:g}",
            f"{one.rounds:g}",
            f"{one.end:.1f}",
        )
        for one in tables.policies
    )
    columns = (
        "plan", "sites", "start", "policy", "filled", "before", "after", "least", "moves", "rounds",
        "minutes done",
    )  # fmt: skip
    note = (
        "At the rate at which our own placement fills its fullest site so far (`filled`). `before`, `after`: "
        "the share of what comes in that is done in time, medians; `least`: the lowest `after` of any seed; "
        "`minutes done`: of 30, with what waited caught up where there is room, and each round with moves a "
        "pause of 2.5 s."
    )
    return TextTable("Model: redistribution", columns, rows, note, left=4)


def markdown(results: Results, tables: Tables, claims: Sequence[Claim], bars: Sequence[Bar]) -> str:
    """The report. The pictures lie beside it."""
    made, shown = results.made, text_tables(tables, claims, bars)
    parts = [
        "# Paper 002's figures 21 to 39, made again",
        f"    {made.get('command', 'headrace experiment distribution')}",
        f"Made {made.get('date', 'at an unknown time')} on {made.get('machine', 'an unknown machine')}; "
        f"{len(tables.runs) + len(tables.moved) + len(tables.recovered)} runs on sites of this machine and "
        f"the model, in {float(made.get('seconds', 0)):.0f} s. The paper had ten machines; here all sites "
        "share the cores of one, so that what is measured is what sites take, and the throughput of more "
        "sites than cores is a model with the measured prices.",
        statement(claims),
        section(shown[0]),
        reasons(claims),
        *(section(table) + pictures(table, PREFIX, _files(tables)) for table in shown[1:]),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _files(tables: Tables) -> dict[str, tuple[str, ...]]:
    """Without runs that went well there are no pictures of them."""
    return {
        title: tuple(name for name in names if name not in _MEASURED or name in tables.pictured)
        for title, names in PICTURES.items()
    }
