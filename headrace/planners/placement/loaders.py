"""Networks from text: a matrix of measured latencies, GraphML, GML.

A site is named by the header of a matrix or by the labels of a graph if they are all there and all different,
else by the number or id it has. Wrong input is a UserError with its line, and its column where that is known.

Texts come from anywhere, so nothing in them is run or fetched: numbers go through float(), GML is read by
networkx without its converters, and XML that declares a document type is refused, since entities are declared
there and can blow up or reach for files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite, isnan
from xml.parsers import expat

import networkx as nx
import numpy as np

from headrace.errors import NotSupported, Span, UserError
from headrace.planners.placement.problem import Floats, Network

COST_NAMES = ("cost", "weight", "latency")
"""Attributes of an edge taken for its cost, the first that there is; case does not matter."""
NOT_MEASURED = ("", "-", "nan", "inf")
MOST_IN_MATRIX = 4000
"""One-way costs are kept as a full matrix."""

_Edge = tuple[object, object, Mapping[str, object]]


def network_from(
    text: str, file: str, *, cost: str | None = None, symmetric: bool = False, format: str | None = None
) -> Network:
    """By the file's ending: .graphml or .xml, .gml, and .tsv, .csv, .txt or .dat for a matrix; or by
    `format`, one of these endings."""
    ending = format or file.rsplit(".", 1)[-1].lower()
    if ending in ("graphml", "xml"):
        return graphml(text, file=file, cost=cost)
    if ending == "gml":
        return gml(text, file=file, cost=cost)
    if ending in ("tsv", "csv", "txt", "dat"):
        return latency_matrix(text, file=file, symmetric=symmetric)
    raise NotSupported(
        f'"{file}" is no known kind of network', hint="Known endings: graphml, xml, gml, tsv, csv, txt, dat."
    )


@dataclass(frozen=True, slots=True)
class _Cell:
    text: str
    line: int
    column: int


def latency_matrix(text: str, *, file: str = "<matrix>", symmetric: bool = False) -> Network:
    """Row a, column b: the cost from a to b. Cells are parted by tabs, commas, semicolons or blanks; lines
    that are empty or start with # do not count. The diagonal is not looked at; 0 elsewhere, an empty cell,
    `-`, `nan` or `inf` mean "not measured", so no link. A first line that is not all numbers names the sites,
    and then every row may begin with its name. `symmetric`: both directions get the mean of what was
    measured, else each keeps its own."""
    rows = _rows(text)
    if not rows:
        raise UserError("the matrix is empty", span=Span(file, 1, 1, 1))
    sites: tuple[str | int, ...]
    if all(_is_number(cell.text) for cell in rows[0]):
        sites, body = tuple(range(len(rows))), rows
    else:
        sites, body = _named(rows[0], rows[1:], file)
    costs = _numbers(body, file, len(sites))
    return _from_both_ways(sites, _mean(costs) if symmetric else costs)


def _rows(text: str) -> list[list[_Cell]]:
    """One separator for the whole text, so that an empty cell is seen where cells can be empty."""
    lines = [
        (number, line)
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip() and not line.lstrip().startswith("#")
    ]
    separator = next((mark for mark in "\t;," if lines and mark in lines[0][1]), None)
    rows = [list(_cells(line, number, separator)) for number, line in lines]
    # Some programs end every line with a separator: that is no column.
    if all(len(row) == len(rows) + 1 and not row[-1].text for row in rows):
        return [row[:-1] for row in rows]
    return rows


def _cells(line: str, number: int, separator: str | None) -> Iterator[_Cell]:
    pattern = r"\S+" if separator is None else rf"(?:^|(?<={separator}))[^{separator}]*"
    for found in re.finditer(pattern, line):
        yield _Cell(found.group().strip(), number, found.start() + 1)


def _named(
    header: list[_Cell], body: list[list[_Cell]], file: str
) -> tuple[tuple[str, ...], list[list[_Cell]]]:
    """The names of the header, and the rows without theirs: rows that begin with a name are one longer than
    there are rows, and the header may then have a corner."""
    if not body:
        raise _wrong(header[0], file, "the matrix has names and no rows")
    labelled = not _is_number(body[0][0].text)
    header = header[1:] if labelled and len(header) == len(body) + 1 else header
    names = tuple(_unquoted(cell) for cell in header)
    for cell, name in zip(header, names, strict=True):
        if not name or names.count(name) > 1:
            raise _wrong(cell, file, f'site name "{name}" is empty or there twice')
    if not labelled:
        return names, body
    for name, row in zip(names, body, strict=False):
        if _unquoted(row[0]) != name:
            raise _wrong(row[0], file, f'this row should be "{name}", as the columns have it')
    return names, [row[1:] for row in body]


def _unquoted(cell: _Cell) -> str:
    return cell.text.strip("\"'")


def _numbers(body: Sequence[Sequence[_Cell]], file: str, size: int) -> Floats:
    """Costs, inf where there is no link."""
    costs = np.full((size, size), inf)
    for i, row in enumerate(body[: size + 1]):
        if len(row) != size or i == size:
            where = row[min(size, len(row) - 1)] if row else _Cell("", 1, 1)
            message = (
                f"the matrix is not square: row {i + 1} has {len(row)} cells, there are {len(body)} rows"
            )
            raise _wrong(where, file, message)
        costs[i] = [_number(cell, file) for cell in row]
    if len(body) < size:
        raise _wrong(body[-1][0], file, f"the matrix is not square: {size} columns, {len(body)} rows")
    np.fill_diagonal(costs, 0.0)
    return costs


def _number(cell: _Cell, file: str) -> float:
    if not _is_number(cell.text):
        raise _wrong(cell, file, f'"{cell.text}" is not a number')
    value = inf if cell.text.lower() in NOT_MEASURED else float(cell.text)
    if value < 0:
        raise _wrong(cell, file, f"a latency cannot be {cell.text}")
    return value or inf


def _is_number(text: str) -> bool:
    if text.lower() in NOT_MEASURED:
        return True
    try:
        return "_" not in text and not isnan(float(text))
    except ValueError:
        return False


def _mean(costs: Floats) -> Floats:
    """Of the directions that were measured."""
    there, back = np.isfinite(costs), np.isfinite(costs.T)
    total = np.where(there, costs, 0.0) + np.where(back, costs.T, 0.0)
    known = there.astype(int) + back
    return np.where(known > 0, total / np.maximum(known, 1), inf)


def graphml(text: str, *, file: str = "<graphml>", cost: str | None = None) -> Network:
    """`cost`: the edges' attribute to take; else the first of COST_NAMES there is."""
    _check_xml(text, file)
    try:
        graph = nx.parse_graphml(text)
    except (nx.NetworkXException, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f'"{file}" is not a GraphML graph', detail=str(error)) from error
    return _from_graph(graph, file, cost)


