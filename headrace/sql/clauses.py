"""Which clauses a SELECT may have. The list is of what is known; everything else is refused by its name."""

from __future__ import annotations

from sqlglot import exp

from headrace.sql.names import REFUSED
from headrace.sql.place import Source

_KNOWN = {"expressions", "from_", "joins", "where", "group", "having", "with_"}
_NAMES = {
    "order": ("ORDER BY", "The rows of a continuous query have no order; sort what you read from the sink."),
    "limit": ("LIMIT", "A continuous query has no end; use WHERE or HAVING."),
    "offset": ("OFFSET", "A continuous query has no end; use WHERE or HAVING."),
    "distinct": ("SELECT DISTINCT", "Group by the columns in a window."),
    "laterals": ("LATERAL VIEW", ""),
    "qualify": ("QUALIFY", "Use HAVING over a window."),
    "windows": ("WINDOW", "Use GROUP BY window(ts, '5 minutes', '1 second')."),
    "cluster": ("CLUSTER BY", ""),
    "distribute": ("DISTRIBUTE BY", ""),
    "sort": ("SORT BY", ""),
    "hint": ("a /*+ hint */", "Headrace plans the query itself."),
    "pivots": ("PIVOT", "Use sum(x) FILTER (WHERE y = 1)."),
    "into": ("SELECT INTO", "Sinks are declared in the project file."),
    "kind": ("SELECT AS STRUCT", ""),
}
_GROUP = {"rollup": "ROLLUP", "cube": "CUBE", "grouping_sets": "GROUPING SETS", "all": "GROUP BY ALL"}
_GROUP_NODES: dict[type[exp.Expr], str] = {
    exp.Rollup: "ROLLUP",
    exp.Cube: "CUBE",
    exp.GroupingSets: "GROUPING SETS",
}


def check_clauses(select: exp.Select, source: Source) -> None:
    for part, value in select.args.items():
        if part in _KNOWN or not value:
            continue
        name, hint = _NAMES.get(part, (part.rstrip("_").upper(), ""))
        place = value[0] if isinstance(value, list) else value
        node = place if isinstance(place, exp.Expr) and _has_place(place) else select
        raise source.refusal(node, f"{name} is not supported", hint)
    if not select.expressions:
        raise source.error(select, "this SELECT has no columns", "Name some, or write SELECT *.")
    _check_with(select, source)
    _check_group(select, source)
    _check_stars(select, source)


def _has_place(node: exp.Expr) -> bool:
    return any("start" in part.meta for part in node.walk())


def _check_with(select: exp.Select, source: Source) -> None:
    clause = select.args.get("with_")
    if clause is not None and clause.args.get("recursive"):
        raise source.refusal(clause, "WITH RECURSIVE is not supported", "Use a plain WITH.")


def _check_group(select: exp.Select, source: Source) -> None:
    group = select.args.get("group")
    if group is None:
        return
    hint = "Name the columns and the window in GROUP BY, one query for each grouping."
    for part, name in _GROUP.items():
        if group.args.get(part):
            raise source.refusal(group, f"{name} is not supported", hint)
    for node in group.expressions:
        name = str(node.this).lower() if isinstance(node, exp.Anonymous) else ""
        if name in REFUSED:
            raise source.refusal(node, *REFUSED[name])
        if type(node) in _GROUP_NODES:
            raise source.refusal(node, f"{_GROUP_NODES[type(node)]} is not supported", hint)


def _check_stars(select: exp.Select, source: Source) -> None:
    grouped = select.args.get("group") is not None
    for node in select.expressions:
        star = node.this if isinstance(node, exp.Column) else node
        if not isinstance(star, exp.Star):
            continue
        if any(star.args.get(part) for part in ("except_", "except", "replace", "rename")):
            raise source.refusal(node, "SELECT * EXCEPT is not supported", "Name the columns.")
        if grouped:
            raise source.refusal(node, "SELECT * with GROUP BY is not supported", "Name the columns.")
