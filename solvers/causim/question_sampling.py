"""Questions about a model with exact labels: sampled until one has the requested scenario."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Literal, TypeAlias

from calibrant.dsl.causim.generated_functions import Draws
from calibrant.dsl.causim.generation import QuestionOptions, draw_question
from calibrant.dsl.causim.model import Model, Symbol
from calibrant.dsl.causim.question import Answer, Question, QuestionType, Scenario, scenario_of
from calibrant.solvers.budget import Budget
from calibrant.solvers.causim.answers import AnswerSet
from calibrant.solvers.outcome import Found, Outcome, OutOfBudget

Effect: TypeAlias = Literal["any", "some", "all"]
Acceptance: TypeAlias = Callable[[Model, Question], bool]
ATTEMPTS = 10
SEEDS = 200


@dataclass(frozen=True)
class LabelledQuestion:
    """Question with its labels.

    world: the world from which it was sampled
    size: number of answers; effect: whether something outside `do` changes in all, in some fitting worlds
    copy: whether the evidence, overwritten by `do`, is right
    """

    question: Question
    seed: int
    world: dict[str, Symbol]
    scenario: Scenario
    size: int
    trivial: bool
    effect: tuple[bool, bool] | None
    copy: bool | None


def sample_question(
    model: Model,
    kind: QuestionType,
    seed: int,
    *,
    key: str = "",
    scenario: Scenario | None = None,
    options: QuestionOptions | None = None,
    effect: Effect = "any",
    accepts: Acceptance | None = None,
) -> Outcome[LabelledQuestion]:
    """Sample the first question of at most ATTEMPTS that has the scenario and the effect, and is accepted.

    key: what else the random stream depends on, such as the program's id. Deductions and interventions that are to have
    one answer leave less noise open from attempt to attempt, and none at the last.
    effect: something outside `do` changes in some, in all worlds that fit; without `do` any question has it
    """
    options = options or QuestionOptions()
    for attempt in range(ATTEMPTS):
        attempt_options = options
        if scenario == "deterministic":
            # linear descent to no open noise at the last attempt, where the program determines the answer
            attempt_options = _with_missing(options, options.missing * (ATTEMPTS - 1 - attempt) / (ATTEMPTS - 1))
        sampled = draw_question(Draws("question", key, kind, seed, attempt), model, kind, attempt_options)
        members = AnswerSet(model, sampled.question)
        # a tenth of answers.MAX_STATES: a question of very many answers is sampled again instead of counted
        size = members.size(Budget(20_000))
        if not isinstance(size, Found) or (scenario is not None and scenario_of(size.value) != scenario):
            continue
        changes = members.effect
        if changes is not None and effect != "any" and not changes[effect == "some"]:
            continue
        if accepts is not None and not accepts(model, sampled.question):
            continue
        label = scenario_of(size.value)
        trivial = sampled.question.is_trivial(model)
        return Found(
            LabelledQuestion(sampled.question, seed, sampled.world, label, size.value, trivial, changes, members.copy)
        )
    return OutOfBudget(f"no such question in {ATTEMPTS} attempts")


def _with_missing(options: QuestionOptions, missing: float) -> QuestionOptions:
    return QuestionOptions(missing, options.intervened, options.evidence, options.with_noise)


def questions(
    model: Model,
    kind: QuestionType,
    number: int,
    *,
    key: str = "",
    scenario: Scenario | None = None,
    options: QuestionOptions | None = None,
    effect: Effect = "any",
    accepts: Acceptance | None = None,
) -> Iterator[LabelledQuestion]:
    """Return up to `number` different questions, from seeds 0, 1, ... below SEEDS; fewer if the model has no more."""

    def iterate_distinct() -> Iterator[LabelledQuestion]:
        previous: list[Question] = []
        for seed in range(SEEDS):
            labelled = sample_question(
                model, kind, seed, key=key, scenario=scenario, options=options, effect=effect, accepts=accepts
            )
            if isinstance(labelled, Found) and labelled.value.question not in previous:
                previous.append(labelled.value.question)
                yield labelled.value

    return islice(iterate_distinct(), number)


def stored_answers(model: Model, question: Question, limit: int) -> list[Answer]:
    """Return the first answers of the complete set, at most `limit`."""
    return list(islice(AnswerSet(model, question).answers(), limit))
