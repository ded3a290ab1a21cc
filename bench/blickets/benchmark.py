"""Extended blickets: episodes at a detector, answered by a rule and its objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.core.capabilities import (
    ATTRIBUTION,
    FINDINGS,
    FUNCTIONS,
    ITEMS,
    LOGS,
    METRICS,
    PLAY,
    REPLIES,
    SCORING,
    STATISTICS,
    SUITES,
    TRACES,
    TRAINING,
    WORDS,
)
from calibrant.bench.pages.capabilities import EPISODE_VIEWS, EXPLANATIONS, TIMELINES
from calibrant.bench.pools.capabilities import AUDIT, CHECK, GENERATE, VERIFY
from calibrant.bench.protocols.base import PRESENT, PROTOCOLS
from calibrant.bench.report.capabilities import REPORT
from calibrant.bench.report.overview.contract import GUIDE
from calibrant.bench.report.people.remaining import REMAINING
from calibrant.bench.sets.capabilities import HYPOTHESES
from calibrant.bench.variants.contract import VARIANTS

if TYPE_CHECKING:
    from calibrant.dsl.blickets.item import BlicketItem

BENCHMARK: Benchmark[BlicketItem] = Benchmark(
    name="blickets",
    demo_protocols=("static", "switch-aware", "quiet"),
    bundled=("blickets",),
    provides={
        ATTRIBUTION: "scoring:attribute",
        AUDIT: "audit:AUDIT",
        CHECK: "audit:CHECK",
        EPISODE_VIEWS: "timeline:EPISODE_VIEWS",
        EXPLANATIONS: "why:EXPLANATIONS",
        FINDINGS: "audit:FINDINGS",
        FUNCTIONS: "api:FUNCTIONS",
        GENERATE: "generation:GENERATE",
        GUIDE: "report:GUIDE",
        HYPOTHESES: "api:hypotheses",
        ITEMS: "items:ITEMS",
        LOGS: "scoring:scored_runs",
        METRICS: "scoring:METRICS",
        PLAY: "play:PLAY",
        PRESENT: "rows:present",
        PROTOCOLS: "rows:ROWS",
        REPLIES: "text_environment:play_replies",
        REMAINING: "report:list_remaining",
        REPORT: "report:REPORT",
        SCORING: "scoring:SCORING",
        STATISTICS: "items:STATISTICS",
        SUITES: "generation:SUITES",
        TIMELINES: "timeline:blicket_timeline",
        TRACES: "play:parse_trace",
        TRAINING: "api:TRAINING",
        VERIFY: "audit:AUDIT",
        WORDS: "play:WORDS",
        VARIANTS: "variants:VARIANTS",
    },
)
