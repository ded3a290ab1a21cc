"""Answers to items of a pool, for `calibrant list --scores`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calibrant.bench.core.attribution import KEY
from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.report.pool_attribution import add_attributions
from calibrant.bench.report.scored_answers import scored_answers
from calibrant.dsl.errors import CalibrantError, short_repr
from calibrant.dsl.records import file_digest


@dataclass(frozen=True)
class AnswerFilter:
    """The answers to chosen items of a pool.

    places: of the chosen items; kind: only answers of this class; system: only its answers
    """

    of: Benchmark[Any]
    pool: Path
    items: Sequence[Any]
    places: Collection[int]
    kind: str | None
    system: str | None

    def rows(self, sources: Sequence[Path]) -> Iterator[dict[str, Any]]:
        """Yield a row for each answer, in the order of the sources; `CalibrantError` if there are none of the pool."""
        digest, systems = file_digest(self.pool), dict[str, None]()
        place_by_id = {item.id: place for place, item in enumerate(self.items)}
        answers = ((context, score) for context, score in scored_answers(sources) if context.pool_digest == digest)
        num_answers = 0
        for context, score in add_attributions(answers, [self.pool] if self.kind else [], with_chance=False):
            num_answers += 1
            systems[context.system] = None
            attribution = score.get(KEY) or {}
            if self.system not in (None, context.system) or place_by_id.get(context.instance) not in self.places:
                continue
            if self.kind is None or attribution.get("kind") == self.kind:
                yield self._row(context, score, attribution)
        if not num_answers:
            names = ", ".join(map(str, sources))
            raise CalibrantError(f"no answer in {names} is to an item of {self.pool.name}; its SHA-256 is {digest[:8]}")
        if self.system is not None and self.system not in systems:
            raise CalibrantError(f"no answer of {short_repr(self.system)}; there are {', '.join(systems)}")

    def _row(self, context: Any, score: Mapping[str, Any], attribution: Mapping[str, Any]) -> dict[str, Any]:
        row: dict[str, Any] = {"id": context.instance, "setting": context.setting}
        if self.system is None:
            row["system"] = context.system
        steps = score.get("steps", score.get("num_steps"))
        success = self.of.metrics.success
        ties = {"right_of_ties": success.rate(score, context.setting)} if context.is_tied else {}
        return row | {
            "class": attribution.get("kind"),
            "moves": steps if isinstance(steps, int) else None,
            "left": attribution.get("members"),
            "counted": attribution.get("class"),
            "crash": context.reason if context.outcome == "crashed" else None,
            "right": success.judge(score, context.setting),
            **ties,
        }
