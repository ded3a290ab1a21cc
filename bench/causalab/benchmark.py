"""CausaLab: episodes in a laboratory, answered by a frequency and a causal hypothesis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.core.capabilities import (
    AIDS,
    ATTRIBUTION,
    FINDINGS,
    FUNCTIONS,
    ITEMS,
    METRICS,
    PHASES,
    PLAY,
    REPLIES,
    SCORING,
    STATISTICS,
    SUITES,
    TRAINING,
    WORDS,
)
from calibrant.bench.pages.capabilities import EPISODE_VIEWS, EXPLANATIONS, REVEALED_VIEWS
from calibrant.bench.pools.capabilities import AUDIT, CHECK, GENERATE, ITEM_CONVERSION, VERIFY
from calibrant.bench.protocols.base import PRESENT, PROTOCOLS
from calibrant.bench.report.capabilities import REPORT, TRAJECTORIES
from calibrant.bench.report.overview.contract import GUIDE
from calibrant.bench.report.people.remaining import REMAINING
from calibrant.bench.sets.capabilities import HYPOTHESES
from calibrant.bench.variants.contract import VARIANTS

if TYPE_CHECKING:
    from calibrant.dsl.causalab.item import LabItem

BENCHMARK: Benchmark[LabItem] = Benchmark(
    name="causalab",
    demo_protocols=("exact", "greedy", "abstain"),
    bundled=("causalab",),
    provides={
        AIDS: "dialogues:shown_aid",
        ATTRIBUTION: "scoring:attribute",
        AUDIT: "audit:AUDIT",
        CHECK: "audit:CHECK",
        EPISODE_VIEWS: "trajectories:EPISODE_VIEWS",
        EXPLANATIONS: "why:EXPLANATIONS",
        FINDINGS: "audit:FINDINGS",
        FUNCTIONS: "api:FUNCTIONS",
        GENERATE: "generation:GENERATE",
        GUIDE: "report:GUIDE",
        HYPOTHESES: "api:hypotheses",
        ITEMS: "items:ITEMS",
        ITEM_CONVERSION: "generation:CONVERT",
        METRICS: "scoring:METRICS",
        PHASES: "items:phase_prompt",
        PLAY: "play:PLAY",
        PRESENT: "rows:present",
        PROTOCOLS: "rows:ROWS",
        REPLIES: "dialogues:play_replies",
        REMAINING: "report:list_remaining",
        REPORT: "report:REPORT",
        REVEALED_VIEWS: "trajectories:REVEALED_VIEWS",
        SCORING: "scoring:SCORING",
        STATISTICS: "items:STATISTICS",
        SUITES: "generation:SUITES",
        TRAINING: "api:TRAINING",
        TRAJECTORIES: "trajectories:mean_trajectories",
        VERIFY: "audit:AUDIT",
        WORDS: "play:WORDS",
        VARIANTS: "variants:VARIANTS",
    },
)
