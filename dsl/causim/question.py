"""Causal questions about a model in four types, and their answers.

A world u is a value of every noise variable, v(u) the values of the nodes in it. Over the worlds that agree with the
fixed noise, the sets of right answers are: deduction {v(u)}; intervention {v_do(u)}; abduction {unknown part of u :
v(u) agrees with the evidence}; counterfactual {v_do(u) : v(u) agrees with the evidence}, with `with_noise` each
together with the unknown part of u.
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
    """Properties of questions of one type.

    task: sentence of the prompt
    has_do: the question has an intervention
    evidence: which values of the factual world may be given: none, all, or any subset
    asks_noise: the answer is the unknown noise alone; may_ask_noise: `with_noise` may add it to the variables
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
        """Whether the evidence, overwritten by `do`, has the keys of an answer."""
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
    do, observed: values set by intervention, values observed in the factual world
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
        """Whether the answer has the unknown noise."""
        return self.form.asks_noise or self.with_noise

    def required_keys(self, model: Model) -> tuple[str, ...]:
        """Return the sorted keys of an answer: all nodes, also intervened ones; of an abduction, the unknown noise."""
        if self.form.asks_noise:
            return tuple(sorted(self.unknown))
        return tuple(sorted([*model.names, *(self.unknown if self.with_noise else ())]))

    def is_trivial(self, model: Model) -> bool:
        """Return whether `do` sets every required key, so that the question states the answer."""
        return set(self.required_keys(model)) <= set(self.do)

    def has_full_evidence(self, model: Model) -> bool:
        return len(self.observed) == len(model)


def scenario_of(size: int) -> Scenario:
    """Return the scenario of a question with `size` right answers."""
    return "impossible" if size == 0 else "deterministic" if size == 1 else "stochastic"


def check_question(question: Question, model: Model) -> Question:
    """Return the question unchanged, if its names are the model's and its parts are those of its type.

    Raises `ModelError`, which names the field. Values of fixed noise, `do` and `observed` may be outside their domains.
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
    """Return the only name of the model that equals a name up to case; else the name unchanged."""
    model_names = (*model.names, *model.noises)
    alike = (
        [name] if name in model_names else [candidate for candidate in model_names if candidate.lower() == name.lower()]
    )
    return alike[0] if len(alike) == 1 else name


def canonical_keys(values: Mapping[str, Symbol], model: Model) -> dict[str, Symbol]:
    """Return the values by the model's names, case ignored; `ModelError` if a name occurs twice."""
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
    """Return the question of a record, case of names ignored if unambiguous; `ModelError` names an invalid field."""
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
    """Return the record of a question, the inverse of `question_from_record`."""
    return QuestionRecord(plain(question.fixed), list(question.unknown), plain(question.do), plain(question.observed))


def copy_evidence(question: Question) -> Answer:
    """Return the evidence overwritten by `do`."""
    return {**question.observed, **question.do}


def project(question: Question, model: Model, world: Assignment, values: Assignment) -> Answer:
    """Return the answer of a world: the required keys, from its noise and the values of its nodes."""
    return {key: values[key] if key in model.position else world[key] for key in question.required_keys(model)}