def gml(text: str, *, file: str = "<gml>", cost: str | None = None) -> Network:
    """`cost` as for GraphML."""
    try:
        graph = nx.parse_gml(text, label="id")
    except (nx.NetworkXException, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        place = re.search(r"\((\d+), (\d+)\)", str(error))
        span = Span(file, int(place[1]), int(place[2]), int(place[2]) + 1) if place else None
        raise UserError(f'"{file}" is not a GML graph', detail=str(error), span=span) from error
    return _from_graph(graph, file, cost)


def _check_xml(text: str, file: str) -> None:
    """Well formed, no document type, all sites with an id (networkx would take it for "None"). No entity is
    expanded before it has been refused."""

    def here() -> Span:
        line, column = parser.CurrentLineNumber, parser.CurrentColumnNumber + 1
        return Span(file, line, column, column + 1)

    def refuse(*_: object) -> None:
        hint = "Remove <!DOCTYPE ...>."
        raise NotSupported("XML with a document type is not read", hint=hint, span=here())

    def see(name: str, attributes: Mapping[str, str]) -> None:
        if name.split(":")[-1] == "node" and "id" not in attributes:
            raise UserError("a node without an id", span=here())

    parser = expat.ParserCreate("utf-8")
    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler = see
    try:
        parser.Parse(text.encode("utf-8", "replace"), True)
    except expat.ExpatError as error:
        span = Span(file, error.lineno, error.offset + 1, error.offset + 2)
        raise UserError(f'"{file}" is not XML', detail=expat.ErrorString(error.code), span=span) from error


def _from_graph(graph: nx.Graph, file: str, wanted: str | None) -> Network:
    if not len(graph):
        raise UserError(f'"{file}" has no sites')
    sites = _site_names(graph)
    position = {node: i for i, node in enumerate(graph)}
    edges: list[_Edge] = [(a, b, data) for a, b, data in graph.edges(data=True) if a != b]
    name = _cost_name(edges, file, wanted)
    cheapest: dict[tuple[int, int], float] = {}
    for a, b, data in edges:
        pair = (position[a], position[b])
        key = pair if graph.is_directed() else (min(pair), max(pair))
        cheapest[key] = min(_cost((a, b, data), name, file), cheapest.get(key, inf))
    if not graph.is_directed():
        return Network(sites, tuple((a, b, value) for (a, b), value in sorted(cheapest.items())))
    if len(sites) > MOST_IN_MATRIX:
        raise NotSupported(
            f"a directed graph of {len(sites)} sites is too large", hint=f"At most {MOST_IN_MATRIX}."
        )
    costs = np.full((len(sites), len(sites)), inf)
    np.fill_diagonal(costs, 0.0)
    for (a, b), value in cheapest.items():
        costs[a, b] = value
    return _from_both_ways(sites, costs)


def _from_both_ways(sites: tuple[str | int, ...], costs: Floats) -> Network:
    """Links if both directions cost the same, else the matrix."""
    if not np.array_equal(costs, costs.T):
        return Network(sites, costs=costs)
    a, b = np.nonzero(np.triu(np.isfinite(costs), 1))
    return Network(sites, tuple(zip(a.tolist(), b.tolist(), costs[a, b].tolist(), strict=True)))


def _site_names(graph: nx.Graph) -> tuple[str | int, ...]:
    labels = [str(data.get("label", "")) for _, data in graph.nodes(data=True)]
    if all(labels) and len(set(labels)) == len(labels):
        return tuple(labels)
    return tuple(node if isinstance(node, int) else str(node) for node in graph)


def _cost_name(edges: Sequence[_Edge], file: str, wanted: str | None) -> str:
    known = {name for _, _, data in edges for name in data}
    for name in (wanted,) if wanted is not None else COST_NAMES:
        found = sorted(other for other in known if other.lower() == name.lower())
        if found or not edges:
            return found[0] if found else name
    raise UserError(
        f'the edges of "{file}" have no {wanted or "cost, weight or latency"}',
        hint=f"Their attributes: {', '.join(sorted(known))}." if known else "They have no attributes.",
    )


def _cost(edge: _Edge, name: str, file: str) -> float:
    a, b, data = edge
    value = data.get(name)
    title = f'the edge from {a} to {b} in "{file}"'
    if value is None:
        raise UserError(f"{title} has no {name}")
    try:
        number = float(str(value))
    except ValueError:
        raise UserError(f'{title}: {name} is "{value}", not a number') from None
    if not (number > 0 and isfinite(number)):
        raise UserError(f"{title}: {name} is {value}, and must be above 0")
    return number


def _wrong(cell: _Cell, file: str, message: str) -> UserError:
    column = cell.column
    return UserError(message, span=Span(file, cell.line, column, column + max(1, len(cell.text))))
