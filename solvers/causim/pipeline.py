"""Capped pipeline: samples domains and runs worlds up to a cap, as the paper's does.

Its answer sets are subsets of the complete ones. It serves to measure that, and to write query files of the same kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice, product
from math import prod

from calibrant.dsl.causim.generated_functions import Draws
from calibrant.dsl.causim.generation import draw_world
from calibrant.dsl.causim.model import Model, Symbol, assignment_text, run
from calibrant.dsl.causim.question import Answer, Question, project


@dataclass(frozen=True)
class Caps:
    """Limits of the pipeline.

    domain_samples: forward samples from which the values of noise are taken; None for the exact supports
    max_combinations: limit on worlds; max_support: limit on answers
    """

    domain_samples: int | None = 2_000
    max_combinations: int = 200_000
    max_support: int = 10_000


@dataclass(frozen=True)
class Stored:
    """Stored answers.

    answers: by their texts, in the order of the worlds
    exhausted: whether every world of the sampled noise values was run, and every answer stored
    """

    answers: dict[str, Answer]
    exhausted: bool


def sampled_supports(model: Model, samples: int, seed: int) -> dict[str, tuple[Symbol, ...]]:
    """Return the values of every noise variable among sampled worlds, sorted by text."""
    draws = Draws("domain", seed)
    values_of: dict[str, set[Symbol]] = {noise: set() for noise in model.noises}
    for _ in range(samples):
        for noise, value in draw_world(draws, model).items():
            values_of[noise].add(value)
    return {noise: tuple(sorted(values)) for noise, values in values_of.items()}


def store_answers(model: Model, question: Question, caps: Caps, seed: int = 0) -> Stored:
    """Run the pipeline; return its version of the answer set."""
    supports = {node.noise: node.support for node in model.nodes}
    if caps.domain_samples is not None:
        # 2,000 samples miss a value of probability .001 in 0.999**2000 = 13.5 % of scans
        supports = sampled_supports(model, caps.domain_samples, seed)
    fixed = {noise: (value,) for noise, value in question.fixed.items() if value in supports[noise]}
    if len(fixed) < len(question.fixed):
        # the scan never saw a fixed value: no world of the sampled supports has it
        return Stored({}, True)
    choices = [fixed.get(noise, supports[noise]) for noise in model.noises]
    answers: dict[str, Answer] = {}
    for values in islice(product(*choices), caps.max_combinations):
        noise = dict(zip(model.noises, values, strict=True))
        factual = run(model, noise, {})
        if any(factual[name] != value for name, value in question.observed.items()):
            continue
        answer = project(question, model, noise, run(model, noise, question.do))
        text = assignment_text(answer)
        if text not in answers and len(answers) == caps.max_support:
            return Stored(answers, False)
        answers[text] = answer
    return Stored(answers, prod(map(len, choices)) <= caps.max_combinations)
