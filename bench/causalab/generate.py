"""Generation of pools of CausaLab, suite by suite."""

from __future__ import annotations

from calibrant.bench.pools.generated import SuiteGenerator

GENERATE = SuiteGenerator("causalab")
