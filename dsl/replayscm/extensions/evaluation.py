"""Scores of answers to extended items: replay of an SCM, proper scores of a forecast, costs of an episode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import permutations
from typing import Any

from calibrant.dsl.episode import ActionError, Step
from calibrant.dsl.formulas.formula import Formula, constant, rename
from calibrant.dsl.formulas.table import MAX_TABLE_VARS
from calibrant.dsl.replayscm.episode import check_submission, shown_worlds, task_class
from calibrant.dsl.replayscm.extensions import scores
from calibrant.dsl.replayscm.extensions.extension import MAX_NOISY_ENDOGENOUS, MechanismClass, NoiseKind, Question
from calibrant.dsl.replayscm.extraction import EXTRACTORS, Extraction
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.scm import Scm, StructureMetrics, structure_metrics
from calibrant.dsl.replayscm.score import Score
from calibrant.dsl.replayscm.submission import Rejection
from calibrant.dsl.replayscm.world import World

FORECAST = "forecast"


@dataclass(frozen=True)
class EpisodeCosts:
    """Costs of an episode.

    worlds: number of requested worlds; refusals: number of refused actions
    """

    worlds: int
    refusals: int


class ExtendedScore(Score):
    """Verdict on an answer to an extended item.

    submitted: a legal SCM; replay: its replay; forecast: proper scores of a forecast, or of the one that an SCM implies
        under noise
    favoured: whether a forecast gives every cell's more probable value more than 1/2; costs: None for no episode
    """

    submitted: scores.SubmittedMap | None
    replay: scores.MapScore | None
    forecast: scores.ForecastScore | None
    favoured: bool | None
    costs: EpisodeCosts | None

    def __init__(
        self,
        problem: Problem,
        answer: Mapping[str, Any] | None,
        rejection: Rejection | None,
        *,
        submitted: scores.SubmittedMap | None = None,
        replay: scores.MapScore | None = None,
        forecast: scores.ForecastScore | None = None,
        favoured: bool | None = None,
        costs: EpisodeCosts | None = None,
        strict_json: bool | None = None,
    ) -> None:
        super().__init__(problem, answer, rejection, strict_json=strict_json)
        fields = self.__dict__
        fields["submitted"], fields["replay"], fields["forecast"] = submitted, replay, forecast
        fields["favoured"], fields["costs"] = favoured, costs

    @property
    def is_noisy(self) -> bool:
        extension = self.problem.task.extension
        return extension is not None and not extension.noise.is_noiseless

    @property
    def train_exact(self) -> bool:
        """Whether an SCM reproduces every training cell that no intervention sets."""
        return self.replay is not None and self.replay.train_exact

    @cached_property
    def has_heldout(self) -> bool:
        """Whether there are held-out cells to replay, or a forecast is asked for."""
        task = self.problem.task
        if task.extension is not None and task.extension.question is Question.FORECAST:
            return True
        endogenous = set(task_class(task).endogenous)
        return any(
            world.num_rows and endogenous - set(world.intervention.targets)
            for world in self.problem.sealed.heldout.worlds
        )

    @property
    def heldout_exact(self) -> bool:
        """Whether an SCM replays all noise-free held-out rows and, without noise, is train-exact."""
        if self.replay is None or self.replay.heldout_exact is not True:
            return False
        return self.is_noisy or self.replay.train_match is None or self.train_exact

    @property
    def correct(self) -> bool | None:
        """`heldout_exact` of an SCM, `favoured` of a forecast; None without held-out cells."""
        if not self.has_heldout:
            return None
        return self.favoured is True if self.replay is None else self.heldout_exact

    @property
    def failure(self) -> str | None:
        return self.rejection.reason if self.rejection else None

    @cached_property
    def model(self) -> Scm | None:
        """The submitted SCM, hidden variables included; None for a forecast."""
        if self.submitted is None:
            return None
        return Scm(task_class(self.problem.task).roots, self.submitted.formulas)

    @cached_property
    def structure(self) -> StructureMetrics | None:
        """Functional parents and functions against gold, under the best renaming of hidden variables.

        Hidden variables without a mechanism count as constants without children. None without SCM or gold, or if a
        formula mentions more than MAX_TABLE_VARS variables.
        """
        gold = self.problem.sealed.gold
        if self.submitted is None or gold is None:
            return None
        hidden = tuple(task_class(self.problem.task).hidden_parents)
        # a constant influences nothing
        formulas = dict.fromkeys(hidden, constant(value=False)) | dict(self.submitted.formulas)
        every = (*gold.mechanisms.values(), *formulas.values())
        if any(len(formula.mentioned) > MAX_TABLE_VARS for formula in every):
            return None
        renamings = (dict(zip(hidden, names, strict=True)) for names in permutations(hidden))
        models = (_rename(gold.roots, formulas, renaming) for renaming in renamings)
        return max(
            (structure_metrics(gold, model) for model in models), key=lambda metrics: (metrics.f1, metrics.local_match)
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the published keys that apply, and those of extended items."""
        fields: dict[str, Any] = {
            "valid": self.valid,
            "correct": self.correct,
            "taskName": self.problem.task.kind.value,
            "failureExplanation": self.failure,
            "parseError": None,
        }
        if self.rejection is not None:
            fields |= {key: value for key, value in self.rejection.fields.items() if key != "variable"}
            fields["stage"] = self.rejection.stage
        if self.replay is not None:
            fields |= self._replay_fields(self.replay)
        if not self.has_heldout:
            # undefined, not wrong; also for answers without an SCM
            fields |= {"heldoutExact": None, "heldoutAllWorldsExact": None}
        if self.forecast is not None:
            fields |= {
                "brier": self.forecast.brier,
                "logLoss": self.forecast.log_loss,
                "excessBrier": self.forecast.excess_brier,
                "excessLogLoss": self.forecast.excess_log_loss,
            }
        if self.favoured is not None:
            fields["favoured"] = self.favoured
        if self.costs is not None:
            fields |= {"worlds": self.costs.worlds, "refusals": self.costs.refusals}
        return fields

    def _replay_fields(self, replay: scores.MapScore) -> dict[str, Any]:
        match = None if replay.train_match is None else float(replay.train_match)
        train = {"trainMatch": match} if self.is_noisy else {"trainExact": self.train_exact, "trainAccuracy": match}
        assert self.submitted is not None
        return train | {
            "heldoutExact": self.heldout_exact,
            "heldoutAllWorldsExact": replay.heldout_exact is True,
            "heldoutWorldExactAccuracy": replay.world_accuracy,
            "astSize": self.submitted.size,
        }


