"""The published metrics of one answer to one problem.

`Evaluator` is made once per problem and is pure: no clock, no randomness, the same answer always gets the same score.
`Score.to_dict` has the published scorer's keys; keys that do not apply are absent there, not zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from calibrant.dsl.errors import CalibrantError, in_one_line
from calibrant.dsl.formulas.table import MAX_TABLE_VARS
from calibrant.dsl.memory import CacheBudget, TextCache
from calibrant.dsl.replayscm.alternatives.alternative import AlternativeScore, score_alternative
from calibrant.dsl.replayscm.evaluator import known_mismatches
from calibrant.dsl.replayscm.extraction import EXTRACTORS, Extraction, Kind
from calibrant.dsl.replayscm.plain import PLAIN
from calibrant.dsl.replayscm.problem import Problem, TaskKind
from calibrant.dsl.replayscm.published_score import ScoreCache, score_dict
from calibrant.dsl.replayscm.replay import Split, SplitReplay
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.structure import RootScore, StructureMetrics, structure_metrics
from calibrant.dsl.replayscm.submission import STAGES, Rejection, Submission, SubmissionChecker
from calibrant.dsl.replayscm.world import Panel

SCORED = CacheBudget(1 << 10, longest=4_000)  # about 5 kB each: k samples of a model repeat each other
_SHAPES: dict[TaskKind, Kind] = {
    TaskKind.SCM: "scm",
    TaskKind.EPISODE: "scm",
    TaskKind.ROOTS: "roots",
    TaskKind.ALTERNATIVE: "alternative",
}


@dataclass(frozen=True, init=False)
class Score:
    """Verdict and metrics of one answer.

    rejection: why it is not valid, or None; train and heldout are there iff it is valid
    strict_json: the response was one JSON object on one line and nothing else (None if no text was given)
    """

    problem: Problem
    answer: Mapping[str, Any] | None
    rejection: Rejection | None
    submission: Submission | None
    train: SplitReplay | None
    heldout: SplitReplay | None
    roots: RootScore | None
    alternative: AlternativeScore | None
    strict_json: bool | None

    def __init__(
        self,
        problem: Problem,
        answer: Mapping[str, Any] | None,
        rejection: Rejection | None,
        submission: Submission | None = None,
        train: SplitReplay | None = None,
        heldout: SplitReplay | None = None,
        roots: RootScore | None = None,
        alternative: AlternativeScore | None = None,
        strict_json: bool | None = None,
        cache: ScoreCache | None = None,
    ) -> None:
        """Set the parts of a score.

        cache: what other scores of the problem have in common, if it is kept; tells nothing of this one
        """
        fields = self.__dict__  # as what dataclasses make sets a field that is frozen, in a third of the time
        fields["problem"], fields["answer"], fields["rejection"] = problem, answer, rejection
        fields["submission"], fields["train"], fields["heldout"] = submission, train, heldout
        fields["roots"], fields["alternative"], fields["strict_json"] = roots, alternative, strict_json
        fields["_kept"] = cache

    @property
    def cache(self) -> ScoreCache | None:
        """The cache of fields that `to_dict` shares between answers to a problem."""
        cache: ScoreCache | None = self.__dict__["_kept"]
        return cache

    @property
    def valid(self) -> bool:
        return self.rejection is None

    @property
    def train_exact(self) -> bool:
        """Every scored training cell is right, and at least one exists."""
        return self.train is not None and self.train.all_exact

    @property
    def heldout_exact(self) -> bool:
        """Train-exact, and every scored held-out cell is right."""
        return self.train_exact and self.heldout is not None and self.heldout.all_exact

    @property
    def correct(self) -> bool | None:
        """Published task success: train-exact; with the right roots in Hidden-roots; jointly in Alternative-SCM.

        Reports, lists and attributions call an answer right if it is held-out exact (docs/metrics.md).
        """
        if self.alternative is not None:
            return bool(self.alternative.joint)
        if self.train is None or self.problem.task.kind is TaskKind.ALTERNATIVE:
            return False
        return self.train.all_exact and (self.roots is None or self.roots.exact)

    @property
    def failure(self) -> str | None:
        """Why the answer is not valid, or in which respect a valid one fails the task beyond a wrong map."""
        if self.rejection:
            return self.rejection.reason
        if self.roots is not None and not self.roots.exact:
            return "the predicted root set is not the true one" if self.roots.gold else "the true root set is not known"
        return self.alternative.failure if self.alternative else None

    @property
    def funnel(self) -> dict[str, bool]:
        """The validity stages that were passed (paper, Table C.1)."""
        failed = STAGES.index(self.rejection.stage) if self.rejection else len(STAGES)
        return {stage: index < failed for index, stage in enumerate(STAGES)}

    @cached_property
    def model(self) -> Scm | None:
        """The submitted SCM, if valid."""
        return Scm(self.submission.roots, self.submission.candidate.mechanisms) if self.submission else None

    @cached_property
    def structure(self) -> StructureMetrics | None:
        """Functional parents against gold; None for invalid answers, unknown gold and wrong root sets.

        Also None where a mechanism mentions more variables than a truth table has: its function is not computed then.
        """
        gold = self.problem.sealed.gold
        if self.model is None or gold is None or self.model.roots != gold.roots:
            return None
        mechanisms = (*gold.mechanisms.values(), *self.model.mechanisms.values())
        if any(len(mechanism.mentioned) > MAX_TABLE_VARS for mechanism in mechanisms):
            return None
        return structure_metrics(gold, self.model)

    def __repr__(self) -> str:
        if self.rejection:
            summary = f"not valid, {self.rejection.stage}: {in_one_line(self.rejection.reason)[:80]}"
        else:
            summary = f"train_exact={self.train_exact}, heldout_exact={self.heldout_exact}"
        return f"<Score of {in_one_line(self.problem.id)[:60]}: {summary}, correct={self.correct}>"

    def to_dict(self) -> dict[str, Any]:
        """Return the published scorer's keys."""
        return score_dict(self)


