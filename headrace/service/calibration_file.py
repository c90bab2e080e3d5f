"""What was measured on the sites of a project, kept in .headrace/calibration.json."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, NonNegativeFloat, ValidationError

from headrace.catalog.model import Project
from headrace.cost import federation
from headrace.cost.federation import FederationCosts
from headrace.cost.windows import DEFAULTS, WindowCosts
from headrace.errors import InternalError, UserError
from headrace.runtime.files import write_whole
from headrace.service.layout import own_folder

_FORMAT = 1
_AGAIN = "Remove the file and run: headrace calibrate"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class MeasuredCase(_Strict):
    """One run, and what the fitted costs say of it."""

    case: str
    measured: NonNegativeFloat
    predicted: NonNegativeFloat

    @property
    def error(self) -> float:
        return self.predicted / self.measured - 1 if self.measured else 0.0


class Calibration(_Strict):
    """What work costs on one site."""

    endpoint: str
    machine: str
    date: str
    headrace: str
    unit: str = Field(pattern="^(cpu|wall)$")
    """`cpu`: CPU seconds of this process and all below it. `wall`: a remote site, whose processes cannot be
    seen; seconds of its batches instead."""
    seconds: NonNegativeFloat
    """How long it took."""
    cases: tuple[MeasuredCase, ...]
    held_out: MeasuredCase
    """A run that was not in the fit."""
    costs: dict[str, NonNegativeFloat]

    @property
    def typical_error(self) -> float:
        errors = sorted(abs(case.error) for case in self.cases)
        return errors[len(errors) // 2] if errors else 0.0

    @property
    def worst_error(self) -> float:
        return max((abs(case.error) for case in self.cases), default=0.0)


class FederationCalibration(_Strict):
    """What operators cost on Spark and on DuckDB on one site."""

    endpoint: str
    machine: str
    date: str
    headrace: str
    seconds: NonNegativeFloat
    cases: tuple[MeasuredCase, ...]
    held_out: MeasuredCase
    costs: dict[str, NonNegativeFloat]


class _File(_Strict):
    format: int
    sites: dict[str, Calibration]
    federation: dict[str, FederationCalibration] = Field(default_factory=dict)


def calibration_file(project: Project) -> Path:
    return own_folder(project) / "calibration.json"


def load_calibrations(project: Project) -> dict[str, Calibration]:
    """By site; empty where nothing was measured. Raises UserError for a file that is not ours."""
    return _load(project).sites


def load_federation(project: Project) -> dict[str, FederationCalibration]:
    """The same for operators on both engines."""
    return _load(project).federation


def _load(project: Project) -> _File:
    path = calibration_file(project)
    if not path.exists():
        return _File(format=_FORMAT, sites={})
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        found = _File.model_validate(data)
    except (OSError, ValueError) as error:
        raise UserError(f"cannot read {path}", detail=_reason(error), hint=_AGAIN) from error
    if found.format != _FORMAT:
        raise UserError(f"{path} has format {found.format}, this version reads {_FORMAT}", hint=_AGAIN)
    for site, calibration in found.sites.items():
        _checked(path, site, partial(WindowCosts.from_dict, calibration.costs))
    for site, split in found.federation.items():
        _checked(path, site, partial(FederationCosts.from_dict, split.costs))
    return found


def _reason(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return f"{'.'.join(map(str, first['loc'])) or 'the file'}: {first['msg']}"
    return str(error)


def _checked(path: Path, site: str, read: Callable[[], object]) -> None:
    try:
        read()
    except InternalError as error:
        detail = f"Site {site}: {error.message}."
        raise UserError(
            f"{path} does not have the costs of this version", detail=detail, hint=_AGAIN
        ) from error


def costs_of(project: Project, site: str) -> tuple[WindowCosts, Calibration | None]:
    """The costs of a site, and where they come from; None: never measured, the defaults are taken. What was
    measured on another endpoint says nothing of this one."""
    found = load_calibrations(project).get(site)
    if found is None or found.endpoint != project.sites[site].endpoint:
        return DEFAULTS, None
    return WindowCosts.from_dict(found.costs), found


def federation_costs_of(project: Project, site: str) -> tuple[FederationCosts, FederationCalibration | None]:
    """The same for operators on both engines."""
    found = load_federation(project).get(site)
    if found is None or found.endpoint != project.sites[site].endpoint:
        return federation.DEFAULTS, None
    return FederationCosts.from_dict(found.costs), found


def save_calibration(project: Project, site: str, calibration: Calibration) -> Path:
    """Put the site's figures in the file; those of other sites stay."""
    before = _load(project)
    return _save(project, before.model_copy(update={"sites": {**before.sites, site: calibration}}))


def save_federation(project: Project, site: str, calibration: FederationCalibration) -> Path:
    before = _load(project)
    return _save(project, before.model_copy(update={"federation": {**before.federation, site: calibration}}))


def _save(project: Project, file: _File) -> Path:
    path = calibration_file(project)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, file.model_dump_json(indent=2) + "\n")
    return path
