"""Wrong project files. In each text ▶ stands before the character that the error must point at; it is
taken out before the file is written. Then come a part of the message and a part of the hint."""

from __future__ import annotations

from typing import NamedTuple

STREAM = """\
name: p
streams:
  plugs:
    columns: {ts: timestamp, k: string, v: double}
    time: ts
    source: {kind: files, path: data/in, format: parquet}
"""
TABLE = """\
name: p
tables:
  rooms:
    columns: {room: string, floor: int}
"""
DRAWN = """\
name: p
streams:
  plugs:
    columns: {ts: timestamp, k: string, n: int}
    time: ts
    source:
      kind: generator
"""
PLUGS = "{kind: generator, shape: smart-plugs}"


class Bad(NamedTuple):
    id: str
    text: str
    message: str
    hint: str = ""


def stream(source: str, columns: str = "{ts: timestamp, v: double}", rest: str = "") -> str:
    """A project of one stream, in which one line is wrong."""
    return f"name: p\nstreams:\n  s:\n    columns: {columns}\n    time: ts\n    source: {source}\n{rest}"


def drawn(n: str, k: str = "{kind: choice, values: [a]}") -> str:
    """A generated stream, with the distribution of its int column `n` and its string column `k`."""
    return f"{DRAWN}      columns:\n        k: {k}\n        n: {n}\n"


def rows(*lines: str) -> str:
    return TABLE + "    rows:\n" + "".join(f"      - {line}\n" for line in lines)


def query(body: str) -> str:
    return f"{STREAM}queries:\n  q:\n{body}"