class Evaluator:
    """Scores answers to one problem.

    extractor: how response texts become answers, a name of dsl.replayscm.extraction.EXTRACTORS
    compiles: mechanisms are read by compiled code once many have been new: the same scores, in half of the time, for
        120 MB (dsl.replayscm.mechanisms.Novelty)
    """

    def __init__(self, problem: Problem, *, extractor: str = "paper", compiles: bool = True) -> None:
        if problem.task.extension is not None:
            raise CalibrantError(f"'{problem.id}' is of the setting {problem.setting}; plain replay does not score it")
        self.problem = problem
        self._plain, self._extract = PLAIN[extractor], EXTRACTORS[extractor]
        self.shape = _SHAPES[problem.task.kind]
        self._scores: TextCache[Score] = SCORED.shelf()
        train, heldout = problem.task.training, problem.sealed.heldout
        self._whole = Panel(train.variables, (*train.worlds, *heldout.worlds))
        self._checker = SubmissionChecker(problem, self._whole if compiles else None)
        self._split = Split(train, heldout)
        self._kept: ScoreCache = {}
        self._root_scores: dict[tuple[str, ...], RootScore] = {}  # by predicted roots in latent order

    def score_prediction(self, prediction: Mapping[str, Any]) -> Score:
        """Score a prediction record: its `extractedAnswer` object, else the text in rawResponse, response or text."""
        answer = prediction.get("extractedAnswer")
        if isinstance(answer, dict):
            return self.score_answer(answer)
        texts = (prediction.get(key) for key in ("rawResponse", "response", "text"))
        return self.score_text(next((text for text in texts if isinstance(text, str)), ""))

    def score_text(self, text: str) -> Score:
        """Score a response text. Of several extractable objects the first valid one counts, else the first."""
        score = self._scores.made.get(text) or SCORED.again(self._scores, text)
        if score is None:
            plain = self._plain(text, self.shape)
            score = self._score(*plain) if plain else self._score_extracted(self._extract(text, self.shape))
            SCORED.store(self._scores, text, score)
        return score

    def _score_extracted(self, extraction: Extraction) -> Score:
        if not extraction.candidates:
            rejection = Rejection("extracted", extraction.failure or "no JSON object found")
            return Score(self.problem, None, rejection, strict_json=extraction.strict_json)
        first: Score | None = None
        for candidate in extraction.candidates:
            score = self._score(candidate, extraction.strict_json)
            if score.valid:
                return score
            first = first or score
        assert first is not None
        return first

    def score_answer(self, answer: Mapping[str, Any]) -> Score:
        """Score an answer object of the task's schema."""
        return self._score(answer, None)

    def _score(self, answer: Mapping[str, Any], strict: bool | None) -> Score:
        match self.problem.task.kind:
            case TaskKind.SCM | TaskKind.EPISODE:
                return self._score_checked(answer, self._checker.mechanisms(answer), strict)
            case TaskKind.ALTERNATIVE:
                return self._score_checked(answer, self._checker.alternative(answer), strict)
            case TaskKind.ROOTS:
                roots = self._checker.roots(answer)
                if isinstance(roots, Rejection):
                    return Score(self.problem, answer, roots, strict_json=strict)
                checked = self._checker.given_roots(roots, answer["mechanisms"])
                return self._score_checked(answer, checked, strict, self._root_score(roots))

    def _root_score(self, named: tuple[str, ...]) -> RootScore:
        root_score = self._root_scores.get(named)
        if root_score is None:
            root_score = self._root_scores[named] = RootScore(named, self._gold_roots)
        return root_score

    @cached_property
    def _gold_roots(self) -> tuple[str, ...]:
        gold = self.problem.sealed.gold
        return tuple(v for v in self.problem.sealed.latent_order if gold is not None and v in gold.roots)

    def _score_checked(
        self,
        answer: Mapping[str, Any],
        checked: Submission | Rejection,
        strict: bool | None,
        roots: RootScore | None = None,
    ) -> Score:
        if isinstance(checked, Rejection):
            return Score(self.problem, answer, checked, roots=roots, strict_json=strict)
        wrong = checked.wrong
        if wrong is None:
            wrong = known_mismatches(checked.mechanisms, checked.order, self._whole)
        train, heldout = self._split.replays(wrong)
        alternative = None
        reference = self.problem.task.reference
        if reference is not None:
            model = Scm(checked.roots, checked.candidate.mechanisms)
            alternative = score_alternative(reference, model, answer, train_exact=train.all_exact)
        return Score(self.problem, answer, None, checked, train, heldout, roots, alternative, strict, self._kept)
