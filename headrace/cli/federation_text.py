"""The answer to a federation problem, to read: engine of every operator, cost of every part, and why others
lost."""

from __future__ import annotations

from rich.text import Text

from headrace.cli.render import out, table
from headrace.service.solve import FederationAnswer

_MOST_OPERATORS = 60
_MOST_LETTERS = 24
_NUMBERS = frozenset({"part", "rows/s", "held", "u", "C_b", "C_u", "in", "work", "statements", "out"})


def print_federation(answer: FederationAnswer) -> None:
    console = out()
    rows = [
        (
            operator["id"],
            operator["kind"],
            ", ".join(operator["inputs"]),
            operator["engine"],
            str(operator["part"] + 1),
            _figure(operator["rate"]),
            _figure(operator["rows"]),
        )
        for operator in answer["operators"][:_MOST_OPERATORS]
    ]
    console.print(table(("operator", "kind", "reads", "engine", "part", "rows/s", "held"), rows, _NUMBERS))
    _more(len(answer["operators"]) - _MOST_OPERATORS, "operators")
    console.print()
    console.print(_parts(answer))
    console.print()
    if answer["losers"]:
        console.print(_losers(answer))
        console.print()
    for line in _summary(answer):
        console.print(line)


def _parts(answer: FederationAnswer) -> object:
    rows = [
        (
            str(i + 1),
            part["engine"],
            *(_figure(part[key]) for key in ("u", "transfer_in", "work", "statement", "transfer_out")),
        )
        for i, part in enumerate(answer["parts"][:_MOST_OPERATORS])
    ]
    return table(("part", "engine", "u", "in", "work", "statements", "out"), rows, _NUMBERS)


def _losers(answer: FederationAnswer) -> object:
    rows = [
        (
            _letters(loser["engines"]),
            _figure(loser["bottleneck"]),
            _figure(loser["utilisation"]),
            loser["why"],
        )
        for loser in answer["losers"]
    ]
    return table(("not chosen", "C_b", "C_u", "why"), rows, _NUMBERS)


def _letters(engines: list[str]) -> str:
    """Operators in their order: S on Spark, D in DuckDB."""
    if len(set(engines)) == 1:
        return f"all on {engines[0]}"
    letters = "".join(engine[0].upper() for engine in engines)
    return letters if len(letters) <= _MOST_LETTERS else f"{letters[:_MOST_LETTERS]}..."


def _summary(answer: FederationAnswer) -> list[Text]:
    verdict = "feasible" if answer["feasible"] else "not feasible: it cannot keep up with the streams"
    costs = f"C_b {_figure(answer['bottleneck'])}, C_u {_figure(answer['utilisation'])}"
    count = answer["plans_examined"]
    examined = f"{count:,} {'plan' if count == 1 else 'plans'} examined"
    if answer["plans_examined_again"]:
        examined += f", {answer['plans_examined_again']:,} again for the least C_u"
    times = f"{answer['phase_one_seconds'] * 1000:.2f} + {answer['phase_two_seconds'] * 1000:.2f} ms"
    return [Text(f"{costs}: {verdict}", style="bold"), Text(f"{answer['planner']}, {examined}, {times}")]


def _figure(value: float) -> str:
    return f"{value:,.1f}" if abs(value) >= 1000 else f"{value:.4g}"


def _more(count: int, what: str) -> None:
    if count > 0:
        out().print(Text(f"... and {count:,} more {what}; --json gives all", style="dim"))
