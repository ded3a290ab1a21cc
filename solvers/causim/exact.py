"""Complete answer set of a question, and verdicts on replies to it.

If the fitting worlds form a product, an answer is checked by look-ups in tables. Otherwise (with partial evidence) it
takes one variable elimination over the factual nodes, with the noise restricted to the values that give the answer
under `do`. That is the twin network (A. Balke and J. Pearl, Probabilistic evaluation of counterfactual queries, 1994)
with its second copy fixed to the answer. Different answers are listed by depth-first search over prefixes; an
elimination tests each prefix, so that every branch ends in an answer.

With full evidence a world fits iff each noise value gives its node's value from the observed parents, so the fitting
worlds form a product of one set for each node. They also do without evidence, and with one unknown noise variable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import islice, product
from math import lcm, prod
from typing import Any, Literal, TypeAlias

import numpy as np

from calibrant.dsl.causim.item import Task
from calibrant.dsl.causim.model import Assignment, Model, ModelError, Symbol, System, assignment_text, run
from calibrant.dsl.causim.question import Answer, Question, copy_evidence, project
from calibrant.dsl.causim.reference import worlds
from calibrant.dsl.causim.score import Reason, answer_of, reasons
from calibrant.dsl.json_objects import last_object
from calibrant.solvers.causim.elimination import Factor, equation_factor, restrict, sum_of_products
from calibrant.solvers.outcome import Budget, BudgetSpent, Found, Impossible, Outcome, OutOfBudget

# --- Question compiled to positions in domains: factual and target system, allowed noise, evidence --------------------
Sets = tuple[tuple[int, ...], ...]  # for each node, positions of its noise values


class Compiled:
    """A question with its tables.

    base, target: the equations without and with `do`
    allowed: for each node, the noise that agrees with the fixed values
    evidence: observed node -> position of its value in its domain; None if a value is not in the domain of its node
    work: budget of all eliminations together, in units of `elimination.sum_of_products`
    product: for each node, the noise of the fitting worlds; all empty if none fits; None if they form no product
    """

    def __init__(self, model: Model, question: Question, work: Budget | None = None) -> None:
        self.work = work
        self.model = model
        self.question = question
        self.base: System = model.system
        self.target: System = model.under(question.do)
        self.allowed: Sets = tuple(
            tuple(range(len(node.support)))
            if node.noise not in question.fixed
            else tuple(k for k, value in enumerate(node.support) if value == question.fixed[node.noise])
            for node in model.nodes
        )
        self.evidence = self._evidence()
        self.product = self._product()

    def _evidence(self) -> dict[int, int] | None:
        positions = {}
        for name, value in self.question.observed.items():
            i = self.model.position[name]
            position = self.base[i].index.get(value)
            if position is None:
                return None
            positions[i] = position
        return positions

    def _product(self) -> Sets | None:
        empty: Sets = tuple(() for _ in self.allowed)
        if self.evidence is None or not all(self.allowed):
            return empty
        if not self.evidence:
            return self.allowed
        if len(self.evidence) == len(self.base):
            sets = tuple(self.noise_giving(self.base, i, self.evidence, self.allowed[i]) for i in range(len(self.base)))
            return sets if all(sets) else empty
        free = [i for i, domain in enumerate(self.allowed) if len(domain) > 1]
        # if two noise variables are open, which values of one fit may depend on the other
        if len(free) > 1:
            return None
        i = free[0] if free else 0
        first = [domain[0] for domain in self.allowed]
        # one open noise variable: each of its values is run, O(values * nodes)
        fitting = tuple(k for k in self.allowed[i] if self._agrees([*first[:i], k, *first[i + 1 :]]))
        return (*self.allowed[:i], fitting, *self.allowed[i + 1 :]) if fitting else empty

    @staticmethod
    def noise_giving(system: System, i: int, values: Mapping[int, int], noise: Sequence[int]) -> tuple[int, ...]:
        """Return those of the noise values that give node i its value from its parents' values, all by position."""
        row = system[i].table[tuple(values[parent] for parent in system[i].parents)]
        return tuple(k for k in noise if row[k] == values[i])

    def _agrees(self, world: Sequence[int]) -> bool:
        values = self.values(self.base, world)
        return all(values[i] == position for i, position in (self.evidence or {}).items())

    def values(self, system: System, world: Sequence[int]) -> list[int]:
        """Return the values of all nodes in a world, by position."""
        positions: list[int] = []
        for i, local in enumerate(system):
            positions.append(int(local.table[(*(positions[parent] for parent in local.parents), world[i])]))
        return positions

    # --- sums --------------------------------------------------------------------------------------------------------

    def count(self, sets: Sequence[Sequence[int]], evidence: Mapping[int, int]) -> int:
        """Return the number of worlds of the sets in which the base system agrees with the evidence."""
        factors = [
            restrict(equation_factor(local, i, [1] * len(sets[i]), sets[i]), evidence)
            for i, local in enumerate(self.base)
        ]
        return sum_of_products(factors, prod(map(len, sets)), self.work)

    def weight(self, sets: Sequence[Sequence[int]], evidence: Mapping[int, int]) -> int:
        """Return the probability of the worlds that `count` counts, times the product of `denominators`: an integer."""
        factors = [
            restrict(equation_factor(local, i, [self.weights[i][k] for k in sets[i]], sets[i]), evidence)
            for i, local in enumerate(self.base)
        ]
        return sum_of_products(factors, prod(self.denominators), self.work)

    @cached_property
    def denominators(self) -> tuple[int, ...]:
        """For each node, the least common denominator of its noise weights."""
        return tuple(lcm(*(weight.denominator for weight in node.weights)) for node in self.model.nodes)

    @cached_property
    def weights(self) -> tuple[tuple[int, ...], ...]:
        """For each node, its noise weights times its denominator: integers."""
        return tuple(
            tuple(int(weight * common) for weight in node.weights)
            for node, common in zip(self.model.nodes, self.denominators, strict=True)
        )

    def count_outputs(self, sets: Sets) -> int:
        """Return the number of different outputs of the target system over the worlds of a product."""
        if not all(sets):
            return 0
        # a factor has 1 where some noise value exists, so each output counts once
        factors = []
        for i, local in enumerate(self.target):
            factor = equation_factor(local, i, [1] * len(sets[i]), sets[i])
            factors.append(Factor(factor.scope, (factor.values > 0).astype(np.int64)))
        return sum_of_products(factors, prod(map(len, sets)), self.work)

    def restrict_to_output(
        self, sets: Sequence[Sequence[int]], output: Mapping[int, int]
    ) -> tuple[tuple[int, ...], ...]:
        """Return, for each node, the noise that gives its output from the outputs of its parents under `do`.

        output: node -> position; it has the parents of each of its nodes, and nodes that it lacks keep their noise
        """
        return tuple(
            self.noise_giving(self.target, i, output, domain) if i in output else tuple(domain)
            for i, domain in enumerate(sets)
        )

    def count_unchanged(self) -> int:
        """Return the number of fitting worlds in which `do` changes no node outside it."""
        if self.evidence is None or not all(self.allowed):
            return 0
        factors = []
        for i, local in enumerate(self.base):
            allowed = self.allowed[i]
            if self.model.nodes[i].name in self.question.do:
                factors.append(equation_factor(local, i, [1] * len(allowed), allowed))
                continue
            agrees = self._same_in_target(i)
            values = np.zeros((*local.table.shape[:-1], len(local.domain)), dtype=np.int64)
            domain = np.arange(len(local.domain))
            for k in allowed:
                # a noise value counts only where the node has the same value with and without `do`
                values += (local.table[..., k, None] == domain) & agrees[..., k, None]
            factors.append(Factor((*local.parents, i), values))
        return sum_of_products(
            [restrict(factor, self.evidence) for factor in factors], prod(map(len, self.allowed)), self.work
        )

    def _same_in_target(self, i: int) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """Return, for each row of node i's base table, whether the target table gives the same value for it."""
        base, target = self.base[i], self.target[i]
        if target is base:
            return np.ones(base.table.shape, dtype=np.bool_)
        grid, in_domain = [], np.ones(base.table.shape[:-1], dtype=np.bool_)
        for axis, parent in enumerate(base.parents):
            local = self.target[parent]
            if self.model.nodes[parent].name in self.question.do:
                positions = np.zeros(len(self.base[parent].domain), dtype=np.int64)
            else:
                positions = np.array([local.index.get(value, -1) for value in self.base[parent].domain])
            shape = [1] * len(base.parents)
            shape[axis] = len(positions)
            grid.append(positions.reshape(shape))
            in_domain &= positions.reshape(shape) >= 0
        target_positions = target.table[tuple(np.maximum(axis, 0) for axis in grid)]
        target_positions = np.broadcast_to(target_positions, base.table.shape)
        translate = np.array([base.index.get(value, -1) for value in target.domain])
        result: np.ndarray[tuple[int, ...], np.dtype[np.bool_]] = (
            translate[target_positions] == base.table
        ) & in_domain[..., None]
        return result

    def symbols(self, system: System, positions: Sequence[int]) -> Iterator[tuple[str, Symbol]]:
        """Yield names and values of all nodes at these positions."""
        return (
            (node.name, local.domain[k]) for node, local, k in zip(self.model.nodes, system, positions, strict=True)
        )


