"""ReplaySCM: tasks in four disclosures, answered by SCMs that are scored by replaying worlds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calibrant.bench.core import capabilities
from calibrant.bench.core.attribution import HYPOTHESES
from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.pages.capabilities import ANSWER_EXPLANATIONS, EPISODE_VIEWS, EXPLANATIONS, TIMELINES
from calibrant.bench.pools import capabilities as pools_capabilities
from calibrant.bench.protocols import APPLICABLE, PRESENT, PROTOCOLS
from calibrant.bench.report.capabilities import EXPECTATIONS, REMAINING

if TYPE_CHECKING:
    from calibrant.dsl.replayscm.item import Problem

BENCHMARK: Benchmark[Problem] = Benchmark(
    name="replayscm",
    demo_protocols=("exact", "posterior"),
    bundled=("ordered", "block", "hidden_order", "hidden_roots"),
    bundled_extras=("replayscm_episodes",),
    provides={
        pools_capabilities.ALTERNATIVES: "alternatives:ALTERNATIVES",
        pools_capabilities.ALTERNATIVE_ITEMS: "generation:ALTERNATIVE_ITEMS",
        capabilities.ASSUME: "items:ASSUME",
        capabilities.ATTRIBUTION: "scoring:ATTRIBUTE",
        pools_capabilities.CHECK: "pools.check:CHECK",
        ANSWER_EXPLANATIONS: "why.explainer:ANSWERS",
        APPLICABLE: "rows.listed:applicable_rows",
        EPISODE_VIEWS: "episodes:EPISODE_VIEWS",
        capabilities.EVALUATOR: "scoring:make_evaluator",
        capabilities.EVALUATOR_RATES: "rows.rates:measure_bundled",
        EXPECTATIONS: "chance_and_best:EXPECTATIONS",
        EXPLANATIONS: "why.explainer:EXPLANATIONS",
        capabilities.FITTING: "fitting.fit:FITTING",
        pools_capabilities.HARDEN: "hardening:HARDEN",
        HYPOTHESES: "sets:hypotheses",
        capabilities.LINE_RECORDS: "audit.records:LINE_RECORDS",
        capabilities.METRICS: "verdict:METRICS",
        capabilities.PLAY: "play:PLAY",
        PRESENT: "rows.exact:present",
        PROTOCOLS: "rows.listed:ROWS",
        REMAINING: "sets:list_remaining",
        pools_capabilities.SAMPLE: "generation:SAMPLE",
        pools_capabilities.SEPARATE: "audit.separations:SEPARATE",
        pools_capabilities.STORED_RESULTS: "pools.stored_results:StoredResults",
        capabilities.SUITES: "items:SUITES",
        TIMELINES: "episodes:scm_timeline",
    },
)
