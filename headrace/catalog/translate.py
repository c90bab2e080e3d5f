"""pydantic's findings in plain words, at the place in the file they are about.

Data is validated as JSON in strict mode: enums and tuples are read from text and lists, but nothing is
converted (`rows: "100"`, `rate: true` are wrong), since a guess would silently change what was meant.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from headrace.catalog import model as m
from headrace.catalog.document import Data, Trail
from headrace.catalog.problems import Problem, shown
from headrace.ids import did_you_mean

Model = TypeVar("Model", bound=BaseModel)

SOURCES: Mapping[str, type[BaseModel]] = {
    "files": m.FileSource,
    "generator": m.GeneratorSource,
    "rate": m.RateSource,
}
_HIDDEN = frozenset({"name", "sql_file", "sql_line", "sql_column", "engines_place", "root", "free"})
"""Fields that the loader fills; a file cannot give them."""

_EXAMPLES = {
    "name": "name: my-project",
    "columns": "columns: {ts: timestamp, value: double}",
    "time": "time: ts",
    "source": "source: {kind: files, path: data/in, format: parquet}",
    "path": "path: data/in",
    "format": "format: parquet",
    "kind": "kind: files",
    "between": "between: [edge, core]",
}
_WANTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "dict_type": "a mapping (key: value)",
    "model_type": "a mapping (key: value)",
    "tuple_type": "a list",
}
DURATION_KEYS = frozenset(
    {
        "watermark",
        "disorder",
        "interval",
        "latency",
        "trigger",
        "every",
        "horizon",
        "rest",
        "patience",
    }
)
PERCENT_KEYS = frozenset({"percent_difference", "degraded", "least_gain", "full"})
_DURATION = "Write a number and a unit, as in 10 seconds; units go from microseconds to weeks."
_HINTS = {
    **dict.fromkeys(DURATION_KEYS, _DURATION),
    **dict.fromkeys(("memory", "bandwidth", "least", "most"), "Write a number and a unit, as in 512m or 4g."),
    **dict.fromkeys(PERCENT_KEYS, "Write a number and a percent sign, as in 20%."),
    "start": 'Write it like "2024-05-01 12:00:00" (UTC).',
}
"""How values of these keys are written."""
_RANGES = {
    "greater_than": ("gt", "more than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than_equal": ("le", "at most"),
}


def validate(kind: type[Model], body: Data, trail: Trail) -> tuple[Model | None, list[Problem]]:
    """The object that `body` describes, or what is wrong with it. `body` stands at `trail`."""
    try:
        return kind.model_validate_json(json.dumps(body), strict=True), []
    except ValidationError as error:
        found = [_problem(kind, body, trail, detail) for detail in error.errors(include_url=False)]
    # A union reports one finding for each member at the same place: the first says it all.
    return None, list({(p.trail, p.at_key): p for p in reversed(found)}.values())[::-1]


def keys_of(kind: type[BaseModel]) -> list[str]:
    """The keys a file may give for this model."""
    return [name for name in kind.model_fields if name not in _HIDDEN]


def unknown_key(key: str, known: Iterable[str], trail: Trail) -> Problem:
    """`key` inside `trail` means nothing."""
    hint = did_you_mean(key, known, "keys")
    if key == "name" and trail:
        hint = f'The name is the key above it: "{trail[-1]}".'
    return Problem((*trail, key), f'unknown key "{key}" in {shown(trail)}', hint, at_key=True)


def missing_key(key: str, trail: Trail) -> Problem:
    hint = f"Add it, for example: {_EXAMPLES[key]}" if key in _EXAMPLES else f'Add "{key}".'
    return Problem(trail, f'"{key}" is missing in {shown(trail)}', hint, at_key=True)


def wrong_type(wanted: str, value: Data, trail: Trail) -> Problem:
    hint = "Put it in quotes." if wanted == "text" and isinstance(value, (int, float)) else ""
    if wanted.startswith("a mapping"):
        where = "" if trail else ", beginning with name: my-project"
        hint = f"Write keys with their values, one to a line{where}."
    return Problem(trail, f"{shown(trail)} must be {wanted}, not {described(value)}", hint)


def not_one_of(value: object, choices: Iterable[str], trail: Trail) -> Problem:
    names = list(choices)
    message = f'{shown(trail)}: "{value}" is not one of {", ".join(names)}'
    return Problem(trail, message, did_you_mean(str(value), names, "choices"))


def described(value: Data) -> str:
    """A value as a message names it."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "a mapping"
    return "a list" if isinstance(value, list) else f'"{value}"' if isinstance(value, str) else str(value)


