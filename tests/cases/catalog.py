"""The fixed catalog of the golden cases: smart plugs, an auction site and two static tables."""

from __future__ import annotations

from headrace.catalog.model import FileSource, Format, Stream, Table
from headrace.plan.types import DataType

_FILES = FileSource(path="data", format=Format.PARQUET)


def _stream(name: str, time: str = "ts", watermark: str = "10 seconds", /, **columns: str) -> Stream:
    types = {column: DataType(kind) for column, kind in columns.items()}
    types[time] = DataType.TIMESTAMP
    return Stream.model_validate(
        {"name": name, "columns": types, "time": time, "watermark": watermark, "source": _FILES}
    )


def _table(name: str, /, **columns: str) -> Table:
    return Table(name=name, columns={c: DataType(kind) for c, kind in columns.items()}, source=_FILES)


STREAMS = {
    s.name: s
    for s in (
        _stream("readings", house="int", household="int", plug="int", property="string", value="double"),
        _stream("bids", auction="bigint", bidder="bigint", price="double"),
        _stream("auctions", id="bigint", seller="bigint", category="string", reserve="double", opened="date"),
        _stream("clicks", "at", "0 seconds", user="bigint", url="string", ok="boolean", bytes="int"),
        _stream("odd", window_start="timestamp", x="double"),
    )
}
TABLES = {
    t.name: t
    for t in (
        _table("plugs", house="int", plug="int", kind="string", limit_w="double"),
        _table("users", id="bigint", name="string", since="date"),
    )
}
