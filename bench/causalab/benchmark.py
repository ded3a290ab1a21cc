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
from calibrant.bench.protocols.base import PROTOCOLS
from calibrant.bench.protocols.presentation import PRESENT
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
        AIDS: "dialogues.aids:shown_aid",
        ATTRIBUTION: "scoring:attribute",
        AUDIT: "audit:AUDIT",
        CHECK: "audit:CHECK",
        EPISODE_VIEWS: "trajectories.page:EPISODE_VIEWS",
        EXPLANATIONS: "why.explainer:EXPLANATIONS",
        FINDINGS: "audit:FINDINGS",
        FUNCTIONS: "solve:FUNCTIONS",
        GENERATE: "generate:GENERATE",
        GUIDE: "guide:GUIDE",
        HYPOTHESES: "sets:hypotheses",
        ITEMS: "items:ITEMS",
        ITEM_CONVERSION: "generate:CONVERT",
        METRICS: "verdict:METRICS",
        PHASES: "items:phase_prompt",
        PLAY: "play:PLAY",
        PRESENT: "presentation:present",
        PROTOCOLS: "protocols:ROWS",
        REPLIES: "dialogues.replies:play_replies",
        REMAINING: "people.remaining:list_remaining",
        REPORT: "section:REPORT",
        REVEALED_VIEWS: "trajectories.page:REVEALED_VIEWS",
        SCORING: "scoring:SCORING",
        STATISTICS: "statistics:STATISTICS",
        SUITES: "generate:SUITES",
        TRAINING: "training:TRAINING",
        TRAJECTORIES: "trajectories.means:mean_trajectories",
        VERIFY: "audit:AUDIT",
        WORDS: "people.words:WORDS",
        VARIANTS: "variants:VARIANTS",
    },
)