def _problem(kind: type[BaseModel], body: Data, trail: Trail, error: ErrorDetails) -> Problem:
    """One finding, in words."""
    loc = error["loc"]
    if kind is m.Stream and loc[0] == "source":
        loc = (loc[0], *loc[2:])  # The second part is the kind of source, not a key.
    steps, value = _resolve(body, loc)
    place = (*trail, *steps)
    context: dict[str, Any] = error.get("ctx", {})
    match error["type"]:
        case "missing" if isinstance(value, list):
            return Problem(place, f"{shown(place)} must name two sites", "Write: between: [edge, core]")
        case "too_long":
            return Problem(place, f"{shown(place)} must name two sites", "Write: between: [edge, core]")
        case "missing":
            return missing_key(str(loc[-1]), place)
        case "union_tag_not_found":
            return missing_key("kind", place)
        case "extra_forbidden":
            return unknown_key(str(place[-1]), _known_keys(kind, body, steps[:-1]), place[:-1])
        case "union_tag_invalid":
            return not_one_of(context["tag"], SOURCES, (*place, "kind"))
        case "enum" | "literal_error":
            return not_one_of(value, re.findall(r"'([^']*)'", context["expected"]), place)
        case "value_error":
            return Problem(place, f"{shown(place)}: {context['error']}", _HINTS.get(str(place[-1]), ""))
        case "string_pattern_mismatch":
            return bad_name(str(value), place)
        case "string_too_long" | "string_too_short":
            return wrong_type("exactly one character", value, place)
        case limit if limit in _RANGES:
            return _out_of_range(value, place, context, *_RANGES[limit])
        case other:
            of_union = steps[-1:] != loc[-1:]
            wanted = "text, a number, or true or false" if of_union else _WANTED.get(other)
            return wrong_type(wanted or f"other than this ({error['msg']})", value, place)


def bad_name(name: str, trail: Trail, *, at_key: bool = False) -> Problem:
    hint = "A name is letters, digits, _ and -, at most 64, and does not start with a digit."
    return Problem(trail, f'"{name}" is not a name', hint, at_key=at_key)


def _out_of_range(value: Data, trail: Trail, context: dict[str, Any], key: str, words: str) -> Problem:
    limit = context[key]
    number = int(limit) if float(limit).is_integer() else limit
    hint = (
        _HINTS.get(str(trail[-1]), "")
        if isinstance(value, str)
        else f"Write a number that is {words} {number}."
    )
    return Problem(trail, f"{shown(trail)} must be {words} {number}, not {described(value)}", hint)


def _resolve(body: Data, loc: tuple[int | str, ...]) -> tuple[Trail, Data]:
    """The part of a location that is in the data: pydantic also names union members, which are not."""
    steps: list[str | int] = []
    here = body
    for part in loc:
        inside = _inside(here, part)
        if inside is not None:
            steps.append(part)
            here = inside[0]
    return tuple(steps), here


def _inside(here: Data, part: str | int) -> tuple[Data] | None:
    if isinstance(here, dict) and isinstance(part, str) and part in here:
        return (here[part],)
    if isinstance(here, list) and isinstance(part, int) and part < len(here):
        return (here[part],)
    return None


def _known_keys(kind: type[BaseModel], body: Data, steps: Trail) -> list[str]:
    """The keys of the model that describes the part of `body` at `steps`."""
    here, current = body, kind
    for step in steps:
        _, here = _resolve(here, (step,))
        field = current.model_fields.get(str(step))
        if field is not None:
            current = _model_of(field, here) or current
    return keys_of(current)


def _model_of(field: FieldInfo, here: Data) -> type[BaseModel] | None:
    """The model a field holds, by itself, as an alternative or as the values of a mapping."""
    options = [field.annotation, *get_args(field.annotation)]
    models = [o for o in options if isinstance(o, type) and issubclass(o, BaseModel)]
    if len(models) > 1 and isinstance(here, dict):
        return SOURCES.get(str(here.get("kind")))
    return models[0] if models else None
