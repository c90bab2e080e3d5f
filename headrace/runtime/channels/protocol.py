"""The channel protocol: one maker, any number of readers, each row to each of them exactly once.

A channel holds numbered parts (rows) and marks. A mark says that every row of the parts from a number on is
later than some event times. It must never overtake rows: a reader takes it for its watermark once it has read
all parts with lower numbers. The maker may put a part or a mark again under its number, after a crash: it is
the same one.

A reader tells up to where it has read, for good (`advance`); what all readers have behind them is removed by
`collect`. A reader that comes when some parts are gone gets what is there, and is told from which event times
on that is all there was.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Mark:
    """Every row of a part numbered `parts` or higher has event times later than these (microseconds)."""

    parts: int
    times: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Size:
    """What a channel holds."""

    parts: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Limit:
    """A channel that holds as much is full: its maker should wait for its readers."""

    parts: int = 10_000
    bytes: int = 4 << 30


class Channel(Protocol):
    @property
    def id(self) -> str: ...

    # -- for the maker

    def put(self, number: int, part: Path) -> None:
        """Give a file of rows."""
        ...

    def mark(self, number: int, mark: Mark) -> None:
        """Promise something of what comes; a higher number is a later promise."""
        ...

    def end(self) -> None:
        """Nothing more comes."""
        ...

    def reopen(self) -> None:
        """Something may come again."""
        ...

    def collect(self, given: int) -> int:
        """Remove what every reader has behind it, of the parts below `given`, which are never put again.
        Returns below which number all are gone."""
        ...

    def full(self) -> bool: ...

    # -- for readers

    def enlist(self, reader: str) -> Mapping[str, int]:
        """Nothing is removed any more before this reader has passed it. Returns the event times from which on
        it gets all rows; none: it gets all there ever were. Tells the same when it is called again."""
        ...

    def advance(self, reader: str, parts: int) -> None:
        """Parts with lower numbers are never read again by this reader, whatever happens to it."""
        ...

    def marks(self) -> Mapping[int, Mark]:
        """The promises by number, as far back as a reader can need them."""
        ...

    def leave(self, reader: str) -> None:
        """The reader is no more."""
        ...

    def ended(self) -> bool: ...

    def size(self) -> Size: ...
