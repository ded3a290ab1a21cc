"""Logic models: perturbation data on a prior network; the answer is a model, or probabilities of new readouts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.core.capabilities import ATTRIBUTION, FINDINGS
from calibrant.bench.pools.capabilities import FAMILIES
from calibrant.bench.protocols import APPLICABLE

if TYPE_CHECKING:
    from calibrant.dsl.logic.item import LogicItem

BENCHMARK: Benchmark[LogicItem] = Benchmark(
    name="logic",
    demo_protocols=("exact", "posterior", "greedy"),
    bundled=("logic",),  # data/sample_logic.jsonl, which comes with the package
    bundled_extras=("series",),  # data/sample_series.jsonl, which the demo and measurements leave out
    # capability: "module:name" in calibrant.bench.logic, imported at first use
    provides={
        ATTRIBUTION: "scoring:ATTRIBUTE",
        FAMILIES: "family.command:FAMILIES",
        FINDINGS: "audit:FINDINGS",
        APPLICABLE: "rows:applicable_rows",
    },
)
