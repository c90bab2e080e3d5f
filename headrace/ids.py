"""Names of things. A name is part of paths and plans, so it is checked once, here."""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Iterable

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}\Z")
"""A legal name of a stream, table, site, link end or query."""


def is_name(text: str) -> bool:
    return NAME.match(text) is not None


def nearest(name: str, existing: Iterable[str]) -> str | None:
    """The existing name most like `name`, if any is close enough to be a slip of the hand."""
    names = {n.lower(): n for n in existing}
    found = difflib.get_close_matches(name.lower(), list(names), n=1, cutoff=0.6)
    return names[found[0]] if found else None


def did_you_mean(name: str, existing: Iterable[str], what: str) -> str:
    """A hint that offers the nearest existing name, and otherwise all of them."""
    names = sorted(set(existing))
    close = nearest(name, names)
    if close is not None:
        return f'Did you mean "{close}"?'
    if not names:
        return f"There are no {what}."
    shown = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
    return f"The {what} here: {shown}."


def fingerprint(text: str) -> str:
    """A short, stable digest of a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]
