"""Causal questions about a model in four types, and what counts as an answer.

A world is a value for every noise variable. Omega is the set of worlds that agree with the fixed noise.
deduction {v(u)}; intervention {v_do(u)}; abduction {u : v(u) agrees with the evidence}, told by the missing noise;
counterfactual {v_do(u) : u in that abduction}, with the missing noise beside it where `with_noise` is asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import msgspec

from calibrant.dsl.causim.model import Assignment, Model, ModelError, Symbol, plain, symbols
from calibrant.dsl.errors import short_repr

QuestionType: TypeAlias = Literal["deduction", "intervention", "abduction", "counterfactual"]


class QuestionForm(NamedTuple):
    """Parts of questions of one type.

    task: sentence of the prompt
    has_do: an intervention is given
    evidence: values given of the factual world: none, all, or some by choice
    asks_noise: the unknown noise is asked for, and nothing else; may_ask_noise: beside the variables, with `with_noise`
    """

    task: str
    has_do: bool = False
    evidence: Literal["none", "full", "chosen"] = "none"
    asks_noise: bool = False
    may_ask_noise: bool = False

    @property
    def has_evidence(self) -> bool:
        return self.evidence != "none"

    @property
    def may_copy(self) -> bool:
        """Whether the evidence, overwritten by `do`, may pass for an answer."""
        return self.has_do and self.has_evidence


FORMS: Final[Mapping[QuestionType, QuestionForm]] = {
    "deduction": QuestionForm("Give the values of all variables in a world that agrees with the given noise."),
    "intervention": QuestionForm(
        "Give the values of all variables under the intervention, in a world that agrees with the given noise."
        " Intervened variables are part of the answer.",
        has_do=True,
    ),
    "abduction": QuestionForm(
        "Give values of the unknown noise that, with the given noise, produce exactly the observed values.",
        evidence="full",
        asks_noise=True,
    ),
    "counterfactual": QuestionForm(
        "Find a world that agrees with the given noise and the observed values. Then give the values of all variables"
        " in that same world under the intervention, intervened variables included.",
        has_do=True,
        evidence="chosen",
        may_ask_noise=True,
    ),
}
TYPES: Final[tuple[QuestionType, ...]] = tuple(FORMS)
Scenario: TypeAlias = Literal["deterministic", "stochastic", "impossible"]
Answer: TypeAlias = dict[str, Symbol]


@dataclass(frozen=True)
class Question:
    """Question about a model.

    fixed: noise whose value is given; unknown: the other noise, sorted
    do, observed: values set by intervention, and values seen in the factual world
    with_noise: a counterfactual that asks for the unknown noise too, jointly
    """

    type: QuestionType
    fixed: Mapping[str, Symbol] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()
    do: Mapping[str, Symbol] = field(default_factory=dict)
    observed: Mapping[str, Symbol] = field(default_factory=dict)
    with_noise: bool = False

    @property
    def form(self) -> QuestionForm:
        return FORMS[self.type]

    @property
    def asks_noise(self) -> bool:
        """Whether unknown noise is among what is asked for."""
        return self.form.asks_noise or self.with_noise

    def required_keys(self, model: Model) -> tuple[str, ...]:
        """Return the keys of an answer, sorted: all V, intervened ones too; for abduction all missing noise."""
        if self.form.asks_noise:
            return tuple(sorted(self.unknown))
        return tuple(sorted([*model.names, *(self.unknown if self.with_noise else ())]))

    def is_trivial(self, model: Model) -> bool:
        """Return whether `do` covers every required key, so that the answer stands in the question."""
        return set(self.required_keys(model)) <= set(self.do)

    def has_full_evidence(self, model: Model) -> bool:
        return len(self.observed) == len(model)


def scenario_of(size: int) -> Scenario:
    """Return the label of a question with that many answers."""
    return "impossible" if size == 0 else "deterministic" if size == 1 else "stochastic"


def check_question(question: Question, model: Model) -> Question:
    """Return the question, if its names are the model's and its parts fit its type; `ModelError` names the field.

    A fixed value outside its sampler's support, and any value in `do` or `observed`, may be asked about.
    """
    noises, nodes = set(model.noises), set(model.position)
    for where, names, allowed_names in (
        ("fixed_exogenous", question.fixed, noises),
        ("unknown_exogenous", question.unknown, noises),
        ("do", question.do, nodes),
        ("observed_endogenous", question.observed, nodes),
    ):
        strange = sorted(set(names) - allowed_names)
        if strange:
            raise ModelError(f"{where}: {short_repr(strange[0])} is not in the model")
    if set(question.fixed) & set(question.unknown) or len(set(question.unknown)) < len(question.unknown):
        raise ModelError("unknown_exogenous: a noise variable is fixed as well, or named twice")
    if noises - set(question.fixed) - set(question.unknown):
        raise ModelError("unknown_exogenous: a noise variable is neither fixed nor unknown")
    if question.do and not question.form.has_do:
        raise ModelError(f"do: a question of type {question.type} has no intervention")
    if question.observed and not question.form.has_evidence:
        raise ModelError(f"observed_endogenous: a question of type {question.type} has no evidence")
    if question.with_noise and not question.form.may_ask_noise:
        raise ModelError("with_noise: only counterfactuals ask for noise beside the variables")
    return question


def canonical_name(name: str, model: Model) -> str:
    """Return the name of the model that a name is in another case, if it is one of them alone.

    Else the name as it is.
    """
    model_names = (*model.names, *model.noises)
    alike = (
        [name] if name in model_names else [candidate for candidate in model_names if candidate.lower() == name.lower()]
    )
    return alike[0] if len(alike) == 1 else name


def canonical_keys(values: Mapping[str, Symbol], model: Model) -> dict[str, Symbol]:
    """Return the values under the model's names; `ModelError` if a name is given in two cases."""
    by_name: dict[str, Symbol] = {}
    for name, value in values.items():
        canonical = canonical_name(name, model)
        if canonical in by_name:
            raise ModelError(f"{short_repr(name)} is given in two cases")
        by_name[canonical] = value
    return by_name


