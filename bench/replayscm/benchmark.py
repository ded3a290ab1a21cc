"""ReplaySCM: tasks in four disclosures, answered by SCMs that are scored by replaying worlds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.core.capabilities import (
    ASSUME,
    ATTRIBUTION,
    EVALUATOR,
    EVALUATOR_RATES,
    FITTING,
    LINE_RECORDS,
    METRICS,
    PLAY,
    SUITES,
)
from calibrant.bench.core.sets import HYPOTHESES
from calibrant.bench.pages.capabilities import ANSWER_EXPLANATIONS, EPISODE_VIEWS, EXPLANATIONS, TIMELINES
from calibrant.bench.pools.capabilities import (
    ALTERNATIVE_ITEMS,
    ALTERNATIVES,
    CHECK,
    HARDEN,
    SAMPLE,
    SEPARATE,
    STORED_RESULTS,
)
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
        ALTERNATIVES: "alternatives:ALTERNATIVES",
        ALTERNATIVE_ITEMS: "generation:ALTERNATIVE_ITEMS",
        ASSUME: "items:ASSUME",
        ATTRIBUTION: "scoring:ATTRIBUTE",
        CHECK: "pools.check:CHECK",
        ANSWER_EXPLANATIONS: "why.explainer:ANSWERS",
        APPLICABLE: "rows.listed:applicable_rows",
        EPISODE_VIEWS: "episodes:EPISODE_VIEWS",
        EVALUATOR: "scoring:make_evaluator",
        EVALUATOR_RATES: "rows.rates:measure_bundled",
        EXPECTATIONS: "expectations:EXPECTATIONS",
        EXPLANATIONS: "why.explainer:EXPLANATIONS",
        FITTING: "fitting.fit:FITTING",
        HARDEN: "hardening:HARDEN",
        HYPOTHESES: "sets:hypotheses",
        LINE_RECORDS: "audit.records:LINE_RECORDS",
        METRICS: "verdict:METRICS",
        PLAY: "play:PLAY",
        PRESENT: "rows.exact:present",
        PROTOCOLS: "rows.listed:ROWS",
        REMAINING: "sets:list_remaining",
        SAMPLE: "generation:SAMPLE",
        SEPARATE: "audit.separations:SEPARATE",
        STORED_RESULTS: "pools.stored_results:StoredResults",
        SUITES: "items:SUITES",
        TIMELINES: "episodes:scm_timeline",
    },
)
