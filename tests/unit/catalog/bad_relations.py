"""Project files whose parts are right and do not fit together; written as in `bad_projects`."""

from __future__ import annotations

from tests.unit.catalog.bad_projects import DRAWN, PLUGS, STREAM, TABLE, Bad, drawn, query, rows, stream

FILES = "{kind: files, path: data/in, format: json}"
SITES = "name: p\nsites:\n  edge: {endpoint: local}\n  core: {endpoint: 'spark://h:7077'}\n"
HOUSE = "{ts: timestamp, property: string, value: double, plug: int, household: int, house: int}"


def two_sinks(first: str, second: str) -> str:
    body = f"    sql: SELECT 1\n    sink: {first}\n"
    return query(f"{body}  r:\n    sql: SELECT 1\n    sink: {second}\n")


TIMES = [
    Bad(
        "no such time",
        stream(FILES, "{at: timestamp, tss: timestamp}").replace("time: ts", "time: ▶ts"),
        'no column "ts"',
        '"tss"',
    ),
    Bad(
        "time type",
        stream(FILES, "{ts: bigint}").replace("time: ts", "time: ▶ts"),
        "must be a timestamp, not bigint",
    ),
    Bad(
        "no timestamps",
        stream(FILES, "{a: int}").replace("time: ts", "time: ▶ts"),
        'has no column "ts"',
        "columns here: a",
    ),
    Bad(
        "distinct column",
        STREAM + "    distinct: {▶hose: 2}\n",
        'stream "plugs" has no column "hose"',
        "columns here: k, ts, v",
    ),
    Bad(
        "rate columns",
        stream("{kind: rate}").replace("columns", "▶columns"),
        "not those of the rate source",
        "value bigint",
    ),
    Bad(
        "rate time",
        "name: p\nstreams:\n  s: {time: ▶value, source: {kind: rate}}\n",
        "must be a timestamp",
        "Declare",
    ),
    Bad(
        "csv option",
        stream("{kind: files, path: x, format: json, ▶header: true}"),
        "means nothing for json files",
    ),
]
NAMES = [
    Bad(
        "table like stream",
        STREAM + "tables:\n  ▶Plugs:\n    columns: {a: int}\n    rows: []\n",
        'the name "Plugs" is taken by streams.plugs',
        "rename",
    ),
    Bad("queries by case", query("    sql: SELECT 1\n  ▶Q:\n    sql: SELECT 1\n"), "taken by queries.q"),
    Bad("sites by case", "name: p\nsites: {a: {}, ▶A: {}}\n", "taken by sites.a"),
]
NETWORK = [
    Bad("stream site", STREAM + "    site: ▶cloud\n", 'site "cloud" does not exist', "sites here: local"),
    Bad(
        "near site",
        SITES + "queries:\n  q: {sql: SELECT 1, site: ▶egde}\n",
        '"egde" does not exist',
        '"edge"',
    ),
    Bad("site name", STREAM + "    site: ▶a b\n", '"a b" is not a name'),
    Bad("link end", SITES + "links:\n  - between: [edge, ▶croe]\n", 'site "croe" does not exist', '"core"'),
    Bad("self link", SITES + "links:\n  - between: [edge, ▶edge]\n", "with itself", "two sites"),
    Bad(
        "link twice",
        SITES + "links:\n  - between: [edge, core]\n  - ▶between: [core, edge]\n",
        '"core" and "edge" are linked already',
        "both ways",
    ),
    Bad("latency", SITES + "links:\n  - between: [edge, core]\n    latency: ▶-1ms\n", "at least 0"),
    Bad(
        "port that does not exist",
        "name: p\nsites:\n  a: {endpoint: ▶sc://east:99999}\n",
        '"sc://east:99999" has no port that exists',
        "65535",
    ),
    Bad("endpoint", "name: p\nsites:\n  a: {endpoint: ▶flink}\n", '"flink" is not an endpoint', "spark://"),
    Bad(
        "no cores",
        "name: p\nsites:\n  a: {endpoint: '▶local[0]'}\n".replace("'▶", "▶'"),
        "is not an endpoint",
    ),
    Bad(
        "no host; the token stays unsaid",
        "name: p\nsites:\n  a: {endpoint: ▶sc:///;token=abc}\n",
        '"sc:///;token=***" is not an endpoint',
    ),
]
GENERATOR = [
    Bad(
        "undrawn",
        stream("{kind: generator}").replace("source", "▶source"),
        'says nothing of the column "v"',
        "uniform",
    ),
    Bad("half drawn", DRAWN + "      ▶columns:\n        n: {kind: sequence}\n", 'column "k"', "choice"),
    Bad("stranger", drawn("{kind: sequence}\n        ▶m: {kind: sequence}"), 'the stream has no column "m"'),
    Bad(
        "time drawn",
        drawn("{kind: sequence}\n        ▶ts: {kind: sequence}"),
        "is the event time",
        "advances",
    ),
    Bad("distribution", drawn("{kind: ▶unifrom, low: 1, high: 2}"), '"unifrom" is not one of', '"uniform"'),
    Bad(
        "no kind",
        drawn("{low: 1}").replace("        n:", "        ▶n:"),
        '"kind" is missing in streams.plugs.source.columns.n',
    ),
    Bad("distribution key", drawn("{kind: uniform, low: 1, high: 2, ▶hi: 3}"), 'unknown key "hi"', '"high"'),
    Bad(
        "no high", drawn("{kind: uniform, low: 1}").replace("        n:", "        ▶n:"), '"high" is missing'
    ),
    Bad(
        "foreign field",
        drawn("{kind: constant, value: 1, ▶low: 1}"),
        'constant takes no "low"',
        "takes: value",
    ),
    Bad("upside down", drawn("{kind: uniform, low: ▶3, high: 1}"), "low is above high"),
    Bad("broken bound", drawn("{kind: uniform, low: ▶0.5, high: 1}"), "low must be a whole number, not 0.5"),
    Bad(
        "wide bound", drawn("{kind: uniform, low: 0, high: ▶3000000000}"), "high must be a number of 32 bits"
    ),
    Bad("stddev", drawn("{kind: normal, mean: 0, stddev: ▶-1}"), "stddev cannot be negative"),
    Bad(
        "uniform text",
        drawn("{kind: sequence}", "{kind: ▶uniform, low: 0, high: 1}"),
        "cannot fill",
        "choice",
    ),
    Bad("nothing to choose", drawn("{kind: choice, ▶values: []}"), "values is an empty list"),
    Bad("choice type", drawn("{kind: choice, values: [1, ▶a]}"), "values[1] must be a whole number, not 'a'"),
    Bad(
        "choice of lists", drawn("{kind: choice, values: [▶[1]]}"), "must be text, a number, or true or false"
    ),
    Bad("constant type", drawn("{kind: constant, value: ▶1.5}"), "must be a whole number"),
    Bad("share", drawn("{kind: sequence, null_share: ▶1.5}"), "null_share must be at most 1, not 1.5"),
    Bad("skew", drawn("{kind: zipf, skew: ▶0, low: 1, high: 9}"), "skew must be more than 0"),
    Bad(
        "zipf of what",
        drawn("{kind: zipf, skew: 1}").replace("        n:", "        ▶n:"),
        "does not say what to draw",
    ),
    Bad("zipf of both", drawn("{kind: zipf, skew: 1, ▶low: 1, values: [1]}"), "not both"),
    Bad("zipf of many", drawn("{kind: zipf, skew: 1, low: 1, high: ▶1000001}"), "more than 1,000,000"),
    Bad(
        "seed",
        DRAWN + "      seed: ▶-1\n      columns: {k: {kind: constant, value: x}, n: {kind: sequence}}\n",
        "seed",
    ),
    Bad(
        "disorder",
        stream("{kind: generator, disorder: ▶-1s, columns: {v: {kind: sequence}}}"),
        "cannot be negative",
    ),
    Bad("interval", stream("{kind: generator, interval: ▶0, columns: {v: {kind: sequence}}}"), "more than 0"),
    Bad(
        "plug missing",
        stream(PLUGS, HOUSE.replace(", plug: int", "")).replace("col", "▶col"),
        'the column "plug"',
    ),
    Bad(
        "plug type",
        stream(PLUGS, HOUSE.replace("house: int", "house: ▶string")),
        '"house" must be int, not string',
    ),
    Bad(
        "plug extra",
        stream(PLUGS, HOUSE.replace("}", ", ▶more: int}")),
        'makes no column "more"',
        "exactly: ts",
    ),
    Bad(
        "plug distributions",
        stream(PLUGS.replace("}", ", ▶columns: {plug: {kind: sequence}}}"), HOUSE),
        "takes no distributions",
    ),
]
TABLES = [
    Bad("no rows", TABLE.replace("rooms", "▶rooms"), 'tables.rooms has neither "source" nor "rows"', "rows:"),
    Bad(
        "two sources",
        TABLE + "    source: {path: near.sql, format: csv}\n    ▶rows: []\n",
        'has both "source" and "rows"',
    ),
    Bad("narrow", rows("[a, 1]", "▶[b]"), "row 2 has 1 value, the table has 2 columns", "room, floor"),
    Bad("wide", rows("▶[a, 1, 2]"), "row 1 has 3 values"),
    Bad("not a row", rows("▶a"), 'tables.rooms.rows[0] must be a list, not "a"'),
    Bad("text for int", rows("[a, ▶x]"), 'row 1: column "floor" (int) must be a whole number, not "x"'),
    Bad("true for int", rows("[a, ▶true]"), "must be a whole number, not true"),
    Bad("fraction for int", rows("[a, ▶1.0]"), "must be a whole number, not 1.0"),
    Bad("wide int", rows("[a, ▶2147483648]"), "must be a number of 32 bits"),
    Bad("int for text", rows("[▶7, 1]"), "must be text (put it in quotes), not 7"),
    Bad("mapping", rows("[▶{a: 1}, 1]"), "must be text, a number, or true or false, not a mapping"),
    Bad("date", rows("[a, ▶2024-13-01]").replace("floor: int", "floor: date"), 'a date like "2024-05-01"'),
    Bad("time", rows("[a, ▶soon]").replace("floor: int", "floor: timestamp"), "must be an instant like"),
    Bad(
        "boolean",
        rows("[a, ▶yes]").replace("floor: int", "floor: boolean"),
        'must be true or false, not "yes"',
    ),
    Bad(
        "no file",
        TABLE + "    source: {path: ▶gone.csv, format: csv}\n",
        "there is no file gone.csv",
        "folder",
    ),
    Bad(
        "no match", TABLE + "    source: {path: ▶'gone/*.csv', format: csv}\n", "there is no file gone/*.csv"
    ),
    Bad(
        "table kind",
        TABLE + "    source: {kind: ▶rate, path: x, format: csv}\n",
        '"rate" is not one of files',
    ),
]
SINKS = [
    Bad(
        "console path",
        query("    sql: SELECT 1\n    sink: {kind: console, ▶path: x}\n"),
        "console sink takes no path",
    ),
    Bad("same sink", two_sinks("{path: out}", "{path: ▶./out/}"), 'same folder as query "q"', "own folder"),
    Bad("default sink", two_sinks("json", "{path: ▶results/q}"), "same folder"),
    Bad("inner sink", two_sinks("{path: out}", "{path: ▶out/r}"), "inside or around"),
    Bad("outer sink", two_sinks("{path: out/q}", "{path: ▶out}"), "inside or around"),
    Bad("own input", two_sinks("json", "{path: ▶data/in/r}"), 'inside what stream "plugs" reads (data/in)'),
    Bad(
        "default in input",
        query("    ▶sql: SELECT 1\n").replace("data/in", "results").replace("▶", "").replace("  q:", "  ▶q:"),
        'stream "plugs" reads (results)',
    ),
    Bad("glob", two_sinks("json", "{path: ▶data/x/r}").replace("data/in", "'data/*'"), "reads (data/*)"),
    Bad("empty path", query("    sql: SELECT 1\n    sink: {path: ▶''}\n"), "queries.q.sink.path is empty"),
    Bad("empty source", stream("{kind: files, path: ▶'', format: csv}"), "streams.s.source.path is empty"),
]