# --- Complete answer set of a question without enumeration: membership, counts, probabilities, members, flags ---------
_IsFeasible: TypeAlias = Callable[[Mapping[int, int]], bool]
MAX_STATES = 200_000  # prefixes of answers that a search visits, unless a budget is given


class AnswerSet:
    """Answers of a question about a model.

    work: budget of all eliminations together; properties and methods raise `BudgetSpent` beyond it, except `size`
    Raise `ModelError` if the question is not about the model, or a mechanism raises for a value of `do`.
    """

    def __init__(self, model: Model, question: Question, work: Budget | None = None) -> None:
        self.model = model
        self._work = work
        self.question = question
        self.keys = question.required_keys(model)
        self._compiled = self._compile()

    def _compile(self) -> Compiled:
        return Compiled(self.model, self.question, self._work)

    # --- counts ------------------------------------------------------------------------------------------------------

    @cached_property
    def worlds(self) -> int:
        """Number of worlds that agree with the fixed noise."""
        return prod(map(len, self._compiled.allowed))

    @cached_property
    def fitting(self) -> int:
        """Number of worlds that also agree with the evidence."""
        compiled = self._compiled
        if compiled.product is not None:
            return prod(map(len, compiled.product))
        return compiled.count(compiled.allowed, compiled.evidence or {})

    def size(self, budget: Budget | None = None) -> Outcome[int]:
        """Return the number of different answers; `OutOfBudget` if that was not decided.

        budget: by default MAX_STATES; a state is a prefix of an answer
        """
        try:
            return Found(self._size(budget or Budget(MAX_STATES)))
        except BudgetSpent:
            return OutOfBudget("the answers of a question with partial evidence were not all listed")

    def _size(self, budget: Budget) -> int:
        if self.question.asks_noise:
            return self.fitting  # worlds that differ in unknown noise differ in their answers
        if self._compiled.product is not None:
            return self._compiled.count_outputs(self._compiled.product)
        return sum(1 for _ in self._outputs(budget))

    @cached_property
    def effect(self) -> tuple[bool, bool] | None:
        """Whether a node outside `do` changes in all, and in some, fitting worlds; None without `do` or such worlds."""
        if not self.question.do or not self.fitting:
            return None
        # one elimination over both systems counts the worlds without a change, and no world is listed
        unchanged = self._compiled.count_unchanged()
        return unchanged == 0, unchanged < self.fitting

    @property
    def copy(self) -> bool | None:
        """Whether the evidence, overwritten by `do`, is a right answer; None without both."""
        if not self.question.form.may_copy:
            return None
        answer = copy_evidence(self.question)
        return set(answer) == set(self.keys) and self.contains(answer)

    # --- membership --------------------------------------------------------------------------------------------------

    def contains(self, answer: Assignment) -> bool:
        """Return whether an answer with exactly the required keys is right."""
        if set(answer) != set(self.keys):
            return False
        compiled = self._compiled
        if not all(compiled.product if compiled.product is not None else compiled.allowed):
            return False
        if self.question.asks_noise:
            return self._contains_world(answer)
        output = self._positions(answer)
        if output is None:
            return False
        # in a product each node has its own noise, so the answer is right iff every node has a value that gives it
        if compiled.product is not None:
            return all(compiled.restrict_to_output(compiled.product, output))
        sets = compiled.restrict_to_output(compiled.allowed, output)
        return all(sets) and compiled.count(sets, compiled.evidence or {}) > 0

    def _positions(self, answer: Assignment) -> dict[int, int] | None:
        """Return an answer as node -> position; None if a value is not in the domain of its node."""
        positions = {}
        for i, (name, local) in enumerate(zip(self.model.names, self._compiled.target, strict=True)):
            position = local.index.get(answer[name])
            if position is None:
                return None
            positions[i] = position
        return positions

    def _contains_world(self, answer: Assignment) -> bool:
        """Return whether the world that an answer with noise states fits, and gives its values of nodes."""
        noise = {**self.question.fixed, **{name: answer[name] for name in self.question.unknown}}
        if any(noise[node.noise] not in node.support for node in self.model.nodes):
            return False
        factual = run(self.model, noise, {})
        if any(factual[name] != value for name, value in self.question.observed.items()):
            return False
        values_under_do = run(self.model, noise, self.question.do)
        return all(values_under_do[key] == answer[key] for key in self.keys if key in self.model.position)

    def probability(self, answer: Assignment) -> Fraction:
        """Return the probability of an answer given the fixed noise and the evidence; `ModelError` if no world fits."""
        compiled, evidence = self._compiled, self._compiled.evidence
        if not self.fitting or evidence is None:
            raise ModelError("nothing fits, so nothing has a probability")
        if not self.contains(answer):
            return Fraction(0)
        if self.question.asks_noise:
            sets: Sequence[Sequence[int]] = [
                [node.noise_index[answer[node.noise]]] if node.noise in answer else domain
                for node, domain in zip(self.model.nodes, compiled.allowed, strict=True)
            ]
        else:
            output = self._positions(answer)
            assert output is not None
            sets = compiled.restrict_to_output(compiled.allowed, output)
        return Fraction(compiled.weight(sets, evidence), compiled.weight(compiled.allowed, evidence))

    # --- members -----------------------------------------------------------------------------------------------------

    def answers(self, budget: Budget | None = None) -> Iterator[Answer]:
        """Yield every answer once, in a fixed order; raise `BudgetSpent` if that takes more states than it has."""
        budget = budget or Budget(MAX_STATES)
        if self.question.asks_noise:
            for world in self.fitting_worlds(budget):
                yield self.answer_of(self._noise(world))
            return
        for positions in self._outputs(budget):
            yield dict(self._compiled.symbols(self._compiled.target, positions))

    def pick(self) -> Outcome[Answer]:
        """Return one answer, that of the first fitting world, which is run to certify it."""
        try:
            world = next(self.fitting_worlds(Budget(MAX_STATES)), None)
        except BudgetSpent:
            return OutOfBudget("no fitting world was found among the beginnings looked at")
        if world is None:
            return Impossible("all worlds that agree with the fixed noise")
        noise = self._noise(world)
        factual = run(self.model, noise, {})
        assert all(factual[name] == value for name, value in self.question.observed.items())
        return Found(self.answer_of(noise))

    def answer_of(self, noise: Assignment) -> Answer:
        """Return the answer of a world."""
        return project(self.question, self.model, noise, run(self.model, noise, self.question.do))

    def fitting_worlds(self, budget: Budget) -> Iterator[tuple[int, ...]]:
        """Yield every fitting world as positions of noise values, in a fixed order."""
        compiled = self._compiled
        if compiled.product is not None:
            yield from product(*compiled.product)
            return
        for values in self._factual(budget):
            positions = dict(enumerate(values))
            yield from product(
                *(
                    compiled.noise_giving(compiled.base, i, positions, domain)
                    for i, domain in enumerate(compiled.allowed)
                )
            )

    def _noise(self, world: Sequence[int]) -> dict[str, str]:
        return {node.noise: node.support[k] for node, k in zip(self.model.nodes, world, strict=True)}

    def _factual(self, budget: Budget) -> Iterator[list[int]]:
        """Yield every assignment of the factual nodes that agrees with the evidence, by position."""
        compiled, evidence = self._compiled, self._compiled.evidence or {}

        def feasible(prefix: Mapping[int, int]) -> bool:
            return compiled.count(compiled.allowed, {**evidence, **prefix}) > 0

        yield from self._search(compiled.base, compiled.allowed, budget, feasible, evidence)

    def _outputs(self, budget: Budget) -> Iterator[list[int]]:
        """Yield every distinct output of the target system over the fitting worlds, by position."""
        compiled = self._compiled
        if compiled.product is not None:
            # in a product each node has its own noise: every prefix extends to an output, so no test and no budget
            yield from self._search(compiled.target, compiled.product, Budget(None), lambda prefix: True)
            return

        def feasible(prefix: Mapping[int, int]) -> bool:
            sets = compiled.restrict_to_output(compiled.allowed, prefix)
            return all(sets) and compiled.count(sets, compiled.evidence or {}) > 0

        yield from self._search(compiled.target, compiled.allowed, budget, feasible)

    def _search(
        self, system: System, sets: Sets, budget: Budget, feasible: _IsFeasible, fixed: Mapping[int, int] | None = None
    ) -> Iterator[list[int]]:
        """Yield all assignments of a system's nodes that the sets allow, pruned at infeasible prefixes.

        fixed: nodes whose value is known -> its position; their other values are skipped and cost no states
        """
        if not all(sets):
            return
        fixed = fixed or {}
        values: list[int] = []

        def go() -> Iterator[list[int]]:
            i = len(values)
            if i == len(system):
                yield list(values)
                return
            row = system[i].table[tuple(values[parent] for parent in system[i].parents)]
            # distinct values, in the order of the domain: noise values with the same result share a branch
            for position in sorted({int(row[k]) for k in sets[i]}):
                if fixed.get(i, position) != position:
                    continue
                budget.spend(1)
                values.append(position)
                if feasible(dict(enumerate(values))):
                    yield from go()
                values.pop()

        yield from go()


