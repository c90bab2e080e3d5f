"""What was seen of the relations of split queries, kept for the next run.

A split is left because of what it showed; the one that takes over may not show it. Without this file the next
run would go by estimates again, and hand the query back. Only choices depend on it: it may be deleted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from headrace.catalog.model import Project
from headrace.runtime.files import write_json
from headrace.service.layout import own_folder
from headrace.service.rechoosing import Known

_FILE = "seen.json"


def load_seen(project: Project) -> dict[str, Known]:
    """By the fingerprint of a plan; nothing where the file cannot be read."""
    try:
        data = json.loads((own_folder(project) / _FILE).read_text(encoding="utf-8"))
        return {name: {int(node): float(one) for node, one in known.items()} for name, known in data.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def save_seen(project: Project, known: Mapping[str, Known]) -> None:
    own_folder(project).mkdir(parents=True, exist_ok=True)
    write_json(own_folder(project) / _FILE, {name: dict(one) for name, one in known.items()})
