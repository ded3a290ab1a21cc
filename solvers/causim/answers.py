"""Complete answer set of a question without enumeration: membership, counts, probabilities, members, flags.

Membership of a full answer is a conjunction of table look-ups where the fitting worlds form a product. Otherwise
(partial evidence) it is one variable elimination over the factual nodes, with the noise restricted to the values that
give the answer under `do` (the twin network, A. Balke and J. Pearl, Probabilistic evaluation of counterfactual queries,
1994, with its second copy fixed to the answer). Distinct answers are listed by depth-first search over prefixes, each
tested for feasibility by an elimination, so that every branch ends in an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import prod
from typing import TypeAlias

from calibrant.dsl.causim.model import Assignment, Model, ModelError, System, run
from calibrant.dsl.causim.question import Answer, Question, copy_evidence, project
from calibrant.solvers.budget import Budget, BudgetSpent
from calibrant.solvers.causim.compiled import Compiled, Sets
from calibrant.solvers.outcome import Found, Impossible, Outcome, OutOfBudget

_IsFeasible: TypeAlias = Callable[[Mapping[int, int]], bool]
MAX_STATES = 200_000  # prefixes of answers that a search visits, unless a budget is given


class AnswerSet:
    """Answers of a question about a model.

    `ModelError` if the question is not about the model, or a mechanism raises for a value of `do`.

    work: budget of all eliminations together; properties and methods raise `BudgetSpent` beyond it, `size` does not
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
        """Count the different answers. A state is a prefix of an answer."""
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
        # by complement: one elimination over both systems counts the worlds without a change, none is listed
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
        positions = {}
        for i, (name, local) in enumerate(zip(self.model.names, self._compiled.target, strict=True)):
            position = local.index.get(answer[name])
            if position is None:
                return None
            positions[i] = position
        return positions

    def _contains_world(self, answer: Assignment) -> bool:
        noise = {**self.question.fixed, **{name: answer[name] for name in self.question.unknown}}
        if any(noise[node.noise] not in node.support for node in self.model.nodes):
            return False
        factual = run(self.model, noise, {})
        if any(factual[name] != value for name, value in self.question.observed.items()):
            return False
        values_under_do = run(self.model, noise, self.question.do)
        return all(values_under_do[key] == answer[key] for key in self.keys if key in self.model.position)

    def probability(self, answer: Assignment) -> Fraction:
        """Return the probability given the fixed noise and the evidence; `ModelError` if that has probability zero."""
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
        """Yield every answer once, in a fixed order; `BudgetSpent` where that takes more states than allowed."""
        budget = budget or Budget(MAX_STATES)
        if self.question.asks_noise:
            for world in self.fitting_worlds(budget):
                yield self.answer_of(self._noise(world))
            return
        for positions in self._outputs(budget):
            yield dict(self._compiled.symbols(self._compiled.target, positions))

    def pick(self) -> Outcome[Answer]:
        """Return the first answer, certified by running a world that gives it."""
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

        fixed: positions of nodes whose value is known; other values of theirs are no states
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
            # distinct values, in the order of the domain: noise values of equal effect are one branch
            for position in sorted({int(row[k]) for k in sets[i]}):
                if fixed.get(i, position) != position:
                    continue
                budget.spend(1)
                values.append(position)
                if feasible(dict(enumerate(values))):
                    yield from go()
                values.pop()

        yield from go()


class TwinAnswerSet(AnswerSet):
    """Answer set that always uses elimination and search, as if the fitting worlds never formed a product."""

    def _compile(self) -> Compiled:
        compiled = Compiled(self.model, self.question, self._work)
        if compiled.evidence is not None and all(compiled.allowed):
            compiled.product = None
        return compiled
