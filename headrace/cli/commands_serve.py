"""The service and what is asked of it: serve, status, rebalance."""

from __future__ import annotations

import json as json_lines
import os
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli.options import HERE, AsJson, ProjectPath
from headrace.cli.render import err, out, print_json
from headrace.service.project import open_project

if TYPE_CHECKING:
    from headrace.service.serving import Event

Policy = Annotated[str | None, typer.Option(metavar="POLICY", help="ours, balance or degradation.")]
Model = Annotated[
    str | None, typer.Option(metavar="MODEL", help="How full a site is: cpu, memory, network, combined.")
]
Rule = Annotated[
    list[str] | None,
    typer.Option(metavar="KEY=VALUE", help="A key of planner.rebalance, for this time; may be repeated."),
]


def serve(
    project: ProjectPath = HERE,
    rebalance: Annotated[
        str, typer.Option(metavar="MODE", help="off; dry: tell what would be moved; auto: move it.")
    ] = "off",
    every: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="How often it is decided what to move.")
    ] = None,
    policy: Policy = None,
    model: Model = None,
    rule: Rule = None,
    master: Annotated[
        str | None, typer.Option(metavar="URL", help="Run on this Spark instead of the sites' endpoints.")
    ] = None,
    json: AsJson = False,
) -> int:
    """Run the queries until stopped, whatever fails; take add, drop and move; tell events as lines."""
    from headrace.service.rebalancing_how import with_rules
    from headrace.service.serving import serve_of, serve_project

    found = open_project(project)
    how = serve_of(rebalance, every, policy, model, master, with_rules(found, rule or ()))
    outcome = serve_project(found, how, os.environ, _as_json if json else _as_line)
    for query, reason in outcome.failures if not json else ():
        err().print(
            f"{query} failed: {reason.splitlines()[0] if reason else 'no reason given'}", soft_wrap=True
        )
    # A service was told to stop; what failed meanwhile is no wrong input.
    return 1 if outcome.failures else 0


def _as_line(event: Event) -> None:
    """Rows of console sinks are results, and go where results go."""
    if event.event == "row":
        out().print(f"{event.query}: {event.text}", soft_wrap=True)
    else:
        err().print(f"{event.at}  {event.text}", soft_wrap=True)


def _as_json(event: Event) -> None:
    """A line each, at once: somebody may be reading along."""
    known = {name: value for name, value in asdict(event).items() if value is not None}
    sys.stdout.write(json_lines.dumps(known, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def status(project: ProjectPath = HERE, json: AsJson = False) -> None:
    """What should run and what was seen of it, sites and how full they are, moves."""
    from headrace.service.status import status_of

    data = status_of(open_project(project))
    if json:
        print_json(data)
    else:
        from headrace.cli.status_text import print_status

        print_status(data)


def rebalance(
    project: ProjectPath = HERE,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be moved, and why.")
    ] = False,
    policy: Policy = None,
    model: Model = None,
    rule: Rule = None,
    timeout: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="How long to wait for each move.")
    ] = 300.0,
    json: AsJson = False,
) -> int:
    """Move jobs from full sites to others, as far as it is worth it; the run that is on does it."""
    from headrace.service.rebalance import advise
    from headrace.service.rebalance import rebalance as carry_out
    from headrace.service.rebalancing_how import how_of, with_rules

    found = open_project(project)
    how = how_of(policy, model, asked=with_rules(found, rule or ()))
    data = advise(found, how).data if dry_run else carry_out(project, how, timeout)
    if json:
        print_json(data)
    else:
        from headrace.cli.status_text import print_rebalance
        from headrace.service.moving import told

        print_rebalance(data)
        for record in data["done"]:
            out().print(told(record), soft_wrap=True)
    return 0 if all(one.state in ("asked", "moving", "moved") for one in data["done"]) else 1
