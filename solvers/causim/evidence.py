"""Smallest set of further observations that makes the answer to a question unique, proven smallest.

Implicit hitting sets (E. Moreno-Centeno and R. Karp, The implicit hitting set approach to solve combinatorial
optimization problems, 2013): the observations must hit, for every fitting world with another answer, the set of its
differences from the true world. Alternate between a smallest hitting set of the differences so far and a SAT search for
a world that it does not hit. The worlds are the certificate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

from pysat.examples.hitman import Hitman

from calibrant.dsl.causim.model import Model, ModelError, Symbol, run
from calibrant.dsl.causim.question import Question, project
from calibrant.solvers.budget import Budget, BudgetSpent
from calibrant.solvers.causim.satisfiability import SatQuestion
from calibrant.solvers.outcome import Found, Impossible, Outcome, OutOfBudget


@dataclass(frozen=True)
class MinimalEvidence:
    """Smallest observations with their certificate.

    observe: names of noise variables and nodes (in the factual world), sorted; with them one answer remains
    against: fitting worlds with other answers; no smaller set of observations separates all of them from the true world
    """

    observe: tuple[str, ...]
    against: tuple[Mapping[str, Symbol], ...]


def observable(model: Model, question: Question) -> tuple[str, ...]:
    """Return what else could be observed: unknown noise, and for questions with evidence unobserved nodes."""
    nodes = [name for name in model.names if name not in question.observed] if question.form.has_evidence else []
    return tuple(sorted([*question.unknown, *nodes]))


def minimal_evidence(
    model: Model,
    question: Question,
    world: Mapping[str, Symbol],
    candidates: Sequence[str] | None = None,
    budget: Budget | None = None,
) -> Outcome[MinimalEvidence]:
    """Find the smallest set of candidates whose values in the true world leave one answer.

    world: the true value of every noise variable; it must fit the question, else `ModelError`
    budget: a state is one call of the SAT engine
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
                # a minimum hitting set of a subfamily: its size is a lower bound of the optimum
                chosen = list(hitter.get())
        except BudgetSpent:
            return OutOfBudget("calls of the SAT engine", lower_bound=len(chosen))
