"""`headrace experiment`: a paper's tables and figures, made again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from headrace.cli.options import AsJson
from headrace.cli.render import err, out, print_json, table

if TYPE_CHECKING:
    from headrace.service.experiment import Report

Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="Which one: weaving (paper 000), placement (paper 001), distribution (paper 002), "
        "admission (paper 003) or federation (paper 004).",
    ),
]
Out = Annotated[
    Path | None, typer.Option("--out", metavar="DIR", help="Where the results, tables and plots go.")
]
Repeats = Annotated[int, typer.Option(min=1, help="weaving: workloads of every experiment.")]
Seeds = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="placement (20), distribution (10), admission (5): networks, plans, workloads of every figure.",
    ),
]
MilpSeeds = Annotated[int, typer.Option(min=0, help="admission: seeds on which the slow SQPR runs too.")]
Deadline = Annotated[float, typer.Option(min=0.01, help="admission: seconds of SQPR for one query.")]
Quick = Annotated[
    bool,
    typer.Option(
        "--quick",
        help="weaving: 16 experiments, one workload each; placement: 2 seeds, fewer queries; "
        "distribution: the model alone, 2 plans of each size; admission: one seed, a twelfth of the hosts; "
        "federation: 3 rates, 3 splits, default prices.",
    ),
]
From = Annotated[
    Path | None,
    typer.Option("--from", metavar="FILE", help="Make the report from this results.json; run nothing."),
]
Rates = Annotated[
    str | None, typer.Option(metavar="N,N", help="federation: rows a second (1000 to 80000, in seven steps).")
]
Queries = Annotated[
    str | None, typer.Option(metavar="NAME,NAME", help="federation: which of cq1 to cq6 (all).")
]
Splits = Annotated[
    str | None,
    typer.Option(
        metavar="NAME,NAME",
        help="federation: chosen, spark, duckdb, select, root, upper, lower, all "
        "(chosen,spark,duckdb,root,upper).",
    ),
]
Costs = Annotated[
    str | None,
    typer.Option(help="federation: prices by calibrate (the default), default, or a calibration.json."),
]
Limit = Annotated[float | None, typer.Option(min=1, help="federation: seconds for one split (420).")]
Real = Annotated[
    str | None,
    typer.Option(
        metavar="N,N", help="distribution: plans that run on sites of this machine (5,20), or none."
    ),
]
Seconds = Annotated[
    float | None, typer.Option(help="distribution: that each of these runs is measured for (16).")
]
Stop = Annotated[
    Literal["prose", "listing"],
    typer.Option(help="weaving: W_TN, WG_TN: stop merging as the text or as Algorithm 2 says."),
]
Insert = Annotated[
    Literal["prose", "plan", "literal"], typer.Option(help="weaving: W_I, WG_I: what an insertion compares.")
]
Overlap = Annotated[Literal["integer", "real"], typer.Option(help="weaving: how overlaps are drawn.")]
Clock = Annotated[
    Literal["wall", "cpu"],
    typer.Option(help="Time searches by the wall, or by their own CPU time (on a busy machine)."),
]
Workers = Annotated[int, typer.Option(min=0, help="weaving, placement, admission: processes; 0: this one.")]


def experiment(
    ctx: typer.Context,
    name: Name,
    out_dir: Out = None,
    repeats: Repeats = 3,
    seeds: Seeds = None,
    milp_seeds: MilpSeeds = 1,
    deadline: Deadline = 1.0,
    quick: Quick = False,
    from_file: From = None,
    stop: Stop = "prose",
    insert: Insert = "prose",
    overlap: Overlap = "integer",
    rates: Rates = None,
    queries: Queries = None,
    splits: Splits = None,
    costs: Costs = None,
    limit: Limit = None,
    real: Real = None,
    seconds: Seconds = None,
    clock: Clock = "wall",
    workers: Workers = 2,
    json: AsJson = False,
) -> None:
    """Make a paper's tables and figures again, with ours beside, and say which of its claims hold."""
    from headrace.service.experiment import (
        AdmissionSetting,
        DistributionSetting,
        FederationSetting,
        PlacementSetting,
        WeavingSetting,
        check_name,
        check_options,
        distribution_setting,
        federation_setting,
        report_from,
        run_experiment,
    )

    check_name(name)
    check_options(name, _given(ctx))
    folder = out_dir or (from_file.parent if from_file else Path(f"{name}-results"))
    setting: AdmissionSetting | DistributionSetting | FederationSetting | PlacementSetting | WeavingSetting
    if from_file:
        _show(report_from(name, from_file, folder), as_json=json)
        return
    if name == "placement":
        setting, what = PlacementSetting(seeds or 20, quick, workers), "problems"
    elif name == "distribution":
        setting = distribution_setting(quick=quick, seeds=seeds, real=real, seconds=seconds)
        what = "runs and plans"
    elif name == "admission":
        setting, what = AdmissionSetting(seeds or 5, milp_seeds, deadline, quick, workers), "runs"
    elif name == "federation":
        setting = federation_setting(
            quick=quick, rates=rates, queries=queries, splits=splits, costs=costs, limit=limit
        )
        what = "queries at a rate"
    else:
        setting = WeavingSetting(1 if quick else repeats, quick, stop, insert, overlap, workers)
        what = "workloads"
    with _progress(what, quiet=json) as show:
        report = run_experiment(setting, folder, clock, show)
    _show(report, as_json=json)


def _given(ctx: typer.Context) -> frozenset[str]:
    """The options that were typed, by name."""
    sources = {name: ctx.get_parameter_source(name) for name in ctx.params}
    return frozenset(name for name, source in sources.items() if source and source.name == "COMMANDLINE")


@contextmanager
def _progress(what: str, *, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """A bar on a terminal, a line every tenth of the way elsewhere."""
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = err()
    if quiet or not console.is_terminal:
        yield lambda done, total: None if quiet else _say(what, done, total)
        return
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _say(what: str, done: int, total: int) -> None:
    if done * 10 // total > (done - 1) * 10 // total and done:
        err().print(f"{what}: {done:,} of {total:,}")


def _show(report: Report, *, as_json: bool) -> None:
    if as_json:
        print_json({**report.data, "files": report.files})
        return
    console = out()
    for shown in report.tables:
        right = frozenset(shown.columns[shown.left :])
        console.print(shown.title, style="bold")
        console.print(table(shown.columns, shown.rows, right))
        console.print(f"{shown.note}\n", style="dim")
    console.print(report.statement, style="bold")
    console.print(f"Written: {', '.join(map(str, report.files))}", soft_wrap=True)
