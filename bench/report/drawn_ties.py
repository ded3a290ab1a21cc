"""Sampling error of rates that are means over draws of equally good answers, where there are too many to list."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import fsum, sqrt
from typing import Any

from calibrant.bench.core.registry import benchmark
from calibrant.bench.core.scoring import AnswerContext
from calibrant.bench.core.verdict import MeanScore
from calibrant.bench.statistics import NORMAL_95


@dataclass
class _System:
    num_items: int = 0
    num_drawn: int = 0
    draws: int = 0
    variances: list[float] = field(default_factory=list)


class DrawnTies:
    """Collects, by system and setting, items whose rate is a mean over draws."""

    def __init__(self) -> None:
        self._systems: dict[tuple[str, str], _System] = {}

    def add(self, context: AnswerContext, score: Mapping[str, Any]) -> None:
        """Count an answer that is right or wrong; draws of equally good ones have the variance p (1 - p) / draws."""
        success = benchmark(context.benchmark).metrics.success
        if not success.is_defined(score, context.setting):
            return
        system = self._systems.setdefault((context.system, context.setting), _System())
        system.num_items += 1
        if not isinstance(score, MeanScore) or not score.is_drawn:
            return
        draws = sum(times for times, _ in score.parts)
        right = sum(times for times, part in score.parts if success.is_right(part, context.setting)) / draws
        system.num_drawn += 1
        system.draws = draws
        system.variances.append(right * (1 - right) / draws)

    def lines(self) -> Iterator[str]:
        """Yield a line for each system and setting with draws: their 95 % interval around the rate of right answers."""
        for (name, setting), system in sorted(self._systems.items()):
            if system.num_drawn:
                half = NORMAL_95 * sqrt(fsum(system.variances)) / system.num_items
                where = f" on {setting}" if setting else ""
                yield (
                    f"{name}{where}: {system.num_drawn} of {system.num_items} items have more than {system.draws:,}"
                    f" equally good answers; means over as many draws leave the rate of right ones ± {half:.4f} (95 %)."
                )