# --- Answers by running worlds one after the other, all of them or a first part ---------------------------------------


def first_answers(model: Model, question: Question, max_worlds: int) -> dict[str, Answer]:
    """Return text -> answer of those of the first `max_worlds` worlds that fit, in the order of their noise."""
    answers: dict[str, Answer] = {}
    for noise, _ in islice(worlds(model, question.fixed), max_worlds):
        factual = run(model, noise, {})
        if all(factual[name] == value for name, value in question.observed.items()):
            answer = project(question, model, noise, run(model, noise, question.do))
            answers.setdefault(assignment_text(answer), answer)
    return answers


# --- Verdicts on replies to one question: reward, reason for a reward of 0, and a reason for each node ----------------
Why: TypeAlias = Literal["no_object", "wrong_keys", "wrong_answer"]


@dataclass(frozen=True)
class Judgement:
    """Verdict on a reply.

    reward: 1 or 0; why: None iff the reward is 1
    answer: the answer that was extracted; None if there was none
    nodes: a reason for every node, if the answer has all nodes and the allowed noise is a product; else None
    """

    reward: int
    why: Why | None
    answer: Answer | None
    nodes: dict[str, Reason] | None = None


@dataclass(frozen=True)
class Flags:
    """Properties that make a question easy, computed without its labels; None where one does not apply.

    trivial: `do` covers every required key; copyable: the evidence, overwritten by `do`, is right
    vacuous: in no fitting world a node outside `do` changes
    """

    trivial: bool | None
    copyable: bool | None
    vacuous: bool | None


