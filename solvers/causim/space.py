"""Worlds that fit a question, its most probable world and answer, and worked solutions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import Literal, TypeAlias, TypeVar

import numpy as np

from calibrant.dsl.causim.model import Assignment, Model, ModelError, Node, Symbol, assignment_text, run
from calibrant.dsl.causim.question import Answer, Question, project
from calibrant.dsl.causim.score import allowed_noise
from calibrant.solvers.causim.elimination import equation_factor, max_of_products, restrict
from calibrant.solvers.causim.exact import MAX_STATES, AnswerSet, Compiled, Sets
from calibrant.solvers.outcome import Budget, BudgetSpent, Found, Impossible, Outcome, OutOfBudget
from calibrant.solvers.space import space_repr

# --- Version space of a question: a member is a fitting world, an experiment a further observation --------------------
World: TypeAlias = Mapping[str, Symbol]
_CONTRADICTION = ""  # a symbol that no variable has as its value, so no world agrees with it


@dataclass(frozen=True)
class WorldSpace:
    """The worlds that fit a question and further `observations` of noise variables and factual nodes. Immutable.

    Answers are those to the original question, whatever was observed since.
    """

    model: Model
    question: Question
    observations: tuple[tuple[str, Symbol], ...] = ()

    @cached_property
    def _observed_question(self) -> Question:
        """The question with all observations; it may have evidence even if its type has none."""
        noise = {name: value for name, value in self.observations if name in self.model.of_noise}
        nodes = {name: value for name, value in self.observations if name in self.model.position}
        return replace(
            self.question,
            fixed={**self.question.fixed, **noise},
            unknown=tuple(name for name in self.question.unknown if name not in noise),
            observed={**self.question.observed, **nodes},
        )

    @cached_property
    def _members(self) -> AnswerSet:
        return AnswerSet(self.model, self._observed_question)

    __repr__ = space_repr

    @property
    def in_words(self) -> str:
        return "all worlds of the program that agree with the fixed noise and the observed values"

    @property
    def count(self) -> int:
        return self._members.fitting

    def fits(self, member: World) -> bool:
        question = self._observed_question
        if set(member) != set(self.model.noises) or any(
            member[name] != value for name, value in question.fixed.items()
        ):
            return False
        if any(member[node.noise] not in node.support for node in self.model.nodes):
            return False
        factual = run(self.model, member, {})
        return all(factual[name] == value for name, value in question.observed.items())

    def sample(self, rng: np.random.Generator, n: int) -> Sequence[World]:
        """Sample n members uniformly with replacement; `ValueError` if there is none."""
        if not self.count:
            raise ValueError("no world fits, so none can be drawn")
        return [self._sample_world(rng) for _ in range(n)]

    def _sample_world(self, rng: np.random.Generator) -> World:
        compiled = Compiled(self.model, self._observed_question)
        sets: Sequence[Sequence[int]]
        if compiled.product is not None:
            sets = compiled.product
        else:  # factual nodes one after the other, by their conditional marginals; then the noise forms a product
            positions: dict[int, int] = {}
            evidence = compiled.evidence or {}
            for i, local in enumerate(compiled.base):
                values = [evidence[i]] if i in evidence else list(range(len(local.domain)))
                shares = [compiled.count(compiled.allowed, {**evidence, **positions, i: k}) for k in values]
                positions[i] = values[_sample_index(rng, shares)]
            sets = [
                compiled.noise_giving(compiled.base, i, positions, domain) for i, domain in enumerate(compiled.allowed)
            ]
        return {
            node.noise: node.support[domain[int(rng.integers(len(domain)))]]
            for node, domain in zip(self.model.nodes, sets, strict=True)
        }

    def after(self, experiment: str, reading: Symbol) -> WorldSpace:
        """Return the members in which a noise variable or factual node has a value; `ModelError` for another name."""
        if experiment not in self.model.position and experiment not in self.model.of_noise:
            raise ModelError(f"{experiment!a} is neither noise nor a variable of the model")
        observed = {**self._observed_question.fixed, **self._observed_question.observed}
        # a second, different value of one name leaves no member; that is an outcome, not an error
        value = _CONTRADICTION if observed.get(experiment, reading) != reading else reading
        return WorldSpace(self.model, self.question, (*self.observations, (experiment, value)))

    def outcomes(self, experiment: str) -> Mapping[Symbol, int]:
        i = self.model.position.get(experiment)
        values = (
            self.model.system[i].domain if i is not None else self.model.nodes[self.model.of_noise[experiment]].support
        )
        counts = {value: self.after(experiment, value).count for value in values}
        return {value: count for value, count in counts.items() if count}

    def verdicts(self, budget: Budget | None = None) -> Mapping[str, int]:
        """Count the members by the text of their answer; raise `BudgetSpent` if there are too many answers."""
        counts: dict[str, int] = {}
        for answer, num_members in self.answers(budget):
            text = assignment_text(answer)
            counts[text] = counts.get(text, 0) + num_members
        return counts

    def answers(self, budget: Budget | None = None) -> Iterator[tuple[Answer, int]]:
        """Yield answers with numbers of members that give them, in a fixed order.

        Each answer comes once, except that answers with noise come once for each member, with the number 1. Raise
        `BudgetSpent` if that takes more states than the budget has, by default MAX_STATES.
        """
        budget = budget or Budget(MAX_STATES)
        if self.question.asks_noise:
            for world in self._worlds(budget):
                yield project(self.question, self.model, world, run(self.model, world, self.question.do)), 1
            return
        compiled = Compiled(self.model, self._observed_question)
        for answer in AnswerSet(self.model, replace(self._observed_question, with_noise=False)).answers(budget):
            budget.spend(1)
            output = {i: compiled.target[i].index[answer[name]] for name, i in self.model.position.items()}
            if compiled.product is not None:
                yield answer, prod(map(len, compiled.restrict_to_output(compiled.product, output)))
            else:
                sets = compiled.restrict_to_output(compiled.allowed, output)
                yield answer, compiled.count(sets, compiled.evidence or {})

    def _worlds(self, budget: Budget) -> Iterator[World]:
        for positions in self._members.fitting_worlds(budget):
            budget.spend(1)
            yield {node.noise: node.support[k] for node, k in zip(self.model.nodes, positions, strict=True)}


def _sample_index(rng: np.random.Generator, shares: Sequence[int]) -> int:
    """Sample a position with probability proportional to its integer share."""
    point = _sample_below(rng, sum(shares))
    for position, share in enumerate(shares):
        if point < share:
            return position
        point -= share
    raise AssertionError("the point lies within the shares")


def _sample_below(rng: np.random.Generator, number: int) -> int:
    """Sample an integer from 0 up to but not including `number`, which may have any size."""
    # rejection: at most two tries are expected, since `number` is at least half of 2**num_bits
    num_bits = number.bit_length()
    while True:
        sampled = int.from_bytes(rng.bytes((num_bits + 7) // 8), "big") >> (-num_bits % 8)
        if sampled < number:
            return sampled


# --- Most probable fitting world and most probable answer (MAP) -------------------------------------------------------
# Where the fitting worlds form a product, each noise variable of the world is maximised alone, and the answer is the
# maximum of a product of one factor per equation, decoded value by value with max-product elimination. Elsewhere all
# members are listed.
T = TypeVar("T")
_NOTHING = Impossible("all worlds that agree with the fixed noise")
_LISTED = OutOfBudget("members could not all be listed, so none of them is known to be the most probable")


def likeliest_world(model: Model, question: Question, budget: Budget | None = None) -> Outcome[dict[str, Symbol]]:
    """Return the noise of the most probable fitting world, the first of equals.

    budget: by default 50,000 states; a state is a world or a prefix of factual values
    """
    members = AnswerSet(model, question)
    compiled = Compiled(model, question)
    if compiled.product is not None:
        if not all(compiled.product):
            return _NOTHING
        # noise is independent: the maximum of the product is the product of the maxima; -k prefers the first of equals
        best: tuple[int, ...] | None = tuple(
            max(positions, key=lambda k, i=i: (model.nodes[i].weights[k], -k))  # type: ignore[misc]
            for i, positions in enumerate(compiled.product)
        )
    else:
        budget = budget or Budget(50_000)

        def weight(world: tuple[int, ...]) -> Fraction:
            budget.spend(1)
            return prod((node.weights[k] for node, k in zip(model.nodes, world, strict=True)), start=Fraction(1))

        try:
            best = _most_probable(members.fitting_worlds(budget), weight)
        except BudgetSpent:
            return _LISTED
        if best is None:
            return _NOTHING
    return Found({node.noise: node.support[k] for node, k in zip(model.nodes, best or (), strict=True)})


def likeliest_answer(model: Model, question: Question, budget: Budget | None = None) -> Outcome[Answer]:
    """Return the most probable answer, the first of equals.

    budget: a state is a listed answer, or a prefix of one or of a world
    """
    members = AnswerSet(model, question)
    compiled = Compiled(model, question)
    if not members.fitting:
        return _NOTHING
    if question.asks_noise:
        world = likeliest_world(model, question, budget)
        if not isinstance(world, Found):
            return world
        return Found(members.answer_of(world.value))
    if compiled.product is not None:
        return Found(dict(compiled.symbols(compiled.target, _decode_output(compiled, compiled.product))))
    budget = budget or Budget(5_000)
    try:
        best = _most_probable(members.answers(budget), members.probability)
    except BudgetSpent:
        return _LISTED
    return Found(best) if best is not None else _NOTHING


def _most_probable(members: Iterable[T], weight: Callable[[T], Fraction]) -> T | None:
    """Return the member of greatest weight, the first of equals; None without members."""
    best: T | None = None
    max_probability = Fraction(-1)
    for member in members:
        probability = weight(member)
        if probability > max_probability:
            best, max_probability = member, probability
    return best


def _decode_output(compiled: Compiled, sets: Sets) -> list[int]:
    """Return the most probable output by position: node by node, the first value with which the maximum is attained."""
    factors = [
        equation_factor(local, i, [compiled.weights[i][k] for k in sets[i]], sets[i])
        for i, local in enumerate(compiled.target)
    ]
    bound = prod(compiled.denominators)
    decided: dict[int, int] = {}
    for i, local in enumerate(compiled.target):
        if len(local.domain) == 1:
            decided[i] = 0
            continue
        scores = []
        for k in range(len(local.domain)):
            # each fixed value keeps the maximum attainable, so none is taken back: one elimination for each value
            scores.append(max_of_products([restrict(factor, {**decided, i: k}) for factor in factors], bound))
        decided[i] = scores.index(max(scores))
    return [decided[i] for i in range(len(compiled.target))]


# --- Worked solution of a question in words: abduction, action, prediction (J. Pearl, Causality, 2000) and answer -----
# Prediction follows the first fitting world. For each noise variable, abduction states all values that the evidence
# allows if the fitting worlds form a product, otherwise only its value in that world.
Stage: TypeAlias = Literal["abduction", "action", "prediction"]


@dataclass(frozen=True)
class SolutionStep:
    """A line of a solution; `name` is the noise variable or node whose value it gives."""

    stage: Stage
    name: str
    text: str


@dataclass(frozen=True)
class WorkedSolution:
    """The steps in the order in which they are read, and a right answer, that of the world that is followed."""

    steps: tuple[SolutionStep, ...]
    answer: Answer

    def __repr__(self) -> str:
        return f"<WorkedSolution of {len(self.steps)} steps>"

    @property
    def text(self) -> str:
        """Steps under their headings, then the answer as one line of JSON."""
        lines: list[str] = []
        for stage in ("abduction", "action", "prediction"):
            texts = [step.text for step in self.steps if step.stage == stage]
            if texts:
                lines += [f"{stage.capitalize()}:", *texts, ""]
        return "\n".join([*lines, assignment_text(self.answer)]) + "\n"


def work_solution(model: Model, question: Question) -> Outcome[WorkedSolution]:
    """Return a step by step solution of a question; `Impossible` if no world fits."""
    members = AnswerSet(model, question)
    try:
        positions = next(members.fitting_worlds(Budget(MAX_STATES)), None)
    except BudgetSpent:
        return OutOfBudget("no fitting world was found among the beginnings looked at")
    if positions is None:
        return Impossible("all worlds that agree with the fixed noise")
    world = {node.noise: node.support[k] for node, k in zip(model.nodes, positions, strict=True)}
    values = run(model, world, question.do)
    answer = project(question, model, world, values)
    assert members.contains(answer)
    steps = [*_abduction(model, question, world), *_action(question)]
    if not question.form.asks_noise:
        steps.extend(_prediction(model, question, world, values))
    return Found(WorkedSolution(tuple(steps), answer))


def _abduction(model: Model, question: Question, world: Assignment) -> Iterator[SolutionStep]:
    """Yield a step for every noise variable: its possible values, and the one that is followed."""
    try:
        allowed = allowed_noise(model, question)
    except ModelError:
        # no product: lists of values for each variable would admit combinations that do not fit
        allowed = {}
    factual = run(model, world, {})
    for node in model.nodes:
        chosen = world[node.noise]
        if node.noise in question.fixed:
            text = f"{node.noise} = {chosen} is given."
        elif not question.observed:
            text = f"{node.noise} may be any of {_list(node.support)}; take {chosen}."
        else:
            text = _explain_observation(node, question, factual, allowed.get(node.noise, (chosen,)), chosen)
        yield SolutionStep("abduction", node.noise, text)


def _explain_observation(
    node: Node, question: Question, factual: Assignment, allowed: tuple[Symbol, ...], chosen: Symbol
) -> str:
    inputs = _arguments(node, factual)
    if node.name not in question.observed:
        return f"{node.noise} = {chosen} agrees with everything seen{inputs}."
    observation = f"{node.name} = {factual[node.name]} was seen{inputs}"
    if len(allowed) == 1:
        return f"{observation}: only {node.noise} = {chosen} agrees with that and with everything else seen."
    return f"{observation}: {node.noise} may be any of {_list(allowed)}; take {chosen}."


def _action(question: Question) -> Iterator[SolutionStep]:
    for name, value in question.do.items():
        yield SolutionStep("action", name, f"{name} is set to {value}; its equation no longer counts.")


def _prediction(model: Model, question: Question, world: Assignment, values: Assignment) -> Iterator[SolutionStep]:
    for node in model.nodes:
        if node.name in question.do:
            text = f"{node.name} = {values[node.name]}, as set."
        else:
            inputs = [*((parent, values[parent]) for parent in node.parents), (node.noise, world[node.noise])]
            inputs_text = ", ".join(f"{name} = {value}" for name, value in inputs)
            text = f"{node.name} = {values[node.name]}, from {inputs_text}."
        yield SolutionStep("prediction", node.name, text)


def _arguments(node: Node, values: Assignment) -> str:
    if not node.parents:
        return ""
    return " with " + ", ".join(f"{parent} = {values[parent]}" for parent in node.parents)


def _list(values: tuple[Symbol, ...]) -> str:
    return ", ".join(values)
