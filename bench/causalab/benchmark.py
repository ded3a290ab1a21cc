"""CausaLab: episodes in a laboratory, answered by a frequency and a causal hypothesis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calibrant.bench.core import capabilities
from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.pages.capabilities import EPISODE_VIEWS, REVEALED_VIEWS
from calibrant.bench.pools.capabilities import ITEM_CONVERSION
from calibrant.bench.report.capabilities import REMAINING, TRAJECTORIES

if TYPE_CHECKING:
    from calibrant.dsl.causalab.item import LabItem

BENCHMARK: Benchmark[LabItem] = Benchmark(
    name="causalab",
    demo_protocols=("exact", "greedy", "abstain"),
    bundled=("causalab",),
    provides={
        capabilities.AIDS: "dialogues:aid_text_of_option",
        EPISODE_VIEWS: "dialogues:EPISODE_VIEWS",
        capabilities.FINDINGS: "audit:FINDINGS",
        ITEM_CONVERSION: "generation:CONVERT",
        capabilities.PHASES: "items:phase_prompt",
        capabilities.PLAY: "play:PLAY",
        capabilities.REPLIES: "dialogues:play_replies",
        REMAINING: "report:list_remaining",
        REVEALED_VIEWS: "dialogues:REVEALED_VIEWS",
        TRAJECTORIES: "dialogues:mean_trajectories",
    },
)