class Judge:
    """Judge of replies to one task, without side effects and time limits."""

    def __init__(self, task: Task) -> None:
        self.task = task

    @cached_property
    def members(self) -> AnswerSet:
        return AnswerSet(self.task.model, self.task.question)

    @cached_property
    def flags(self) -> Flags:
        question, effect = self.task.question, self.members.effect
        trivial = question.is_trivial(self.task.model) if question.do else None
        return Flags(trivial, self.members.copy, None if effect is None else not effect[1])

    def judge_text(self, text: str) -> Judgement:
        """Judge a text that is only an answer, without thoughts before it."""
        stated = last_object(text)
        return Judgement(0, "no_object", None) if stated is None else self.judge_object(stated)

    def judge_object(self, record: Mapping[str, Any]) -> Judgement:
        """Judge a JSON object."""
        answer = answer_of(record, self.members.keys)
        return Judgement(0, "wrong_keys", None) if answer is None else self.judge_answer(answer)

    def judge_answer(self, answer: Answer) -> Judgement:
        """Judge an answer with exactly the required keys."""
        right = self.members.contains(answer)
        return Judgement(int(right), None if right else "wrong_answer", answer, self._nodes(answer))

    def _nodes(self, answer: Answer) -> dict[str, Reason] | None:
        model, question = self.task.model, self.task.question
        if not set(model.position) <= set(answer):
            return None
        try:
            return reasons(model, question, answer)
        except ModelError:  # the noise that partial evidence allows is no product
            return None
