"""What a first run of a project would take of its sites and links: `headrace plan`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from headrace.catalog.model import Project
from headrace.service.admitting import spread_from_nothing
from headrace.service.planning import plan_project
from headrace.service.predict import Prediction, predicted
from headrace.service.spread_records import NOTHING
from headrace.service.utilisation import Utilisation, uses_of, utilisation


class Foreseen(TypedDict):
    predicted: Prediction
    utilisation: Utilisation


def foreseen(project: Project, only: Sequence[str] = ()) -> Foreseen:
    """Of what `run` would run from nothing."""
    placed, is_spread = plan_project(project, only), project.planner.spread
    channels = spread_from_nothing(project, placed).plan if is_spread else NOTHING
    uses = uses_of(project, placed, channels)
    return Foreseen(
        predicted=predicted(project, placed, channels), utilisation=utilisation(uses, is_spread=is_spread)
    )
