"""Wrong inputs of the command line, one by one: what is typed, what is in the project, what is said, where.

`{p}` stands for the project's folder. `project` replaces a part of the sample project, `prepare` spoils what
is on disk. `place` is what the message starts with: the file, line and column that are to blame, or nothing
where no line of a file is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

SQL = "SELECT ts, k, v FROM s WHERE v > 2"
"""The query `high`, on line 18 of the project file, from column 10."""
YAML = "{p}/headrace.yaml"


class Bad(NamedTuple):
    id: str
    args: tuple[str, ...]
    says: str
    place: str = ""
    project: tuple[str, str] = ("", "")
    prepare: Callable[[Path], object] = lambda folder: None


def _check(id: str, old: str, new: str, at: str, says: str) -> Bad:
    return Bad(id, ("check", "{p}"), says, f"{YAML}:{at}: ", (old, new))


def _sql(id: str, sql: str, column: int, says: str) -> Bad:
    """A wrong query; `column` counts from the start of the SQL."""
    return _check(id, SQL, sql, f"18:{9 + column}", says)


def _file_for_folder(folder: Path) -> None:
    (folder / "headrace.yaml").unlink()
    (folder / "headrace.yaml").mkdir()


def _put(name: str, content: bytes) -> Callable[[Path], object]:
    def put(folder: Path) -> None:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)

    return put


COMMAND_LINE = [
    Bad("no such command", ("chekc", "{p}"), "No such command 'chekc'. Did you mean 'check'?"),
    Bad("no such option", ("check", "{p}", "--jsno"), "No such option: --jsno"),
    Bad("too many arguments", ("check", "{p}", "more"), "Got unexpected extra argument(s) (more)"),
    Bad("no query", ("explain",), "Missing argument 'QUERY'"),
    Bad("an option without its value", ("plan", "{p}", "--only"), "Option '--only' requires an argument"),
    Bad("a limit in words", ("results", "high", "{p}", "--limit", "all"), "Invalid value for '--limit'"),
    Bad("a limit below zero", ("results", "high", "{p}", "--limit", "-1"), "Invalid value for '--limit'"),
    Bad("a flag with a value", ("run", "{p}", "--drain=5"), "Option '--drain' does not take a value"),
    Bad("a path with a zero byte", ("check", "a\0b"), "Invalid value for '[PROJECT]'"),
    Bad("a path that is too long", ("check", "a" * 5000), "File name too long"),
]
PROJECT_PATH = [
    Bad("no such folder", ("check", "{p}/none"), "there is no {p}/none"),
    Bad("a folder without a project", ("plan", "{p}/input"), "there is no {p}/input/headrace.yaml"),
    Bad(
        "a file below a file", ("check", "{p}/input/a.json/x"), "{p}/input/a.json/x cannot be read: Not a dir"
    ),
    Bad("not a project file", ("check", "{p}/input/a.json"), "not valid YAML", "{p}/input/a.json:2:1: "),
    Bad("a folder in place of the file", ("check", "{p}"), "Is a directory", "", ("", ""), _file_for_folder),
    Bad("an empty file", ("check", "{p}"), "is empty", f"{YAML}:1:1: ", ("", ""), _put("headrace.yaml", b"")),
    Bad(
        "not UTF-8",
        ("check", "{p}"),
        "byte 0xff is not UTF-8 text",
        f"{YAML}:2:7: ",
        ("", ""),
        _put("headrace.yaml", b"# a\nname: \xff\n"),
    ),
    Bad("init over a project", ("init", "{p}"), "{p}/headrace.yaml is there already"),
    Bad("init over a file", ("init", "{p}/headrace.yaml"), "is a file, not a folder"),
    Bad("init below a file", ("init", "{p}/headrace.yaml/sub"), "cannot be written to"),
]
NAMES = [
    Bad("explain an unknown query", ("explain", "hihg", "{p}"), 'query "hihg" does not exist'),
    Bad("explain the empty name", ("explain", "", "{p}"), 'query "" does not exist'),
    Bad("results of an unknown query", ("results", "hihg", "{p}"), 'Did you mean "high"?'),
    Bad("reference of an unknown query", ("reference", "hihg", "{p}"), 'Did you mean "high"?'),
    Bad(
        "plan only an unknown query",
        ("plan", "{p}", "--only", "zzz"),
        "The queries here: beats, counts, high",
    ),
    Bad("run only an unknown query", ("run", "{p}", "--only", "zzz"), 'query "zzz" does not exist'),
]
DATA = [
    Bad("results of what never ran", ("results", "high", "{p}"), 'query "high" has no results'),
    Bad("verify what never ran", ("results", "high", "{p}", "--verify"), "headrace run --only high"),
    Bad("results of a console", ("results", "shown", "{p}"), "has a console sink, which keeps no results"),
    Bad(
        "results that are a file",
        ("results", "counts", "{p}"),
        'query "counts" has no results',
        prepare=_put("results/counts", b"x"),
    ),
    Bad(
        "results that are no parquet",
        ("results", "high", "{p}"),
        "{p}/results/high/part-0.parquet cannot be read",
        prepare=_put("results/high/part-0.parquet", b"junk"),
    ),
    Bad("reference without an end", ("reference", "beats", "{p}"), 'stream "endless" never ends'),
    Bad(
        "reference without input",
        ("reference", "high", "{p}"),
        'stream "s": there is no folder {p}/nowhere',
        project=("path: input", "path: nowhere"),
    ),
    Bad(
        "reference of another format",
        ("reference", "high", "{p}"),
        "{p}/input/a.json cannot be read as the declared columns",
        project=("format: json", "format: parquet"),
    ),
    Bad(
        "input that is not UTF-8",
        ("reference", "high", "{p}"),
        'stream "s": {p}/input/b.json is not UTF-8 text',
        prepare=_put("input/b.json", b'{"k": "\xff"}\n'),
    ),
    Bad("drain without an end", ("run", "{p}", "--drain"), "it cannot be drained"),
    Bad(
        "run without queries",
        ("run", "{p}", "--drain"),
        "the project has no queries to run",
        prepare=_put("headrace.yaml", b"name: empty\n"),
    ),
    Bad(
        "a damaged state file",
        ("queries", "{p}"),
        "the state file {p}/.headrace/state.db is damaged",
        prepare=_put(".headrace/state.db", b"x" * 5000),
    ),
    Bad(
        "a file in place of the state folder",
        ("run", "{p}", "--drain", "--only", "high"),
        "cannot use {p}/.headrace",
        prepare=_put(".headrace", b"x"),
    ),
    Bad(
        "a picture in no folder",
        ("plan", "{p}", "--svg", "{p}/ok.svg", "--html", "{p}/no/x.html"),
        "cannot write {p}/no/x.html: there is no such folder",
    ),
    Bad(
        "a picture over a folder",
        ("explain", "high", "{p}", "--svg", "{p}/input"),
        "cannot write {p}/input: it is a folder",
    ),
]
FILE = [
    _check("not YAML", "name: small", "name: [small", "1:7", "is not closed"),
    _check("a tab", "    time: ts", "\ttime: ts", "5:1", "a tab cannot be used here"),
    _check("an unknown key", "watermark:", "watermrk:", "6:5", 'unknown key "watermrk"'),
    _check("an unknown type", "k: int", "k: itn", "4:33", '"itn" is not a type'),
    _check("no such event time", "time: ts", "time: at", "5:11", '"at"'),
    _check("a wrong duration", "5 seconds", "5 moons", "6:16", '"5 moons" is not a duration'),
    _check("an unknown source", "kind: files", "kind: kafka", "7:20", '"kafka" is not one of'),
    _check("an unknown sink", "sink: console", "sink: konsole", "21:11", '"konsole" is not one of'),
    _check("an unknown site", "sink: console", "site: moon", "21:11", 'site "moon" does not exist'),
    _check("no SQL file", f"sql: {SQL}", "file: no.sql", "18:11", "there is no file {p}/no.sql"),
    _check(
        "two queries in one folder",
        "sink: console",
        "sink: {kind: json, path: results/counts}",
        "21:30",
        'the same folder as query "counts"',
    ),
    _check(
        "a sink inside a source",
        "sink: console",
        "sink: {kind: json, path: input}",
        "21:30",
        'is inside what stream "s" reads',
    ),
]
QUERY = [
    _sql("a slip in SELECT", "SELEC v FROM s", 1, 'a query starts with SELECT, not with "SELEC"'),
    _sql("an unknown stream", "SELECT v FROM ss", 15, 'stream or table "ss" does not exist'),
    _sql("an unknown column", "SELECT vv FROM s", 8, 'column "vv" does not exist'),
    _sql("an unknown function", "SELECT abss(v) AS a FROM s", 8, 'function "abss" does not exist'),
    _sql("a wrong type", "SELECT upper(v) AS a FROM s", 8, "upper takes a string; it got double"),
    _sql("no closing bracket", "SELECT (v FROM s", 11, "expected )"),
    _sql("no closing quote", "SELECT v FROM s WHERE 'a = v", 23, "a quoted text is not closed"),
    _sql("two commas", "SELECT ts,, v FROM s", 10, "nothing follows this comma"),
    _sql("two statements", "SELECT v FROM s; SELECT k FROM s", 18, "several statements in one query"),
    _sql("a statement that writes", "DELETE FROM s", 1, "DELETE is not supported"),
    _sql("no window", "SELECT count(*) AS n FROM s", 8, "an aggregate needs a window"),
    _sql(
        "two windows",
        "SELECT count(*) AS n FROM s GROUP BY window(ts, '1 minute'), window(ts, '5 minutes')",
        62,
        "a second window in GROUP BY is not supported",
    ),
    _sql("an aggregate in WHERE", "SELECT v FROM s WHERE sum(v) > 1", 23, "sum cannot stand in WHERE"),
    _sql("a number that is too large", "SELECT 9223372036854775808 AS n FROM s", 8, "does not fit a bigint"),
    _sql("an order", "SELECT v FROM s ORDER BY v", 17, "ORDER BY is not supported"),
    _sql("no bound in time", "SELECT a.v FROM s a JOIN s b ON a.k = b.k", 26, "nothing bounds the time"),
    _sql(
        "one name for two columns", "SELECT v, k AS V FROM s", 11, 'two columns of the result are called "V"'
    ),
]
ALL = [*COMMAND_LINE, *PROJECT_PATH, *NAMES, *DATA, *FILE, *QUERY]
