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
from calibrant.bench.protocols.base import PROTOCOLS
from calibrant.bench.protocols.presentation import PRESENT
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
        EPISODE_VIEWS: "episodes.timeline:EPISODE_VIEWS",
        EXPLANATIONS: "why.explainer:EXPLANATIONS",
        FINDINGS: "audit:FINDINGS",
        FUNCTIONS: "solve:FUNCTIONS",
        GENERATE: "generate:GENERATE",
        GUIDE: "guide:GUIDE",
        HYPOTHESES: "solve:hypotheses",
        ITEMS: "items:ITEMS",
        LOGS: "logs:scored_runs",
        METRICS: "verdict:METRICS",
        PLAY: "play:PLAY",
        PRESENT: "presentation:present",
        PROTOCOLS: "protocols:ROWS",
        REPLIES: "episodes.text_episode:play_replies",
        REMAINING: "remaining:list_remaining",
        REPORT: "section:REPORT",
        SCORING: "scoring:SCORING",
        STATISTICS: "statistics:STATISTICS",
        SUITES: "generate:SUITES",
        TIMELINES: "episodes.timeline:blicket_timeline",
        TRACES: "play:parse_trace",
        TRAINING: "training:TRAINING",
        VERIFY: "audit:AUDIT",
        WORDS: "episodes.words:WORDS",
        VARIANTS: "copies.variants:VARIANTS",
    },
)
