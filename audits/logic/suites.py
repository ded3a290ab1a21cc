"""Suites of items of logic models by name, the easiest first."""

from __future__ import annotations

from collections.abc import Mapping

from calibrant.audits.logic.generation import LogicPlan

SUITES: Mapping[str, LogicPlan] = {
    "exact": LogicPlan(nodes=6, readouts=3, noise=0.0, fit="0", size=0),
    "noisy": LogicPlan(),
    "missing": LogicPlan(missing=0.2, experiments=10),
    "loops": LogicPlan(loops=2),
    "large": LogicPlan(nodes=16, layers=4, readouts=6, experiments=12),
}
