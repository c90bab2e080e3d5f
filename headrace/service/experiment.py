"""`headrace experiment`: run a paper's experiments, or take results from a file, and write the report."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from headrace.errors import UserError
from headrace.service import (
    experiment_admission,
    experiment_distribution,
    experiment_federation,
    experiment_placement,
    experiment_weaving,
)
from headrace.service.experiment_admission import Setting as AdmissionSetting
from headrace.service.experiment_distribution import Setting as DistributionSetting
from headrace.service.experiment_distribution import setting_of as distribution_setting
from headrace.service.experiment_federation import Setting as FederationSetting
from headrace.service.experiment_federation import setting_of as federation_setting
from headrace.service.experiment_files import ClockName, OnProgress, Report
from headrace.service.experiment_placement import Setting as PlacementSetting
from headrace.service.experiment_weaving import Setting as WeavingSetting

__all__ = [
    "EXPERIMENTS",
    "AdmissionSetting",
    "DistributionSetting",
    "FederationSetting",
    "PlacementSetting",
    "Report",
    "WeavingSetting",
    "check_name",
    "check_options",
    "distribution_setting",
    "federation_setting",
    "report_from",
    "run_experiment",
]

EXPERIMENTS = {
    "weaving": "paper 000: thirteen optimisers and ours on 256 sets of window queries",
    "placement": "paper 001: join order and placement over a network, with reuse",
    "distribution": "paper 002: operators on several sites, moved while they run",
    "admission": "paper 003: which queries are admitted by hosts with limits, and how fast",
    "federation": "paper 004: queries split between Spark and DuckDB, and what that gives on this machine",
}
OWN_OPTIONS = {
    "weaving": ("repeats", "stop", "insert", "overlap", "workers"),
    "placement": ("seeds", "workers"),
    "distribution": ("seeds", "real", "seconds"),
    "admission": ("seeds", "milp_seeds", "deadline", "workers"),
    "federation": ("rates", "queries", "splits", "costs", "limit"),
}
"""Those that not all have."""
AnySetting = WeavingSetting | PlacementSetting | DistributionSetting | AdmissionSetting | FederationSetting


def check_name(name: str) -> None:
    if name not in EXPERIMENTS:
        hint = f"Experiments: {', '.join(sorted(EXPERIMENTS))}."
        raise UserError(f'there is no experiment "{name}"', hint=hint)


def check_options(name: str, given: Collection[str]) -> None:
    """Raises UserError for an option of another experiment: it would change nothing, unnoticed."""
    own = OWN_OPTIONS[name]
    strange = [one for options in OWN_OPTIONS.values() for one in options if one in given and one not in own]
    if strange:
        others = ", ".join(other for other, options in OWN_OPTIONS.items() if strange[0] in options)
        has = ", ".join(map(_typed, own))
        hint = f"{_typed(strange[0])} belongs to {others}. {name} has {has} of its own."
        raise UserError(f"{name} has no option {_typed(strange[0])}", hint=hint)


def _typed(option: str) -> str:
    return "--" + option.replace("_", "-")


def run_experiment(setting: AnySetting, out: Path, clock: ClockName, on_progress: OnProgress) -> Report:
    """Run everything, keep the results, then make the report."""
    if isinstance(setting, FederationSetting):
        return experiment_federation.run(setting, out, clock, on_progress)
    if isinstance(setting, DistributionSetting):
        return experiment_distribution.run(setting, out, clock, on_progress)
    if isinstance(setting, AdmissionSetting):
        return experiment_admission.run(setting, out, clock, on_progress)
    if isinstance(setting, PlacementSetting):
        return experiment_placement.run(setting, out, clock, on_progress)
    return experiment_weaving.run(setting, out, clock, on_progress)


def report_from(name: str, file: Path, out: Path) -> Report:
    """The same report from an earlier run's results."""
    if name == "federation":
        return experiment_federation.report_from(file, out)
    if name == "distribution":
        return experiment_distribution.report_from(file, out)
    if name == "admission":
        return experiment_admission.report_from(file, out)
    if name == "placement":
        return experiment_placement.report_from(file, out)
    return experiment_weaving.report_from(file, out)
