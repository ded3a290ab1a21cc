"""The smallest further observation that makes the answer to a question unique, proved smallest.

Implicit hitting sets: every world that fits and answers otherwise than the true one must differ from it in something
that is observed. Smallest sets that hit the differences found so far are tried until the SAT engine finds no further
world (E. Moreno-Centeno and R. Karp, The implicit hitting set approach, 2013). The worlds found are the proof.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

from pysat.examples.hitman import Hitman

from calibrant.dsl.causim.model import Model, run
from calibrant.dsl.causim.question import Question, project
from calibrant.dsl.causim.values import ModelError, Symbol
from calibrant.solvers.budget import Budget, BudgetSpent
from calibrant.solvers.causim.satisfiability import SatQuestion
from calibrant.solvers.outcome import Found, Impossible, Outcome, OutOfBudget


@dataclass(frozen=True)
class MinimalEvidence:
    """observe: names of noise variables and nodes (in the factual world), sorted; with them one answer is left
    against: fitting worlds with other answers; no smaller set of observations tells all of them from the true world
    """

    observe: tuple[str, ...]
    against: tuple[Mapping[str, Symbol], ...]


def observable(model: Model, question: Question) -> tuple[str, ...]:
    """Return what could be observed in addition: unknown noise, and unseen nodes where the type of question has
    evidence.
    """
    may_have_evidence = question.type in ("abduction", "counterfactual")
    nodes = [name for name in model.names if name not in question.observed] if may_have_evidence else []
    return tuple(sorted([*question.unknown, *nodes]))


def minimal_evidence(
    model: Model,
    question: Question,
    world: Mapping[str, Symbol],
    candidates: Sequence[str] | None = None,
    budget: Budget | None = None,
) -> Outcome[MinimalEvidence]:
    """The least number of candidates whose values in the true world leave one answer.

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
        own = [sat.literal(key, value) for key, value in answer.items()]
        sat.add(-literal for literal in own if literal is not None)
        against: list[Mapping[str, Symbol]] = []
        chosen: list[str] = []
        try:
            while True:
                budget.spend(1)
                if not sat.satisfiable(literals[name] for name in chosen):
                    return Found(MinimalEvidence(tuple(sorted(chosen)), tuple(against)))
                other = sat.world()
                seen = {**other, **run(model, other, {})}
                different = [name for name in names if seen[name] != truth[name]]
                if not different:
                    return Impossible("all observations of the candidates, all of them at once included")
                against.append(other)
                hitter.hit(different)
                chosen = list(hitter.get())
        except BudgetSpent:
            return OutOfBudget("calls of the SAT engine", lower_bound=len(chosen))
