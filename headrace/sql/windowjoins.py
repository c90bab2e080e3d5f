"""When two windowed relations can be joined.

Their windows must end together: same slide, and ranges that differ by a multiple of it. CQL windows are "the
last 5 minutes" at every instant of the query, so relations meet at that instant without saying so; the SQL
forms know no such instant, and must say `a.window_end = b.window_end` (or the starts, or the windows, where
the ranges are equal). That equality is then the join itself and no condition of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headrace.errors import UserError
from headrace.plan.expr import Call, ColumnRef, Expr
from headrace.plan.logical import LogicalPlan, WindowSpec
from headrace.sql.extensions import Form
from headrace.sql.place import Source
from headrace.sql.sources import FromItem


@dataclass(frozen=True, slots=True)
class Windows:
    """The windows of the joined items so far: plan columns of their ends and starts, and their ranges."""

    implicit: bool
    specs: tuple[WindowSpec, ...] = ()
    starts: dict[str, WindowSpec] | None = None
    ends: frozenset[str] = frozenset()

    @classmethod
    def of(cls, item: FromItem, plan: LogicalPlan) -> Windows:
        info = plan.window
        implicit = item.form is Form.CQL
        if info is None:
            return cls(implicit)
        return cls(implicit, (info.spec,), {info.start: info.spec}, frozenset({info.end}))

    def and_(self, other: Windows) -> Windows:
        return Windows(
            self.implicit and other.implicit,
            self.specs + other.specs,
            {**(self.starts or {}), **(other.starts or {})},
            self.ends | other.ends,
        )


def consume_window_equalities(
    conditions: Sequence[Expr], left: Windows, right: Windows, item: FromItem, source: Source
) -> list[Expr]:
    """The conditions without those that say what a window join means anyway."""
    _check_specs(left, right, item, source)
    rest: list[Expr] = []
    said = left.implicit and right.implicit
    for condition in conditions:
        if _equates_windows(condition, left, right, item, source):
            said = True
        else:
            rest.append(condition)
    if not said:
        message = f'the windows of "{item.alias}" and of the items before it are joined without being equated'
        hint = f"Add AND a.window_end = {item.alias}.window_end, with a the other item."
        raise source.error(item.node, message, hint)
    return rest


def _check_specs(left: Windows, right: Windows, item: FromItem, source: Source) -> None:
    if not left.specs or not right.specs:
        message = f'"{item.alias}" and the items before it cannot be joined: only one of them has a window'
        hint = (
            "Give both a window, or give both a range: FROM a [RANGE 5 MINUTES] AS x JOIN b [RANGE ...] AS y."
        )
        raise source.error(item.node, message, hint)
    mine, theirs = left.specs[0], right.specs[0]
    if not mine.ends_align(theirs):
        before = f"those of the items before it ({mine})"
        message = f'the windows of "{item.alias}" ({theirs}) and {before} do not end together'
        hint = "Use the same slide for both, and ranges that differ by a multiple of it."
        raise source.error(item.node, message, hint)


def _equates_windows(condition: Expr, left: Windows, right: Windows, item: FromItem, source: Source) -> bool:
    match condition:
        case Call("=", (ColumnRef(name=a), ColumnRef(name=b))):
            if (a in left.ends and b in right.ends) or (b in left.ends and a in right.ends):
                return True
            starts = left.starts or {}
            theirs = right.starts or {}
            pair = (a, b) if a in starts and b in theirs else (b, a)
            if pair[0] in starts and pair[1] in theirs:
                if starts[pair[0]] != theirs[pair[1]]:
                    raise _different_ranges(item, source)
                return True
    return False


def _different_ranges(item: FromItem, source: Source) -> UserError:
    message = "windows of different ranges never start and end together"
    return source.error(item.node, message, "Equate their ends: a.window_end = b.window_end.")
