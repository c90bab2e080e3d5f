"""Rules of rebalancing that a command is given: `KEY=VALUE`, with keys and values as in the project file.

They are read as the section `planner.rebalance` is, so that what is wrong is told in the same words; the
place is that in the list of rules, one to a line.
"""

from __future__ import annotations

from collections.abc import Sequence

from headrace.catalog.check import check_rebalance
from headrace.catalog.document import Document, Trail
from headrace.catalog.model import Project, Rebalance
from headrace.catalog.problems import Problem, first_error
from headrace.catalog.sections import bare_numbers
from headrace.catalog.translate import validate
from headrace.errors import UserError

_PLACE: Trail = ("planner", "rebalance")
_OPTION = "--rule"


def with_rules(project: Project, given: Sequence[str]) -> Rebalance:
    """The rules of the project file, but for those that are given. Raises UserError."""
    rules = project.planner.rebalance
    if not given:
        return rules
    document = Document("".join(f"{_line(one)}\n" for one in given), _OPTION)
    body = document.data if isinstance(document.data, dict) else {}
    found, problems = validate(Rebalance, body, _PLACE)
    _raise_first([*bare_numbers(body, _PLACE), *problems], document)
    if found is None:
        return rules
    made = rules.model_copy(update={key: getattr(found, key) for key in found.model_fields_set})
    planner = project.planner.model_copy(update={"rebalance": made})
    wrong = check_rebalance(project.model_copy(update={"planner": planner}))
    # What the file says was looked at when it was read, and a query of it may have been dropped since.
    _raise_first([problem for problem in wrong if problem.trail[2] in found.model_fields_set], document)
    return made


def _line(rule: str) -> str:
    key, equals, value = rule.partition("=")
    if not equals or not key.strip() or not value.strip() or "\n" in rule:
        raise UserError(f'"{rule}" is no rule', hint="Write KEY=VALUE, as in percent_difference=20%.")
    return f"{key.strip()}: {value.strip()}"


def _raise_first(problems: Sequence[Problem], document: Document) -> None:
    """Where a document has the section itself, not the file around it."""
    inside = [Problem(p.trail[2:], p.message, p.hint, p.at_key, p.refused) for p in problems]
    error = first_error(inside, document)
    if error is not None:
        raise error
