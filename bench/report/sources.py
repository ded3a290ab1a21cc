"""What a report is made from: folders of runs, scored or raw predictions, official files with embedded results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.answers.fields import FieldNames
from bench.answers.sources import scored_answers
from bench.benchmarks.registry import DEFAULT, NAMES, benchmark_of
from bench.report.part import Answer
from bench.report.rate_rows import AnswerOrigin
from dsl.errors import CalibrantError, shown


@dataclass(frozen=True)
class Sources:
    """Where scored answers come from.

    runs: folders of runs, and files that `calibrant score` wrote
    predictions: raw predictions, JSON lines, for instances of `pools`; a line of `calibrant score` will do too
    official: pool files that embed model results
    pools: pool files; they say which instances share a latent SCM, where instance names do not
    fields: what the user calls the fields of raw predictions; say: is told what was recognised in them
    """

    runs: Sequence[Path] = ()
    predictions: Sequence[Path] = ()
    official: Sequence[Path] = ()
    pools: Sequence[Path] = ()
    fields: FieldNames | None = None
    say: Callable[[str], None] = lambda line: None

    def answers(self) -> dict[str, list[Answer]]:
        """Every scored answer by its benchmark, in their order; `CalibrantError` if there is none."""
        found: dict[str, list[Answer]] = {name: [] for name in NAMES}
        seen: set[tuple[str, str, str, str, int]] = set()
        recognised: list[str] = []
        for origin, score in self._scored(recognised):
            key = origin.pool_digest, origin.instance, origin.system, repr(sorted(origin.config.items())), origin.sample
            if key in seen:
                raise CalibrantError(f"{origin.system} on {shown(origin.instance)} of {origin.pool} is given twice")
            seen.add(key)
            found[origin.benchmark].append((origin, score))
        for line in recognised:
            self.say(line)
        if not any(found.values()):
            raise CalibrantError("no scored answers in these folders and files")
        return {name: answers for name, answers in found.items() if answers}

    def _scored(self, recognised: list[str]) -> Iterator[tuple[AnswerOrigin, Mapping[str, Any]]]:
        from bench.answers.stored_results import StoredResults

        yield from scored_answers(self.runs)
        for path in self.official:
            yield from StoredResults(path).answers()
        for path in self.predictions:
            yield from self._predicted(path, recognised)

    def _predicted(self, path: Path, recognised: list[str]) -> Iterator[tuple[AnswerOrigin, Mapping[str, Any]]]:
        from bench.answers.predictions import Predictions
        from bench.answers.verdicts import PredictionScorer

        pools = [pool for pool in self.pools if benchmark_of(pool).name == DEFAULT]
        if not pools:
            raise CalibrantError(f"{path}: predictions are scored against pools; give them with --pools")
        scorer = PredictionScorer(pools, with_structure=True)
        predictions = Predictions(path, scorer.items, fields=self.fields)
        yield from map(scorer.score, predictions)
        recognised.append(f"{path}: {predictions.recognised}")


def latent_ids(pools: Sequence[Path]) -> dict[tuple[str, str], str]:
    """(pool digest, instance) -> the id of its latent SCM, as pool files state it."""
    from dsl.replayscm.pools.files import file_digest, read_pool

    found: dict[tuple[str, str], str] = {}
    for path in pools:
        if benchmark_of(path).name != DEFAULT:
            continue
        digest = file_digest(path)
        for problem in read_pool(path, keep_results=False).problems:
            if "latent" in problem.sealed.labels:
                found[digest, problem.id] = problem.sealed.labels["latent"]
    return found
