"""CauSim: causal questions about a program, answered by one member of the complete answer set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.core.capabilities import FINDINGS, LINE_RECORDS, METRICS, WORKED_SOLUTIONS
from calibrant.bench.pools.capabilities import HARDEN, PROGRAMS
from calibrant.bench.report.capabilities import EXPECTATIONS

if TYPE_CHECKING:
    from calibrant.dsl.causim.item import CausimItem

BENCHMARK: Benchmark[CausimItem] = Benchmark(
    name="causim",
    demo_protocols=("exact", "graph_only", "copy"),
    bundled=("causim",),
    provides={
        EXPECTATIONS: "report:expect",
        FINDINGS: "audit:FINDINGS",
        HARDEN: "audit:HARDEN",
        LINE_RECORDS: "generation:LINE_RECORDS",
        METRICS: "verdict:METRICS",
        PROGRAMS: "programs:PROGRAMS",
        WORKED_SOLUTIONS: "api:WORKED_SOLUTIONS",
    },
)
