"""The paper's claims in the order of its text, judged."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.experiments.judged import Claim
from headrace.experiments.placement.cases import (
    AIRLINE,
    BOTTOM_UP,
    IN_NETWORK,
    NPC,
    PLAN_THEN_DEPLOY,
    RELAXATION,
    SYNTHETIC,
    TOP_DOWN,
)
from headrace.experiments.placement.claims_cost import (
    bottom_up_cost,
    bottom_up_falls,
    fewer_joins,
    integrated,
    more_filters,
    npc_cost,
    relaxation_worst,
    saves,
    suboptimal,
    top_down_beats,
    top_down_flat,
)
from headrace.experiments.placement.claims_search import (
    bounds,
    exception,
    fewer_at_sizes,
    fewer_plans,
    in_network_plans,
    lemma,
    most_with_64,
    npc_follows,
    npc_plans,
    quicker,
    quicker_with_size,
    same_bounds,
    small_share,
    smaller_with_32,
)
from headrace.experiments.placement.judgement import Evidence, MakeClaim


def judge(evidence: Evidence) -> tuple[Claim, ...]:
    return tuple(claim(evidence) for claim in CLAIMS)


CLAIMS: Sequence[MakeClaim] = (
    integrated(PLAN_THEN_DEPLOY),
    integrated(RELAXATION),
    lemma(5, 64, 3.02e9, "section 1"),
    lemma(5, 128, 4.83e10, "section 4.2"),
    lemma(4, 57, 3.3e6, "section 4.2.1"),
    smaller_with_32(BOTTOM_UP),
    smaller_with_32(TOP_DOWN),
    most_with_64(BOTTOM_UP),
    most_with_64(TOP_DOWN),
    fewer_plans,
    exception,
    bottom_up_cost,
    bottom_up_falls,
    top_down_flat,
    npc_cost,
    npc_plans,
    npc_follows,
    suboptimal(SYNTHETIC, TOP_DOWN, 10, "section 4.4, Fig. 12"),
    suboptimal(SYNTHETIC, NPC, 18, "section 4.4, Fig. 12"),
    suboptimal(SYNTHETIC, BOTTOM_UP, 34, "section 4.4, Fig. 12"),
    top_down_beats,
    saves(SYNTHETIC, TOP_DOWN, IN_NETWORK, 40, "section 4.4, Fig. 12"),
    saves(SYNTHETIC, BOTTOM_UP, IN_NETWORK, 27, "section 4.4, Fig. 12"),
    saves(SYNTHETIC, TOP_DOWN, RELAXATION, 59, "section 4.4, Fig. 12"),
    saves(SYNTHETIC, BOTTOM_UP, RELAXATION, 49, "section 4.4, Fig. 12"),
    relaxation_worst(SYNTHETIC),
    in_network_plans(SYNTHETIC, "70 % and 200 %"),
    suboptimal(AIRLINE, TOP_DOWN, 5, "section 4.4, Fig. 13"),
    suboptimal(AIRLINE, NPC, 6, "section 4.4, Fig. 13"),
    suboptimal(AIRLINE, BOTTOM_UP, 36, "section 4.4, Fig. 13"),
    saves(AIRLINE, TOP_DOWN, IN_NETWORK, 42, "section 4.4, Fig. 13"),
    saves(AIRLINE, BOTTOM_UP, IN_NETWORK, 25, "section 4.4, Fig. 13"),
    saves(AIRLINE, NPC, IN_NETWORK, 41, "section 4.4, Fig. 13"),
    saves(AIRLINE, TOP_DOWN, RELAXATION, 96, "section 4.4, Fig. 13"),
    saves(AIRLINE, BOTTOM_UP, RELAXATION, 93, "section 4.4, Fig. 13"),
    saves(AIRLINE, NPC, RELAXATION, 95, "section 4.4, Fig. 13"),
    relaxation_worst(AIRLINE),
    in_network_plans(AIRLINE, "97 % and 270 %"),
    fewer_joins(TOP_DOWN, 81),
    fewer_joins(BOTTOM_UP, 73),
    fewer_joins(NPC, 48),
    more_filters,
    small_share,
    fewer_at_sizes,
    bounds,
    same_bounds,
    quicker,
    quicker_with_size,
)
