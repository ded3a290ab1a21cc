"""Logic models: perturbation data on a prior network, answered by a model or by probabilities of new readouts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.core.capabilities import (
    ATTRIBUTION,
    FINDINGS,
    FUNCTIONS,
    ITEMS,
    METRICS,
    SCORING,
    STATISTICS,
    SUITES,
    TRAINING,
    WORDS,
)
from calibrant.bench.families.capabilities import FAMILIES
from calibrant.bench.pages.capabilities import EXPLANATIONS
from calibrant.bench.pools.capabilities import AUDIT, CHECK, GENERATE, VERIFY
from calibrant.bench.protocols.base import PRESENT, PROTOCOLS
from calibrant.bench.report.capabilities import REPORT
from calibrant.bench.report.overview.contract import GUIDE
from calibrant.bench.report.people.remaining import REMAINING
from calibrant.bench.sets.capabilities import HYPOTHESES
from calibrant.bench.variants.contract import VARIANTS

if TYPE_CHECKING:
    from calibrant.dsl.logic.item import LogicItem

BENCHMARK: Benchmark[LogicItem] = Benchmark(
    name="logic",
    demo_protocols=("exact", "posterior", "greedy"),
    bundled=("logic",),
    provides={
        ATTRIBUTION: "scoring:ATTRIBUTE",
        AUDIT: "audit:AUDIT",
        CHECK: "audit:CHECK",
        EXPLANATIONS: "why:EXPLANATIONS",
        FAMILIES: "family.command:FAMILIES",
        FINDINGS: "audit:FINDINGS",
        FUNCTIONS: "api:FUNCTIONS",
        GENERATE: "generation:GENERATE",
        GUIDE: "report:GUIDE",
        HYPOTHESES: "api:hypotheses",
        ITEMS: "items:ITEMS",
        METRICS: "scoring:METRICS",
        PRESENT: "rows:present",
        PROTOCOLS: "rows:ROWS",
        REMAINING: "play:list_remaining",
        REPORT: "report:REPORT",
        SCORING: "scoring:SCORING",
        STATISTICS: "items:STATISTICS",
        SUITES: "generation:SUITES",
        TRAINING: "api:TRAINING",
        VARIANTS: "variants:VARIANTS",
        VERIFY: "audit:AUDIT",
        WORDS: "play:WORDS",
    },
)
