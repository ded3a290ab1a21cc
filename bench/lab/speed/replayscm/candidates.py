"""Different candidates of the same size, for replays that no cache can shorten."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from calibrant.dsl.formulas.formula import Apply, Formula, Node
from calibrant.dsl.replayscm.evaluator import Candidate
from calibrant.dsl.replayscm.problem import Problem
from calibrant.dsl.replayscm.scm import Scm

LISTS = ("and", "or", "xor", "iff")


def gold_of(problem: Problem) -> Scm:
    """Return the latent SCM; ValueError if the pool does not tell it."""
    if problem.sealed.gold is None:
        raise ValueError(f"{problem.id}: benchmarks need the gold SCM")
    return problem.sealed.gold


def random_candidates(problem: Problem, count: int, seed: int) -> list[Candidate]:
    """Candidates in the shape of gold, with other variables and operators at random; mentions follow gold's order."""
    rng = Random(seed)
    gold = gold_of(problem)
    return [Candidate(*_like(gold, rng)) for _ in range(count)]


def _like(gold: Scm, rng: Random) -> tuple[dict[str, Formula], tuple[str, ...]]:
    earlier = list(gold.roots)
    mechanisms = {}
    for variable in gold.order:
        mechanisms[variable] = Formula(
            tuple(_different(node, earlier, rng) for node in gold.mechanisms[variable].nodes)
        )
        earlier.append(variable)
    return mechanisms, gold.order


def _different(node: Node, variables: Sequence[str], rng: Random) -> Node:
    if isinstance(node, Apply):
        return Apply(rng.choice(LISTS), node.arity) if node.operator in LISTS else node
    return rng.choice(variables) if isinstance(node, str) else node


def typical(problems: Sequence[Problem]) -> Problem:
    """Return the problem whose gold formulas are of median total size."""
    return sorted(problems, key=lambda problem: gold_of(problem).size)[len(problems) // 2]
