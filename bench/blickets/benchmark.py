"""Extended blickets: episodes at a detector, answered by a rule and its objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calibrant.bench.core import capabilities
from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.pages.capabilities import EPISODE_VIEWS, TIMELINES
from calibrant.bench.report.capabilities import REMAINING

if TYPE_CHECKING:
    from calibrant.dsl.blickets.item import BlicketItem

BENCHMARK: Benchmark[BlicketItem] = Benchmark(
    name="blickets",
    demo_protocols=("static", "switch-aware", "quiet"),
    bundled=("blickets",),
    provides={
        EPISODE_VIEWS: "timeline:EPISODE_VIEWS",
        capabilities.FINDINGS: "audit:FINDINGS",
        capabilities.LOGS: "scoring:score_runs",
        capabilities.PLAY: "play:PLAY",
        capabilities.REPLIES: "agents:play_replies",
        REMAINING: "report:list_remaining",
        TIMELINES: "timeline:blicket_timeline",
        capabilities.TRACES: "play:parse_trace",
    },
)
