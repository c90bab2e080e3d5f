"""The file that results of an experiment are kept in: a head, and one line a run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from headrace.errors import UserError

HINT = "Give a results.json that this command wrote."
T = TypeVar("T")


def written(head: Mapping[str, object], rows: Iterable[Mapping[str, object]]) -> str:
    lines = ",\n".join(json.dumps(row, allow_nan=False) for row in rows)
    return f'{json.dumps(head, indent=1)[:-2]},\n "rows": [\n{lines}\n]}}\n'


def read(text: str, file: str, wanted: Mapping[str, object], made: Callable[[dict[str, Any]], T]) -> T:
    """What `made` makes of the file's data, whose head must hold what is wanted. Raises UserError."""
    try:
        data = json.loads(text)
        for key, value in wanted.items():
            if data.get(key) != value:
                raise ValueError(f"{key} {data.get(key)} instead of {value}")
        return made(data)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UserError(f"{file} is not a results file of this experiment: {error}", hint=HINT) from error
