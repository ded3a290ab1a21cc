"""Generation of pools of extended blickets, suite by suite."""

from __future__ import annotations

from calibrant.bench.pools.generated import SuiteGenerator

GENERATE = SuiteGenerator("blickets")
