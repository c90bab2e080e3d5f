"""Which names a SELECT can use, and the plan columns they stand for.

With one FROM item a column keeps its name in the plan; with several, column c of item a is "a.c". Names are
found without regard to case, as Spark does. The ends of a window go by window_start, window_end, window.start
and window.end whatever form the window was written in, and by any alias a subquery gave them.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from headrace.ids import did_you_mean
from headrace.plan.expr import ColumnRef
from headrace.plan.logical import WINDOW_END, WINDOW_START, WindowInfo
from headrace.plan.types import DataType
from headrace.sql.place import Source

_ENDS = {"start": WINDOW_START, "end": WINDOW_END}


@dataclass(frozen=True, slots=True)
class Visible:
    """A column a SELECT can name, and the plan column it stands for."""

    name: str
    column: str
    type: DataType


@dataclass(frozen=True, slots=True)
class ScopeItem:
    """One FROM item as names see it. `window` holds plan names."""

    alias: str
    columns: tuple[Visible, ...]
    window: WindowInfo | None = None
    star_window: bool = False
    """Whether `*` gives the window's ends too, as it does over HOP and TUMBLE."""


@dataclass(frozen=True, slots=True)
class Scope:
    """`window` is the window this SELECT itself opens, over the item called `window_alias`."""

    source: Source
    items: tuple[ScopeItem, ...]
    window: WindowInfo | None = None
    window_alias: str = ""

    def resolve(self, node: exp.Column) -> ColumnRef:
        """The plan column of a name, or an error that says what there is."""
        end = self._window_end(node)
        return end if end is not None else self._column(node)

    def can_resolve(self, node: exp.Column) -> bool:
        if window_name(node) is not None and self.window_of(node) is not None:
            return True
        qualifier, name = _qualifier(node), node.name.lower()
        items = [i for i in self.items if not qualifier or i.alias.lower() == qualifier]
        return any(v.name.lower() == name for i in items for v in i.columns)

    def window_of(self, node: exp.Column) -> WindowInfo | None:
        """The window that a name like a.window_end or window.start speaks of; None if there is none."""
        parts = _parts(node)
        name = window_name(node)
        owner = parts[:-2] if len(parts) > 1 and parts[-2] == "window" and name != "window" else parts[:-1]
        if len(owner) > 1:
            return None
        if owner:
            return self._window_of_item(owner[0])
        if self.window is not None:
            return self.window
        windows = [i.window for i in self.items if i.window is not None]
        if len({w.spec for w in windows}) > 1 and name != WINDOW_END:
            aliases = " or ".join(f"{i.alias}.{node.name}" for i in self.items if i.window is not None)
            message = f'"{node.sql()}" could be the window of more than one FROM item'
            raise self.source.error(node, message, f"Write {aliases}.")
        return windows[0] if windows else None

    def _window_of_item(self, alias: str) -> WindowInfo | None:
        for item in self.items:
            if item.alias.lower() == alias:
                mine = self.window is not None and self.window_alias.lower() == alias
                return self.window if mine else item.window
        return None

    def _window_end(self, node: exp.Column) -> ColumnRef | None:
        name = window_name(node)
        if name is None or name == "window":
            return None
        window = self.window_of(node)
        if window is None:
            return None
        column = window.start if name == WINDOW_START else window.end
        return ColumnRef(column, DataType.TIMESTAMP)

    def _column(self, node: exp.Column) -> ColumnRef:
        found = self._matches(node)
        if len(found) == 1:
            return ColumnRef(found[0][1].column, found[0][1].type)
        if found:
            options = " or ".join(f"{alias}.{visible.name}" for alias, visible in found)
            raise self.source.error(
                node, f'column "{node.name}" is in more than one FROM item', f"Write {options}."
            )
        if window_name(node) is not None:
            raise self.source.error(node, f'"{node.sql()}": this SELECT has no window', WINDOW_FORMS)
        qualifier = _qualifier(node)
        names = [v.name for i in self.items if qualifier in ("", i.alias.lower()) for v in i.columns]
        where = f' in "{node.table}"' if node.table else ""
        raise self.source.error(
            node, f'column "{node.name}" does not exist{where}', did_you_mean(node.name, names, "columns")
        )

    def _matches(self, node: exp.Column) -> list[tuple[str, Visible]]:
        qualifier = _qualifier(node)
        items = [i for i in self.items if not qualifier or i.alias.lower() == qualifier]
        if not items and window_name(node) is None:
            aliases = [i.alias for i in self.items]
            hint = did_you_mean(node.table, aliases, "FROM items")
            raise self.source.error(node, f'"{node.table}" is not a FROM item of this SELECT', hint)
        name = node.name.lower()
        return [(i.alias, v) for i in items for v in i.columns if v.name.lower() == name]

    def shown_name(self, node: exp.Column) -> str:
        """What a column is called where it was declared."""
        found = [] if window_name(node) is not None else self._matches(node)
        return found[0][1].name if found else window_name(node) or str(node.name)

    def star(self, node: exp.Expr, alias: str = "") -> list[tuple[str, ColumnRef]]:
        """All columns, or all of one item: what `*` and `a.*` stand for."""
        items = [i for i in self.items if not alias or i.alias.lower() == alias.lower()]
        if not items:
            names = [i.alias for i in self.items]
            message = f'"{alias}" is not a FROM item of this SELECT'
            raise self.source.error(node, message, did_you_mean(alias, names, "FROM items"))
        columns = [(v.name, ColumnRef(v.column, v.type)) for i in items for v in i.columns]
        for item in items:
            window = self._window_of_item(item.alias.lower())
            if item.star_window and window is not None:
                columns.append((WINDOW_START, ColumnRef(window.start, DataType.TIMESTAMP)))
                columns.append((WINDOW_END, ColumnRef(window.end, DataType.TIMESTAMP)))
        return columns


WINDOW_FORMS = (
    "Give it one: GROUP BY window(ts, '5 minutes', '1 second'),"
    " or FROM s [RANGE 5 MINUTES SLIDE 1 SECOND],"
    " or FROM TABLE(HOP(TABLE s, DESCRIPTOR(ts), INTERVAL '1' SECOND, INTERVAL '5' MINUTES))."
)


def _parts(node: exp.Column) -> list[str]:
    return [part.name.lower() for part in node.parts]


def _qualifier(node: exp.Column) -> str:
    return ".".join(_parts(node)[:-1])


def window_name(node: exp.Column) -> str | None:
    """`window_start`, `window_end` or `window` where the name is one of a window's; else None."""
    parts = _parts(node)
    if len(parts) > 1 and parts[-2] == "window" and parts[-1] in _ENDS:
        return _ENDS[parts[-1]]
    return parts[-1] if parts[-1] in (WINDOW_START, WINDOW_END, "window") else None
