"""The prices that choices are made with: the defaults, measured now, or from a calibration.json."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path

from headrace.catalog.model import Project
from headrace.cost.federation import DEFAULTS, FederationCosts
from headrace.errors import InternalError, UserError
from headrace.service.calibrate_federation import calibrate_federation
from headrace.service.throughput_stream import Load, project_of

HINT = "Give default, calibrate, or a calibration.json that headrace calibrate wrote."


def prices_named(name: str, folder: Path, cores: int) -> FederationCosts:
    """Raises UserError for a file that has none."""
    if name == "default":
        return DEFAULTS
    if name == "calibrate":
        # The files are those of a project: they are removed with the folder.
        project = _empty_project(folder, cores)
        found = calibrate_federation(project, "local", os.environ, datetime.now(UTC))
        return FederationCosts.from_dict(found.costs)
    return _from_file(Path(name))


def _empty_project(folder: Path, cores: int) -> Project:
    root = folder / "calibration"
    root.mkdir(parents=True, exist_ok=True)
    return project_of(Load(1), folder, "none", "", cores).model_copy(update={"root": root})


def _from_file(path: Path) -> FederationCosts:
    try:
        sites = json.loads(path.read_text(encoding="utf-8"))["federation"]
        return FederationCosts.from_dict(next(iter(sites.values()))["costs"])
    except (
        OSError,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        StopIteration,
        InternalError,
    ) as error:
        raise UserError(f"{path} has no prices of operators on both engines", hint=HINT) from error
