"""Plans of the generator by stratum: budgets of the searches for worlds, and the filters beyond exposure.

Source: the published configurations, stored under `knobs` in every record (a test compares), and the paper's Table B.2
for the targeted disambiguation, which no configuration mentions. Strata of more variables have the plan of
`vhs_n10_anchor_m10`, with steps of survivor reduction in proportion to their worlds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from calibrant.dsl.replayscm.generation.scms import LARGE_STRATA, NUM_WORLDS, Stratum

SEED_WORLDS = 3  # with the one without intervention; worlds against shortcuts follow
PROBE_SIZE = 3  # predecessors in a local pattern
MAX_ADDED_WORLDS = 3  # by targeted disambiguation: the paper's records have 8 to 11 training worlds


@dataclass(frozen=True, slots=True)
class StratumPlan:
    """Budgets and filters of one stratum.

    restarts: training sets drawn for one population until its shortcuts are gone
    candidates: worlds tried at most in one step of survivor reduction
    iterations: steps of survivor reduction
    min_reduction: share of the surviving shortcuts that those steps must remove
    attempts: populations of one SCM before it is given up
    support_candidates: worlds tried for new local patterns; 0 leaves that stage out
    support_assigned: their probability of mode hard_assigned
    max_intervened: training worlds in which an endogenous variable may be a target; None for any number
    novelty: bounds of every held-out world's target novelty; None for none
    """

    restarts: int
    candidates: int
    iterations: int
    min_reduction: float
    attempts: int
    support_candidates: int
    support_assigned: float
    max_intervened: int | None = None
    novelty: tuple[float, float] | None = None


PLANS: Mapping[str, StratumPlan] = MappingProxyType(
    {
        "hs_n6_easy_calibration": StratumPlan(8, 180, 8, 0.75, 120, 24, 0.75),
        "hs_n7_anchor_plus": StratumPlan(10, 200, 10, 0.85, 150, 24, 0.80),
        "hs_n8_bridge": StratumPlan(12, 220, 12, 0.88, 170, 24, 0.80),
        "vhs_n8_dense": StratumPlan(12, 240, 12, 0.88, 180, 24, 0.80),
        "vhs_n9_anchor": StratumPlan(12, 240, 12, 0.88, 180, 24, 0.80),
        "vhs_n9_dense_strict": StratumPlan(14, 260, 14, 0.90, 220, 28, 0.82),
        "vhs_n10_anchor_m10": StratumPlan(12, 250, 12, 0.90, 210, 28, 0.82),
        "vhs_n10_extreme_near_impossible": StratumPlan(16, 280, 16, 0.92, 260, 28, 0.85),
        "t1_clean_hard": StratumPlan(16, 320, 16, 0.93, 260, 0, 0.85, max_intervened=5, novelty=(0.25, 0.72)),
    }
)


def _large(stratum: Stratum) -> StratumPlan:
    like = PLANS["vhs_n10_anchor_m10"]
    return replace(like, iterations=-(-like.iterations * stratum.num_worlds // NUM_WORLDS))


LARGE_PLANS: Mapping[str, StratumPlan] = MappingProxyType({stratum.name: _large(stratum) for stratum in LARGE_STRATA})


def plan_for(stratum: Stratum) -> StratumPlan:
    """Return the stratum's own plan; ValueError that lists the known ones otherwise."""
    plans = {**PLANS, **LARGE_PLANS}
    if stratum.name not in plans:
        raise ValueError(f"no plan for stratum '{stratum.name}'; known: {', '.join(plans)}")
    return plans[stratum.name]
