"""CauSim: causal questions about a program, answered by one member of the complete answer set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.core.capabilities import (
    ATTRIBUTION,
    FINDINGS,
    FUNCTIONS,
    ITEMS,
    LINE_RECORDS,
    METRICS,
    SCORING,
    STATISTICS,
    SUITES,
    TRAINING,
    WORDS,
    WORKED_SOLUTIONS,
)
from calibrant.bench.pages.capabilities import EXPLANATIONS
from calibrant.bench.pools.capabilities import AUDIT, CHECK, GENERATE, HARDEN, PROGRAMS, VERIFY
from calibrant.bench.protocols.base import PRESENT, PROTOCOLS
from calibrant.bench.report.capabilities import EXPECTATIONS, REPORT
from calibrant.bench.report.overview.contract import GUIDE
from calibrant.bench.report.people.remaining import REMAINING
from calibrant.bench.sets.capabilities import HYPOTHESES
from calibrant.bench.variants.contract import VARIANTS

if TYPE_CHECKING:
    from calibrant.dsl.causim.item import CausimItem

BENCHMARK: Benchmark[CausimItem] = Benchmark(
    name="causim",
    demo_protocols=("exact", "graph_only", "copy"),
    bundled=("causim",),
    provides={
        ATTRIBUTION: "scoring:attribute",
        AUDIT: "audit:AUDIT",
        CHECK: "audit:CHECK",
        EXPECTATIONS: "report:expect",
        EXPLANATIONS: "why:EXPLANATIONS",
        FINDINGS: "audit:FINDINGS",
        FUNCTIONS: "api:FUNCTIONS",
        GENERATE: "generation:GENERATE",
        GUIDE: "report:GUIDE",
        HARDEN: "audit:HARDEN",
        HYPOTHESES: "api:hypotheses",
        ITEMS: "items:ITEMS",
        LINE_RECORDS: "generation:LINE_RECORDS",
        METRICS: "verdict:METRICS",
        PROGRAMS: "programs:PROGRAMS",
        PRESENT: "rows:present",
        PROTOCOLS: "rows:ROWS",
        REMAINING: "play:list_remaining",
        REPORT: "report:REPORT",
        SCORING: "scoring:SCORING",
        STATISTICS: "items:STATISTICS",
        SUITES: "generation:SUITES",
        TRAINING: "api:TRAINING",
        VERIFY: "audit:AUDIT",
        WORKED_SOLUTIONS: "api:WORKED_SOLUTIONS",
        WORDS: "play:WORDS",
        VARIANTS: "variants:VARIANTS",
    },
)