class QuestionRecord(msgspec.Struct, frozen=True):
    """A question as files hold it; values are JSON values."""

    fixed_exogenous: dict[str, Any]
    unknown_exogenous: list[str]
    do: dict[str, Any]
    observed_endogenous: dict[str, Any]


def question_from_record(
    record: QuestionRecord, kind: QuestionType, model: Model, *, with_noise: bool = False
) -> Question:
    """Names count in any case that fits one name of the model; `ModelError` names the field of what cannot be meant."""
    assignments = {}
    for field_name in ("fixed_exogenous", "do", "observed_endogenous"):
        values: dict[str, Any] = getattr(record, field_name)
        try:
            assignments[field_name] = canonical_keys(symbols(values), model)
        except ModelError as error:
            raise ModelError(f"{field_name}: {error}") from None
    question = Question(
        kind,
        assignments["fixed_exogenous"],
        tuple(sorted(canonical_name(name, model) for name in record.unknown_exogenous)),
        assignments["do"],
        assignments["observed_endogenous"],
        with_noise,
    )
    return check_question(question, model)


def record_of(question: Question) -> QuestionRecord:
    """Return the inverse of `question_from_record`."""
    return QuestionRecord(plain(question.fixed), list(question.unknown), plain(question.do), plain(question.observed))


def copy_evidence(question: Question) -> Answer:
    """Return the evidence overwritten by `do`."""
    return {**question.observed, **question.do}


def project(question: Question, model: Model, world: Assignment, values: Assignment) -> Answer:
    """Return the required keys, from a world and the values asked about in it."""
    return {key: values[key] if key in model.position else world[key] for key in question.required_keys(model)}
