"""Smallest set of further observations that decides a question, over a SAT encoding of its worlds.

Implicit hitting sets (E. Moreno-Centeno and R. Karp, The implicit hitting set approach to solve combinatorial
optimization problems, 2013): for every fitting world with another answer, the observations must include one in which it
differs from the true world. The search alternates between a smallest hitting set of the sets of differences so far, and
a SAT search for a world with another answer that agrees with these observations. The worlds are the certificate.

The encoding also checks membership and counts independently of solvers.causim.exact. It has a clause for each case of a
table. A case says: if each parent and the noise have one of these values, the node has this value. The clause says: a
parent or the noise has another value, or the node has this one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

from pysat.examples.hitman import Hitman
from pysat.solvers import Solver

from calibrant.dsl.causim.model import Assignment, Model, ModelError, Symbol, System, cubes, run
from calibrant.dsl.causim.question import Answer, Question, project
from calibrant.solvers.outcome import Budget, BudgetSpent, Found, Impossible, Outcome, OutOfBudget
from calibrant.solvers.sat import Cnf, Literal, add_at_most_one

# --- SAT encoding of questions: noise, factual values and values under `do` one-hot, a clause for each case of a table
_SOLVER = "cadical153"
OneHot = Mapping[Symbol, Literal]


class SatQuestion:
    """Clauses whose models are the fitting worlds of a question with their answers. Close it after use.

    noise: noise variable -> literal of each of its values
    factual, asked: node -> literal of each of its values, without and with `do`
    """

    def __init__(self, model: Model, question: Question) -> None:
        self.model = model
        self.question = question
        self.keys = question.required_keys(model)
        self._cnf = Cnf()
        self.noise: dict[str, OneHot] = {node.noise: self._one_hot(node.noise, node.support) for node in model.nodes}
        self.factual = self._system(model.system, "")
        self.asked = self.factual
        if question.do:
            self.asked = self._system(model.under(question.do), " under do")
        for values, literals in ((question.fixed, self.noise), (question.observed, self.factual)):
            for name, value in values.items():
                # a value that is in no domain adds the empty clause, so nothing fits, as in solvers.causim.exact
                literal = literals[name].get(value)
                self._cnf.add(*([literal] if literal is not None else []))
        self._solver = Solver(name=_SOLVER, bootstrap_with=self._cnf.clauses)

    def close(self) -> None:
        self._solver.delete()

    def _one_hot(self, name: str, values: Iterable[Symbol]) -> dict[Symbol, Literal]:
        literals = {value: self._cnf.variable(f"{name} is {value}") for value in values}
        self._cnf.add(*literals.values())
        add_at_most_one(self._cnf, list(literals.values()), name)
        return literals

    def _system(self, system: System, suffix: str) -> dict[str, OneHot]:
        literals: dict[str, OneHot] = {}
        for node, local in zip(self.model.nodes, system, strict=True):
            literals[node.name] = self._one_hot(f"{node.name}{suffix}", local.domain)
            parents = [list(literals[self.model.names[parent]].values()) for parent in local.parents]
            axes = [*parents, list(self.noise[node.noise].values())]
            # a case covers a box of table rows: fewer and shorter clauses than one for each row
            for positions, outcome in cubes(local.table):
                outside = [
                    literal
                    for axis, inside in zip(axes, positions, strict=True)
                    for k, literal in enumerate(axis)
                    if k not in inside
                ]
                self._cnf.add(*outside, literals[node.name][local.domain[outcome]])
        return literals

    def literal(self, key: str, value: Symbol) -> Literal | None:
        """Return the literal of a value of a key of the answer; None if the key never has that value."""
        return (self.asked if key in self.model.position else self.noise)[key].get(value)

    def contains(self, answer: Assignment) -> bool:
        """Return whether an answer with exactly the required keys is right."""
        if set(answer) != set(self.keys):
            return False
        assumptions = []
        for key in self.keys:
            literal = self.literal(key, answer[key])
            if literal is None:
                return False
            assumptions.append(literal)
        return self.is_satisfiable(assumptions)

    def is_satisfiable(self, assumptions: Iterable[Literal]) -> bool:
        return bool(self._solver.solve(assumptions=list(assumptions)))

    def add(self, clause: Iterable[Literal]) -> None:
        """Add a clause, which also holds in all later calls."""
        self._solver.add_clause(list(clause))

    def world(self) -> dict[str, Symbol]:
        """Return the noise of the last solution."""
        true_literals = set(self._solver.get_model() or ())
        return {
            name: next(value for value, literal in literals.items() if literal in true_literals)
            for name, literals in self.noise.items()
        }

    def answers(self, budget: Budget) -> Iterator[Answer]:
        """Yield every answer once, each then excluded by a clause, so that `contains` is invalid afterwards.

        budget: a state is an answer
        """
        while self.is_satisfiable(()):
            budget.spend(1)
            true_literals = set(self._solver.get_model() or ())
            answer, block = {}, []
            for key in self.keys:
                literals = (self.asked if key in self.model.position else self.noise)[key]
                value = next(value for value, literal in literals.items() if literal in true_literals)
                answer[key] = value
                # literals of the answer alone: all worlds that give it are excluded at once
                block.append(-literals[value])
            yield answer
            self.add(block)

    def size(self, budget: Budget) -> Outcome[int]:
        """Count the different answers; `answers` lists and excludes them."""
        num_answers = 0
        try:
            for _ in self.answers(budget):
                num_answers += 1
        except BudgetSpent:
            # not budget.used: a budget may have been spent on something else before
            return OutOfBudget("more answers than the budget has states", lower_bound=num_answers)
        return Found(num_answers)


# --- Smallest set of further observations that makes the answer to a question unique, proven smallest -----------------


@dataclass(frozen=True)
class MinimalEvidence:
    """A smallest set of observations with its certificate.

    observe: names of noise variables and nodes (in the factual world), sorted; with their values one answer remains
    against: fitting worlds with other answers; every smaller set of observations agrees with one of them
    """

    observe: tuple[str, ...]
    against: tuple[Mapping[str, Symbol], ...]


def observable(model: Model, question: Question) -> tuple[str, ...]:
    """Return what else could be observed: unknown noise and, for questions with evidence, unobserved nodes."""
    nodes = [name for name in model.names if name not in question.observed] if question.form.has_evidence else []
    return tuple(sorted([*question.unknown, *nodes]))


def minimal_evidence(
    model: Model,
    question: Question,
    world: Mapping[str, Symbol],
    candidates: Sequence[str] | None = None,
    budget: Budget | None = None,
) -> Outcome[MinimalEvidence]:
    """Find a smallest set of candidates whose values in the true world leave one answer.

    world: the true value of every noise variable; raise `ModelError` if it does not fit the question
    candidates: names that may be observed; None for all that are `observable`
    budget: a state is one call of the SAT solver
    """
    budget = budget or Budget(100_000)
    factual = run(model, world, {})
    if any(world[name] != value for name, value in question.fixed.items()) or any(
        factual[name] != value for name, value in question.observed.items()
    ):
        raise ModelError("the true world does not fit the question")
    truth = {**world, **factual}
    names = tuple(sorted(candidates)) if candidates is not None else observable(model, question)
    answer = project(question, model, world, run(model, world, question.do))
    with closing(SatQuestion(model, question)) as sat, Hitman(htype="sorted") as hitter:
        literals = {name: (sat.factual if name in model.position else sat.noise)[name][truth[name]] for name in names}
        answer_literals = [sat.literal(key, value) for key, value in answer.items()]
        # from here on models are fitting worlds whose answer differs from the true one
        sat.add(-literal for literal in answer_literals if literal is not None)
        against: list[Mapping[str, Symbol]] = []
        chosen: list[str] = []
        try:
            while True:
                budget.spend(1)
                if not sat.is_satisfiable(literals[name] for name in chosen):
                    return Found(MinimalEvidence(tuple(sorted(chosen)), tuple(against)))
                counterexample = sat.world()
                observations = {**counterexample, **run(model, counterexample, {})}
                differences = [name for name in names if observations[name] != truth[name]]
                if not differences:
                    return Impossible("all observations of the candidates, all of them at once included")
                against.append(counterexample)
                hitter.hit(differences)
                # it hits only the differences found so far, so its size is a lower bound of the optimum
                chosen = list(hitter.get())
        except BudgetSpent:
            return OutOfBudget("calls of the SAT engine", lower_bound=len(chosen))
