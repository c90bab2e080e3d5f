"""check_plan finds what the constructors cannot, and names the rule."""

from __future__ import annotations

import pytest

from headrace.errors import InternalError
from headrace.plan.check import check_plan
from headrace.plan.types import DataType
from tests.unit.plan.building import READINGS, SWITCHES, interval_join, project, schema, window


def test_a_sound_plan_passes() -> None:
    for plan in (READINGS, window(READINGS), interval_join(), project(READINGS, "v", at="ts")):
        check_plan(plan, schema=plan.schema, blame="nobody")


@pytest.mark.parametrize(
    "after",
    [project(READINGS, "ts", "k", "v"), project(READINGS, "k", "ts", "v", "s"), SWITCHES],
    ids=["a column less", "another order", "other columns"],
)
def test_changed_columns_are_blamed_on_the_rule(after: object) -> None:
    with pytest.raises(InternalError, match="rule bad_rule changed the columns") as caught:
        check_plan(after, schema=READINGS.schema, blame="bad_rule")  # type: ignore[arg-type]
    assert "before: Schema(ts timestamp, k int" in caught.value.detail


def test_a_changed_type_is_a_changed_column() -> None:
    with pytest.raises(InternalError, match="changed the columns"):
        check_plan(PLAN_K, schema=schema(k=DataType.BIGINT), blame="bad_rule")


PLAN_K = project(READINGS, "k")


def test_a_node_deep_down_that_was_forced_into_a_wrong_state_is_found() -> None:
    scan = project(SWITCHES, "ts2", "k2")
    plan = project(scan, "k2")
    object.__setattr__(scan, "items", ())
    with pytest.raises(InternalError, match="rule bad_rule made a wrong Project"):
        check_plan(plan, schema=plan.schema, blame="bad_rule")


def test_a_node_that_contradicts_its_inputs_is_found() -> None:
    inner = project(SWITCHES, "ts2", "k2")
    plan = project(inner, "k2")
    object.__setattr__(inner, "times", ())
    with pytest.raises(InternalError, match="contradicts its inputs"):
        check_plan(plan, schema=plan.schema, blame="bad_rule")