def _rename(roots: tuple[str, ...], formulas: Mapping[str, Formula], names: Mapping[str, str]) -> Scm:
    def name(variable: str) -> str:
        return names.get(variable, variable)

    return Scm(roots, {name(v): rename(formula, name) for v, formula in formulas.items()})


class ExtendedEvaluator:
    """Scores answers to one extended item.

    extractor: how response texts become answers, a name of dsl.replayscm.extraction.EXTRACTORS
    """

    def __init__(self, problem: Problem, *, extractor: str = "paper") -> None:
        if problem.task.extension is None:
            raise ValueError(f"'{problem.id}' is a plain item")
        self.problem = problem
        self.extension = problem.task.extension
        self.scm_class: MechanismClass = task_class(problem.task)
        self._extract = EXTRACTORS[extractor]

    def extract(self, text: str) -> tuple[dict[str, Any], bool | None, Rejection | None]:
        """Return the answer of a response, whether it was strict JSON, and why it has none.

        Of several objects it is the first legal one, else the first.
        """
        extraction = self._extract(text, "scm")
        if self.extension.question is Question.FORECAST and (forecast := _stated_forecast(extraction)):
            return forecast, extraction.strict_json, None
        if not extraction.candidates:
            return {}, extraction.strict_json, Rejection("extracted", extraction.failure or "no JSON object found")
        answers = [_answer_fields(candidate) for candidate in extraction.candidates]
        legal = (answer for answer in answers if not isinstance(self._check_map(answer), Rejection))
        return next(legal, answers[0]), extraction.strict_json, None

    def schema_fault(self, answer: Mapping[str, Any]) -> str:
        """Return why an object has not the form of an answer; empty if it has. Its content is not checked."""
        if FORECAST in answer and self.extension.question is Question.FORECAST:
            return "" if isinstance(answer[FORECAST], list) else "forecast: a list of worlds"
        checked = self._check_map(answer)
        return checked.reason if isinstance(checked, Rejection) and checked.stage in ("extracted", "schema") else ""

    def score_text(self, text: str) -> ExtendedScore:
        """Score a response to a passive item."""
        answer, strict, rejection = self.extract(text)
        if rejection is not None:
            return ExtendedScore(self.problem, None, rejection, strict_json=strict)
        return self.score_answer(answer, strict_json=strict)

    def score_answer(
        self, answer: Mapping[str, Any], steps: Sequence[Step[Any]] = (), *, strict_json: bool | None = None
    ) -> ExtendedScore:
        """Score an answer object; steps: of the episode in which it was submitted."""
        costs = _count_costs(steps) if self.extension.is_episode else None
        if FORECAST in answer and self.extension.question is Question.FORECAST:
            try:
                check_submission(answer, self.extension)
            except ActionError as error:
                rejection = Rejection("schema", str(error))
                return ExtendedScore(self.problem, answer, rejection, costs=costs, strict_json=strict_json)
            return self._score_forecast(answer, costs, strict_json)
        checked = self._check_map(answer)
        if isinstance(checked, Rejection):
            return ExtendedScore(self.problem, answer, checked, costs=costs, strict_json=strict_json)
        training = shown_worlds(self.scm_class, steps) if self.extension.is_episode else self._training
        return ExtendedScore(
            self.problem,
            answer,
            None,
            submitted=checked,
            replay=scores.score_map(self.scm_class, checked, training, self.problem.sealed.heldout.worlds),
            forecast=self._implied_forecast(checked),
            costs=costs,
            strict_json=strict_json,
        )

    def reject(self, reason: str, steps: Sequence[Step[Any]] = ()) -> ExtendedScore:
        """Return the score of an episode or response without an answer."""
        costs = _count_costs(steps) if self.extension.is_episode else None
        return ExtendedScore(self.problem, None, Rejection("extracted", reason), costs=costs)

    def _check_map(self, answer: Mapping[str, Any]) -> scores.SubmittedMap | Rejection:
        return scores.check_map(self.scm_class, self.problem.task.grammar, answer)

    @property
    def _training(self) -> tuple[World, ...]:
        return self.problem.task.training.worlds

    @cached_property
    def _rows(self) -> list[list[scores.FreeRow]]:
        """The held-out rows, by world."""
        worlds = self.problem.sealed.heldout.worlds
        return [list(scores.world_rows(self.scm_class, world)) for world in worlds]

    @cached_property
    def _laws(self) -> list[list[dict[str, Fraction]]]:
        """Gold's exact law of every free cell, by world and row; empty without gold."""
        gold = self.problem.sealed.gold
        if gold is None:
            return []
        return [[scores.gold_law(gold, self.problem.sealed.rates, row) for row in rows] for rows in self._rows]

    def _score_forecast(
        self, answer: Mapping[str, Any], costs: EpisodeCosts | None, strict_json: bool | None
    ) -> ExtendedScore:
        forecast = answer[FORECAST]
        score = favoured = None
        if self._laws:
            score = scores.score_forecast(self._laws, forecast)
            favoured = all(
                _favours(law[v], row[v])
                for laws, rows in zip(self._laws, forecast, strict=True)
                for law, row in zip(laws, rows, strict=True)
                for v in law
            )
        return ExtendedScore(
            self.problem, answer, None, forecast=score, favoured=favoured, costs=costs, strict_json=strict_json
        )

    def _implied_forecast(self, submitted: scores.SubmittedMap) -> scores.ForecastScore | None:
        """Return the proper scores of the forecast that an SCM implies; None if none applies or it is too large."""
        if self.extension.noise.is_noiseless and self.extension.question is Question.MAP:
            return None
        if not any(row.free for rows in self._rows for row in rows) or not self._laws:
            return None
        if len(self.scm_class.endogenous) > MAX_NOISY_ENDOGENOUS:  # a law takes up to 2**12 states
            return None
        noise = self.extension.noise
        disclosed = noise.grid[0][0] if noise.kind is NoiseKind.RATE else Fraction(0)
        rate = disclosed if submitted.rate is None else submitted.rate
        implied = [[scores.implied_law(submitted, rate, row) for row in rows] for rows in self._rows]
        return scores.score_forecast(self._laws, implied)


def _favours(law: Fraction, stated: float) -> bool:
    """Return whether a stated probability is on the law's side of 1/2; True for a law of 1/2."""
    return law == Fraction(1, 2) or (stated > 0.5 if law > Fraction(1, 2) else stated < 0.5)


def _count_costs(steps: Sequence[Step[Any]]) -> EpisodeCosts:
    return EpisodeCosts(sum(step.cost for step in steps), sum(bool(step.refused) for step in steps))


def _answer_fields(candidate: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an answer; a candidate may have others, such as a comment."""
    return {key: candidate[key] for key in ("mechanisms", "noise") if key in candidate}


def _stated_forecast(extraction: Extraction) -> dict[str, Any] | None:
    stated = (candidate for candidate in extraction.candidates if isinstance(candidate.get(FORECAST), list))
    first = next(stated, None)
    return None if first is None else {FORECAST: first[FORECAST]}
