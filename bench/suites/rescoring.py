"""Opening and checking of suites, and scoring of submissions to them.

Items that a file omits count as wrong; several answers to an item count by their mean.

Damaged files of a pool exclude this pool from rankings; damage of shared files excludes all pools.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from calibrant.bench.answers.rates import exact_mean, mean_if_known, sum_classes
from calibrant.bench.core.attribution import KEY, SHARES, share_key
from calibrant.bench.core.benchmark import Benchmark, PublicIds
from calibrant.bench.core.registry import benchmark, benchmark_of
from calibrant.bench.core.responses import Response
from calibrant.bench.core.scoring import Prediction
from calibrant.bench.hub.card import record_text
from calibrant.bench.report.overview.contract import is_answered
from calibrant.bench.report.pool_attribution import expected_rates
from calibrant.bench.report.sources import STEPS
from calibrant.bench.runs.executors import Progress
from calibrant.bench.scoring.predictions import Predictions
from calibrant.bench.scoring.scorer import PoolScorer
from calibrant.bench.suites.manifest import (
    GOLD,
    PUBLIC,
    ROWS,
    SUMS,
    Commitments,
    Manifest,
    PoolEntry,
    certificate_problem,
    differences,
    file_commitment,
    file_label,
    file_names,
    read_manifest,
    read_master,
    sha256_of,
)
from calibrant.dsl.errors import CalibrantError, in_one_line, short_repr
from calibrant.dsl.parse_limits import TooLargeError, load_json, read_bounded

# --- Scoring of a file of answers against a pool, item by item; scores that the file states are ignored
MAX_SAMPLES = 64  # number of answers to one item
MAX_ANSWER_CHARS, MAX_REASON_CHARS = 4_000, 300
NO_LINE = "no line is about this item"
Expected = Mapping[str, float | None]  # expected rates of guessers, `draw` and `best`; None if not known
# fields of verdicts that state why an answer is not right; the first nonempty one is taken
REASON_FIELDS = ("problem", "parseError", "failureExplanation", "why")


class ItemResult(msgspec.Struct, frozen=True):
    """Answers of a system to one item.

    id: public id; right: share of right answers; answered: whether some response holds an answer
    kinds: for each answer, the one of bench.core.attribution.SHARES that it counts in
    reason: why the first answer is not right; answer: its text; num_steps: number of steps of its episode
    chance, best: expected rates of guessers with the same evidence, means over the answers; null if not known
    unit: id of the item's unit, a group of items about one latent model
    """

    id: str
    setting: str
    right: float
    answered: bool
    num_samples: int
    kinds: tuple[str, ...]
    reason: str = ""
    answer: str = ""
    num_steps: int = 0
    chance: float | None = None
    best: float | None = None
    unit: str = ""


class CellResult(msgspec.Struct, frozen=True):
    """Answers of a system to a pool. items: one entry for every item of the pool."""

    items: tuple[ItemResult, ...]

    @property
    def rate(self) -> float:
        return mean_if_known([item.right for item in self.items]) or 0.0

    @property
    def num_answered(self) -> int:
        return sum(item.answered for item in self.items)

    @property
    def chance(self) -> float | None:
        return self._level("chance")

    @property
    def best(self) -> float | None:
        return self._level("best")

    @property
    def kinds(self) -> dict[str, float]:
        """Share of items in each class, which add up to 1; several answers to an item count by their mean."""
        parts = ((kind, Fraction(1, len(item.kinds))) for item in self.items for kind in item.kinds)
        sums = dict.fromkeys(SHARES, 0) | sum_classes(parts)
        return {kind: float(Fraction(number) / len(self.items)) for kind, number in sums.items()}

    def _level(self, name: str) -> float | None:
        return mean_if_known([getattr(item, name) for item in self.items])


class _Answer(NamedTuple):
    """One scored answer."""

    right: bool
    answered: bool
    kind: str
    reason: str
    text: str
    num_steps: int
    expected: Expected


class PoolJudge:
    """Scorer of files against a pool; evaluators and chance levels of items are cached."""

    def __init__(self, pool: Path) -> None:
        self._pool = pool
        self.scorer = PoolScorer([pool])
        self.bench: Benchmark[Any] = self.scorer.benchmark
        (self._items,) = self.scorer.items
        self._expected: dict[str, Expected] = {}

    def fresh(self) -> PoolJudge:
        """Return a judge of the same pool without cached evaluators; only chance levels are shared."""
        judge = PoolJudge(self._pool)
        judge._expected = self._expected
        return judge

    @cached_property
    def ids(self) -> Mapping[str, str]:
        """Item id -> public id, in the order of the pool."""
        public = self._items.public
        assert public is not None
        return dict(sorted(((name, public.public(name)) for name in self._items.instances), key=lambda pair: pair[1]))

    def score_file(self, file: Path) -> CellResult:
        """Score a file; `CalibrantError` names the first line that cannot be scored or states a false outcome."""
        answers: dict[str, list[_Answer]] = {name: [] for name in self.ids}
        models: set[str | None] = set()
        predictions = Predictions(file, self.scorer, with_excluded=True)
        for prediction in predictions:
            # boards count every item, so a failed request counts as an empty response
            if prediction.reading is not None and prediction.reading.is_excluded:
                predictions.counts.add(prediction.place, prediction.reading)
                prediction = self.scorer.read_answer(prediction._replace(response=Response(), sample=0), {})
            models.add(prediction.model)
            if len(models) > 1:
                names = ", ".join(sorted(map(short_repr, models)))
                raise CalibrantError(f"{file.name}: lines of several models: {names}; a submission is of one")
            item_answers = answers[prediction.instance]
            if len(item_answers) == MAX_SAMPLES:
                raise CalibrantError(f"{file.name}: more than {MAX_SAMPLES} answers to {self.ids[prediction.instance]}")
            item_answers.append(self._score(prediction))
        return CellResult(tuple(self._result(name, item_answers) for name, item_answers in answers.items()))

    def _score(self, prediction: Prediction) -> _Answer:
        scored = self.scorer.score(prediction)
        item, score, setting = self.scorer.item(prediction), scored.line, scored.context.setting
        attribution = score.get(KEY)
        if attribution is None:
            attribution = self.bench.attribution(item, {}, prediction.steps, score)
        is_answer_right = self.is_right(score, setting)
        text = prediction.answer if isinstance(prediction.answer, str) else json.dumps(prediction.answer)
        reason = next((str(score[name]) for name in REASON_FIELDS if score.get(name)), "")
        return _Answer(
            is_answer_right,
            is_answered(self.bench, score, setting),
            share_key({**score, KEY: attribution}) or "uncounted",
            "" if is_answer_right else in_one_line(reason)[:MAX_REASON_CHARS],
            text[:MAX_ANSWER_CHARS],
            len(prediction.steps),
            self._expected_rates(item, prediction.steps, {**score, KEY: attribution}),
        )

    def is_right(self, score: Mapping[str, Any], setting: str) -> bool:
        """Return whether an answer is right (bench.core.metrics.Success)."""
        return self.bench.metrics.success.is_right(score, setting)

    def _expected_rates(self, item: Any, steps: Sequence[Any], score: Mapping[str, Any]) -> Expected:
        """Return the expected rates of guessers with the same evidence, as in `table --attribution`; cached."""
        if self.bench.is_interactive(item):
            return expected_rates(self.bench, item, {**score, STEPS: steps})
        if item.id not in self._expected:
            self._expected[item.id] = expected_rates(self.bench, item, score)
        return self._expected[item.id]

    def _result(self, name: str, answers: Sequence[_Answer]) -> ItemResult:
        item = self.scorer.item(Prediction(self._items.digest, name, None, 0, ""))
        unit = self.bench.metrics.unit_of(item)
        if not answers:
            score = self.bench.scoring.score(item, self.bench.scoring.no_answer(item), ())
            expected = self._expected_rates(item, (), score)
            levels = (expected["draw"], expected["best"])
            return ItemResult(
                self.ids[name], item.setting, 0.0, False, 0, ("no_answer",), NO_LINE, "", 0, *levels, unit
            )
        first = answers[0]
        return ItemResult(
            id=self.ids[name],
            setting=item.setting,
            right=exact_mean(answer.right for answer in answers),
            answered=any(answer.answered for answer in answers),
            num_samples=len(answers),
            kinds=tuple(answer.kind for answer in answers),
            reason=first.reason,
            answer=first.text,
            num_steps=first.num_steps,
            chance=mean_if_known([answer.expected["draw"] for answer in answers]),
            best=mean_if_known([answer.expected["best"] for answer in answers]),
            unit=unit,
        )


@lru_cache(maxsize=16)
def judge_of(pool: Path) -> PoolJudge:
    """Return the judge of a pool file, cached by its path; the file must not change."""
    return PoolJudge(pool)


# --- Opening of a released suite: everything is checked again, and damage is stated by pool ---------------------------


@dataclass(frozen=True)
class OpenSuite:
    """A suite whose files were checked.

    digest: SHA-256 of the list of public digests, which identifies the release
    damage: pool -> why it is excluded from rankings; row_damage: calibration row -> why it is excluded
    """

    folder: Path
    manifest: Manifest
    digest: str
    damage: Mapping[str, str]
    row_damage: Mapping[str, str]

    def pool_file(self, name: str) -> Path:
        """Return the pool file of that name, with gold."""
        return pool_path(self.folder, name)

    @property
    def sound_pools(self) -> list[PoolEntry]:
        return [pool for pool in self.manifest.pools if pool.name not in self.damage]


def pool_path(suite: Path, name: str) -> Path:
    """Return the path of the pool of that name in a suite."""
    return suite / GOLD / name / f"{name}.jsonl"


def open_suite(folder: Path, progress: Progress = lambda name, done, total: None, *, expected: str = "") -> OpenSuite:
    """Open and check a suite's folder; `CalibrantError` if it is no suite, has no gold, or is not the expected release.

    expected: digest of the release as published by its authors; empty for any
    """
    manifest = read_manifest(folder)
    digest = sha256_of(folder / PUBLIC / SUMS) if (folder / PUBLIC / SUMS).is_file() else ""
    if expected and digest != expected:
        raise CalibrantError(f"{folder}: another release: its SHA-256 is {digest or 'missing'}, not {expected}")
    if not (folder / GOLD / "master.key").is_file():
        raise CalibrantError(f"{folder}: no {GOLD}/master.key; a board needs the gold of the suite")
    damage: dict[str, str] = {}
    row_damage: dict[str, str] = {}
    names = [pool.name for pool in manifest.pools]
    for file, reason in _faults(folder, manifest):
        part, _, inside = file.partition("/")
        first, _, rest = inside.partition("/")
        text = in_one_line(f"{file}: {reason}")
        if part == GOLD and first == ROWS:
            row_damage.setdefault(rest.partition("/")[0], text)
        else:
            for name in [first] if first in names else names:
                damage.setdefault(name, text)
    for index, pool in enumerate(manifest.pools):
        progress("suite", index, len(manifest.pools))
        if pool.name not in damage and (problem := _pool_problem(folder, manifest, pool)):
            damage[pool.name] = problem
    return OpenSuite(folder, manifest, digest, damage, row_damage)


def _faults(folder: Path, manifest: Manifest) -> Iterator[tuple[str, str]]:
    """Yield (file, difference) for files that differ from the digests and commitments of the suite."""
    yield from ((f"{PUBLIC}/{name}", reason) for name, reason in differences(folder / PUBLIC).items())
    gold = folder / GOLD
    master = read_master(gold / "master.key")
    actual = {
        file_label(master, name): (name, file_commitment(master, name, (gold / name).read_bytes()))
        for name in file_names(gold)
        if name != SUMS
    }
    for label, (name, committed) in actual.items():
        if label not in manifest.sealed:
            yield f"{GOLD}/{name}", "the suite does not commit to this file"
        elif manifest.sealed[label] != committed:
            yield f"{GOLD}/{name}", "not what the suite commits to"
    missing = manifest.sealed.keys() - actual.keys()
    if missing:
        yield GOLD, f"{len(missing)} of the files that the suite commits to are missing"


def _pool_problem(folder: Path, manifest: Manifest, pool: PoolEntry) -> str:
    """Return why a pool whose files agree with the digests cannot be ranked; empty if it can."""
    path = pool_path(folder, pool.name)
    try:
        bench = benchmark_of(path)
        if bench is not benchmark(pool.benchmark):
            return f"{path.name} is a pool of {bench.title}"
        items: Any = bench.items.read_pool(path).items
        public = PublicIds.of_pool(path, items)
        gold = [(public.public(item.id), record_text(bench.items.record(item))) for item in items]
        committed = _committed_leaves(folder, manifest)
        actual = Commitments.of_gold(read_master(folder / GOLD / "master.key"), gold).leaves
        wrong = [name for name, leaf in actual if committed.get(name) != leaf]
        if wrong or len(actual) != pool.num_items:
            return f"gold of {wrong[0] if wrong else 'some item'} is not what the suite commits to"
    except CalibrantError as error:
        return in_one_line(str(error))
    return certificate_problem(bench, path)


def _committed_leaves(folder: Path, manifest: Manifest) -> Mapping[str, str]:
    """Return id -> committed leaf; `CalibrantError` if the leaves do not give the Merkle root."""
    try:
        stated = load_json(read_bounded(folder / PUBLIC / "commitments.json"))
        leaves = {str(name): str(leaf) for name, leaf in stated["leaves"].items()}
        root = Commitments(sorted(leaves.items())).root
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, TooLargeError):
        raise CalibrantError("commitments.json: not a list of commitments") from None
    if root != manifest.root:
        raise CalibrantError("commitments.json: its leaves do not lead to the root of the suite")
    return leaves