SYNTAX = [
    Bad("tab", "name: p\nstreams:\n▶\ts: {}\n", "a tab cannot be used here", "spaces"),
    Bad("deeper", "name: p\n  streams▶: {}\n", "a second key cannot start here", "indentation"),
    Bad("colon", "name: p▶: q\n", "a second key cannot start here", "quotes"),
    Bad("shallower", "name: p\nlinks:\n  - between: [a, b]\n ▶- between: [a, c]\n", "indentation", "Align"),
    Bad("bracket", "name: p\nlinks: [▶[a\n", "bracket or brace"),
    Bad("brace", "name: p\nsites: ▶{a: {}\nlinks: []\n", "brace is not closed", "comma"),
    Bad("quote", "name: ▶'p\nlinks: []\n", "a quote is opened and never closed", "Close"),
    Bad("start", "name: ▶@p\n", "cannot start with this character", "quotes"),
    Bad("alias", "name: ▶*p\n", "names no anchor", "quote the *"),
    Bad("documents", "name: p\n▶---\nname: q\n", "more than one YAML document", "---"),
    Bad("character", "name: p▶\x07\n", "U+0007 is not allowed", "Remove"),
    Bad("twice", "name: p\nlinks: []\n▶name: q\n", '"name" is given twice', "line 1"),
    Bad("stream twice", STREAM + "  ▶plugs:\n    time: ts\n", '"plugs" is given twice', "line 3"),
    Bad("endless", "name: p\nlinks: &x [▶*x]\n".replace("▶", "").replace("&x", "▶&x"), "endless"),
    Bad("tag", "name: ▶!secret p\n", 'tag "!secret"', "Remove the tag"),
    Bad("key is a list", "name: p\n? ▶[a]\n: 1\n", "a key must be one word"),
    Bad("infinite", STREAM + "    rate: ▶.inf\n", ".inf is not a finite number"),
    Bad("not an int", STREAM + "    rate: ▶!!int x\n", '"x" cannot be read'),
    Bad("merge", STREAM + "  t:\n    <<: ▶3\n", '"<<" must name a mapping'),
]
SHAPE = [
    Bad("not a mapping", "▶- name: p\n", "the project file must be a mapping", ""),
    Bad("just text", "▶streams\n", 'must be a mapping (key: value), not "streams"'),
    Bad("no name", "# hello\n▶links: []\n", '"name" is missing in the project file', "name: my-project"),
    Bad("name is a number", "name: ▶12\n", "name must be text, not 12", "quotes"),
    Bad("name is empty", "name: ▶''\n", "the project's name is empty"),
    Bad("top key", "name: p\n▶stream: {}\n", 'unknown key "stream" in the project file', '"streams"'),
    Bad("far top key", "name: p\n▶zzz: {}\n", 'unknown key "zzz"', "name, planner, queries"),
    Bad("streams is a list", "name: p\n▶streams: [a]\n", "streams must be a mapping of names, not a list"),
    Bad(
        "stream is text",
        "name: p\nstreams:\n  s: ▶files\n",
        'streams.s must be a mapping (key: value), not "f',
    ),
    Bad(
        "stream is blank",
        "name: p\nstreams:\n  ▶s:\n",
        "streams.s must be a mapping (key: value), not nothing",
    ),
    Bad(
        "stream name", "name: p\nstreams:\n  ▶my stream: {}\n", '"my stream" is not a name', "letters, digits"
    ),
    Bad("digit name", "name: p\nsites:\n  ▶1st: {}\n", '"1st" is not a name', "start with a digit"),
    Bad("name in body", STREAM + "    ▶name: plugs\n", 'unknown key "name" in streams.plugs', '"plugs"'),
    Bad("key", STREAM + "    ▶watermrk: 1s\n", 'unknown key "watermrk" in streams.plugs', '"watermark"'),
    Bad(
        "no columns",
        "name: p\nstreams:\n  ▶s:\n    time: t\n    source: {kind: generator}\n",
        '"columns" is missing',
    ),
    Bad(
        "no time",
        STREAM.replace("    time: ts\n", "").replace("  plugs", "  ▶plugs"),
        '"time" is missing',
        "time: ts",
    ),
    Bad(
        "no source",
        "name: p\nstreams:\n  ▶s: {columns: {ts: timestamp}, time: ts}\n",
        '"source" is missing',
        "kind",
    ),
    Bad(
        "source is text", stream("▶parquet"), 'streams.s.source must be a mapping (key: value), not "parquet"'
    ),
    Bad("no kind", stream("{path: x}").replace("source", "▶source"), '"kind" is missing in streams.s.source'),
    Bad("kind", stream("{kind: ▶file, path: x}"), '"file" is not one of files, generator, rate', '"files"'),
    Bad(
        "far kind", stream("{kind: ▶kafka}"), '"kafka" is not one of', "choices here: files, generator, rate"
    ),
    Bad(
        "no path",
        stream("{kind: files, format: csv}").replace("source", "▶source"),
        '"path" is missing',
        "data/in",
    ),
    Bad(
        "no format",
        stream("{kind: files, path: x}").replace("source", "▶source"),
        '"format" is missing',
        "parquet",
    ),
    Bad(
        "format",
        stream("{kind: files, path: x, format: ▶parqet}"),
        "not one of parquet, json, csv",
        '"parquet"',
    ),
    Bad("source key", stream("{kind: files, ▶pth: y, path: x, format: csv}"), 'unknown key "pth"', '"path"'),
    Bad(
        "other source's key", stream("{kind: files, ▶files: 3, path: x, format: csv}"), 'unknown key "files"'
    ),
    Bad("path is a number", stream("{kind: files, path: ▶7, format: csv}"), "must be text, not 7", "quotes"),
    Bad(
        "delimiter",
        stream("{kind: files, path: x, format: csv, delimiter: ▶ab}"),
        "must be exactly one character",
    ),
    Bad("header", stream("{kind: files, path: x, format: csv, header: ▶'yes'}"), "must be true or false"),
    Bad(
        "batch",
        stream("{kind: files, path: x, format: csv, files_per_batch: ▶0}"),
        "must be at least 1, not 0",
    ),
    Bad("rows is text", stream("{kind: generator, rows: ▶'100'}"), "must be a whole number"),
    Bad("rows is a fraction", stream("{kind: generator, rows: ▶1.5}"), "must be a whole number, not 1.5"),
    Bad("rate is true", STREAM + "    rate: ▶true\n", "streams.plugs.rate must be a number, not true"),
    Bad(
        "distinct is 0",
        STREAM + "    distinct: {value: ▶0}\n",
        "streams.plugs.distinct.value must be at least 1, not 0",
    ),
    Bad(
        "distinct is text",
        STREAM + "    distinct: {value: ▶many}\n",
        'streams.plugs.distinct.value must be a whole number, not "many"',
    ),
    Bad("rate is 0", STREAM + "    rate: ▶0\n", "streams.plugs.rate must be more than 0, not 0"),
    Bad("duration", STREAM + "    watermark: ▶5 moons\n", '"5 moons" is not a duration like "5 minutes"'),
    Bad("fine duration", STREAM + "    watermark: ▶0.1 us\n", "finer than a microsecond"),
    Bad("negative", STREAM + "    watermark: ▶-5 seconds\n", 'must be at least 0, not "-5 seconds"'),
    Bad("bare duration", STREAM + "    watermark: ▶10\n", "10 of which unit?", "watermark: 10 seconds"),
    Bad("bare instant", stream("{kind: generator, start: ▶1700000000}"), "is not an instant", "2024-05-01"),
    Bad("instant", stream("{kind: generator, start: ▶noon}"), '"noon" is not an instant like "2024-05-01'),
    Bad("size", "name: p\nsites:\n  a: {memory: ▶4 elephants}\n", '"4 elephants" is not a size like "512m"'),
    Bad("no memory", "name: p\nsites:\n  a: {memory: ▶0}\n", "sites.a.memory must be more than 0"),
    Bad("site key", "name: p\nsites:\n  a: {▶cpus: 3}\n", 'unknown key "cpus" in sites.a', '"cpu"'),
    Bad("planner key", "name: p\nplanner: {▶paralel: 3}\n", 'unknown key "paralel" in planner', '"parallel"'),
    Bad("planner value", "name: p\nplanner:\n  parallel: ▶0\n", "planner.parallel must be at least 1"),
    Bad("planner bool", "name: p\nplanner:\n  rewrite: ▶on\n", 'must be true or false, not "on"'),
    Bad("bare trigger", "name: p\nplanner: {trigger: ▶5}\n", "5 of which unit?", "trigger: 5 seconds"),
    Bad("links is a mapping", "name: p\n▶links: {a: b}\n", "links must be a list", "- between"),
    Bad("link is text", "name: p\nlinks: [▶a]\n", "links[0] must be a mapping"),
    Bad(
        "link key",
        "name: p\nlinks:\n  - between: [a, b]\n    ▶delay: 1s\n",
        'unknown key "delay" in links[0]',
    ),
    Bad(
        "one end",
        "name: p\nlinks:\n  - ▶between: [a]\n",
        "links[0].between must name two sites",
        "[edge, core]",
    ),
    Bad("three ends", "name: p\nlinks:\n  - ▶between: [a, b, c]\n", "must name two sites"),
    Bad("ends are text", "name: p\nlinks:\n  - between: ▶a\n", 'must be a list, not "a"'),
    Bad("link cost below 0", "name: p\nlinks:\n  - between: [a, b]\n    cost: ▶-1\n", "at least 0, not -1"),
    Bad("link cost is text", "name: p\nlinks:\n  - between: [a, b]\n    cost: ▶high\n", "must be a number"),
    Bad(
        "storage",
        "name: p\nsites: {a: {storage: ▶fast}}\n",
        '"fast" is not a whole path',
        "storage: /mnt/fast",
    ),
    Bad("remote storage", "name: p\nsites: {a: {storage: ▶s3://b/c}}\n", '"s3://b/c" is not a whole path'),
    Bad(
        "rule",
        "name: p\nplanner: {rebalance: {▶polcy: ours}}\n",
        'key "polcy" in planner.rebalance',
        '"policy"',
    ),
    Bad(
        "policy",
        "name: p\nplanner: {rebalance: {policy: ▶pays}}\n",
        "is not one of ours, balance, degradation",
    ),
    Bad(
        "model",
        "name: p\nplanner: {rebalance: {model: ▶gpu}}\n",
        "is not one of cpu, memory, network, combined",
    ),
    Bad("rules", "name: p\nplanner: {rebalance: ▶on}\n", "planner.rebalance must be a mapping"),
    Bad("bare percent", "name: p\nplanner: {rebalance: {full: ▶0.8}}\n", "0.8 of what?", "full: 20%"),
    Bad(
        "percent",
        "name: p\nplanner: {rebalance: {full: ▶a lot}}\n",
        '"a lot" is not a percentage',
        "as in 20%",
    ),
    Bad(
        "many percent",
        "name: p\nplanner: {rebalance: {percent_difference: ▶101%}}\n",
        "planner.rebalance.percent_difference must be at most 100",
    ),
    Bad("bare rest", "name: p\nplanner: {rebalance: {rest: ▶60}}\n", "60 of which unit?", "rest: 60 seconds"),
    Bad(
        "often",
        "name: p\nplanner: {rebalance: {every: ▶1 s}}\n",
        "planner.rebalance.every is too often",
        "5 seconds",
    ),
    Bad("no such job", "name: p\nplanner: {rebalance: {jobs: [▶q]}}\n", 'query "q" does not exist'),
    Bad(
        "no such target", "name: p\nplanner: {rebalance: {sites: [▶x]}}\n", 'site "x" does not exist', "local"
    ),
    Bad("one job", "name: p\nplanner: {rebalance: {jobs: ▶q}}\n", "planner.rebalance.jobs must be a list"),
    Bad("margin", "name: p\nplanner: {rebalance: {margin: ▶0.5}}\n", "margin must be at least 1"),
    Bad(
        "state key",
        "name: p\nplanner: {rebalance: {state: {▶min: 1m}}}\n",
        'unknown key "min" in planner.rebalance.state',
        "least, most",
    ),
    Bad(
        "state size", "name: p\nplanner: {rebalance: {state: {least: ▶big}}}\n", '"big" is not a size', "512m"
    ),
    Bad(
        "state range",
        "name: p\nplanner: {rebalance: {state: {least: 2m, most: ▶1m}}}\n",
        "no job has 2097152 bytes of state or more, and 1048576 or less",
    ),
    Bad(
        "placement planner", "name: p\nplanner: {placement: ▶exat}\n", "is not one of exact, joint", '"exact"'
    ),
]
COLUMNS = [
    Bad(
        "type", stream("{kind: generator}", "{ts: timestamp, v: ▶duble}"), '"duble" is not a type', '"double"'
    ),
    Bad(
        "far type",
        stream("{kind: generator}", "{ts: timestamp, v: ▶blob}"),
        "not a type",
        "types here: bigint",
    ),
    Bad(
        "length",
        stream("{kind: generator}", "{ts: timestamp, v: ▶varchar(9)}"),
        "not a type",
        'Write "string"',
    ),
    Bad(
        "decimal",
        stream("{kind: generator}", "{ts: timestamp, v: ▶'decimal(9,2)'}"),
        "not supported",
        "Use double",
    ),
    Bad(
        "array",
        stream("{kind: generator}", "{ts: timestamp, v: ▶array<int>}"),
        '"array<int>" are not',
        "own row",
    ),
    Bad(
        "map", TABLE.replace("int}", "▶'map<string,int>'}") + "    rows: []\n", "not supported", "own column"
    ),
    Bad(
        "struct",
        TABLE.replace("int}", "▶struct}") + "    rows: []\n",
        '"struct" are not supported',
        "own column",
    ),
    Bad("interval", TABLE.replace("int}", "▶interval}") + "    rows: []\n", "not supported", "bigint"),
    Bad("type is a number", stream("{kind: generator}", "{ts: ▶3}"), "must be the name of a type, not 3"),
    Bad(
        "columns is a list",
        stream("{kind: generator}", "[a]").replace("col", "▶col"),
        "a mapping (name: type)",
    ),
    Bad(
        "none", stream("{kind: generator}", "{}").replace("col", "▶col"), "streams.s.columns names no column"
    ),
    Bad(
        "column name", stream("{kind: generator}", "{ts: timestamp, ▶a-b: int}"), '"a-b" is not a column name'
    ),
    Bad("own names", stream("{kind: generator}", "{ts: timestamp, ▶__a: int}"), "begins with two _", "kept"),
    Bad("case", stream("{kind: generator}", "{ts: timestamp, a: int, ▶A: int}"), "differ only in case"),
]
QUERIES = [
    Bad("no sql", query("").replace("  q:", "  ▶q: {}"), 'queries.q has neither "sql" nor "file"', "sql: |"),
    Bad("both", query("    sql: SELECT 1\n    ▶file: q.sql\n"), 'has both "sql" and "file"', "Keep one"),
    Bad("blank", query("    ▶sql:\n"), "queries.q.sql is empty"),
    Bad("blank block", query("    sql: ▶|\n\n"), "queries.q.sql is empty"),
    Bad("sql is a number", query("    sql: ▶1\n"), "queries.q.sql must be SQL text, not 1"),
    Bad(
        "folded",
        query("    sql: ▶>\n      SELECT 1 -- one\n      FROM plugs\n"),
        "must be a block with |",
        "sql: |",
    ),
    Bad("two plain lines", query("    sql: ▶SELECT 1\n      FROM plugs\n"), "must be a block with |"),
    Bad("no file", query("    file: ▶queries/x.sql\n"), "there is no file", "There are no SQL files"),
    Bad("near file", query("    file: ▶near.sq\n"), "there is no file", 'Did you mean "near.sql"?'),
    Bad("absolute", query("    file: ▶/q.sql\n"), "must be a relative path", "project's folder"),
    Bad("folder", query("    file: ▶empty\n"), "cannot be read"),
    Bad("empty file", query("    file: ▶empty.sql\n"), "empty.sql is empty"),
    Bad("binary file", query("    file: ▶latin.sql\n"), "latin.sql is not UTF-8 text"),
    Bad(
        "query key", query("    sql: SELECT 1\n    ▶sin: json\n"), 'unknown key "sin" in queries.q', '"sink"'
    ),
    Bad("hidden key", query("    sql: SELECT 1\n    ▶sql_line: 3\n"), 'unknown key "sql_line"'),
    Bad(
        "short sink",
        query("    sql: SELECT 1\n    sink: ▶jsn\n"),
        '"jsn" is not one of parquet, json',
        '"json"',
    ),
    Bad("sink kind", query("    sql: SELECT 1\n    sink: {kind: ▶kafka}\n"), '"kafka" is not one of'),
    Bad(
        "sink key",
        query("    sql: SELECT 1\n    sink: {▶pth: x}\n"),
        'unknown key "pth" in queries.q.sink',
        '"path"',
    ),
    Bad("sink is a list", query("    sql: SELECT 1\n    ▶sink: [json]\n"), "must be a mapping"),
    Bad(
        "engine",
        query("    sql: SELECT 1\n    engine: ▶duck\n"),
        'queries.q.engine: "duck" is not one of auto, spark, duckdb',
        '"duckdb"',
    ),
    Bad("no engine", query("    sql: SELECT 1\n    ▶engine:\n"), "queries.q.engine is empty", "auto"),
    Bad(
        "engines",
        query("    sql: SELECT 1\n    engines: [spark, ▶auto]\n"),
        '"auto" is not one of spark, duckdb',
    ),
    Bad(
        "engines is a word",
        query("    sql: SELECT 1\n    engines: ▶spark\n"),
        'queries.q.engines must be a list, not "spark"',
    ),
    Bad(
        "engine and engines",
        query("    sql: SELECT 1\n    engine: auto\n    ▶engines: [spark]\n"),
        'queries.q has both "engine" and "engines"',
        "Keep one",
    ),
    Bad(
        "federation",
        "name: p\nplanner: {federation: ▶on}\n",
        'planner.federation: "on" is not one of off, auto, spark, duckdb',
    ),
    Bad(
        "distribution",
        "name: p\nplanner: {distribution: ▶round-robin}\n",
        'planner.distribution: "round-robin" is not one of off, round_robin, grouping, ours',
        '"round_robin"',
    ),
    Bad("region", "name: p\nsites:\n  a: {region: ▶north east}\n", '"north east" is not a name', "letters"),
    Bad("free", query("    sql: SELECT 1\n    ▶free: true\n"), 'unknown key "free" in queries.q', ""),
    Bad(
        "query site", query("    sql: SELECT 1\n    site: ▶locla\n"), 'site "locla" does not exist', '"local"'
    ),
]
