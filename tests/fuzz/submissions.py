"""Answers of every kind to problems of every setting: each gets a verdict, in few steps, and no wrong one."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

from calibrant.bench.core.registry import bundled_pools
from calibrant.dsl.formulas.formula import apply
from calibrant.dsl.formulas.text import render
from calibrant.dsl.replayscm.alternatives import PairwiseExperiments, witness_for
from calibrant.dsl.replayscm.item import Problem, TaskKind
from calibrant.dsl.replayscm.pools.files import read_pool
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.score import Evaluator, Score
from tests.fuzz.answers import answer, response
from tests.oracles.independent import Judge, require

EVERY = 3  # of the 24 problems of a bundled pool: one of each stratum
THOROUGH = 1 / 16  # of the valid answers that are said to be inexact are replayed all the same
PROFILED = 1 / 64  # of the answers have their steps counted, and every long one
LONG = 20_000
STEPS, STEPS_PER_CHARACTER = 20_000, 20  # Python and built-in calls; an ordinary answer takes 1,500


class Target(NamedTuple):
    """One problem with an answer that is right."""

    problem: Problem
    good: dict[str, Any]
    paper: Evaluator
    published: Evaluator
    judge: Judge


@cache
def targets() -> tuple[Target, ...]:
    """Problems of the bundled pools in all settings, and Alternative-SCM items made of some."""
    made = []
    for path in bundled_pools():
        for index, problem in enumerate(read_pool(path).problems[::EVERY]):
            made.append(_target(problem))
            if problem.task.kind is TaskKind.SCM and index % 4 == 0:
                made.append(_target(alternative(problem)))
    return tuple(made)


def _target(problem: Problem) -> Target:
    paper, published = (Evaluator(problem, extractor=name) for name in ("paper", "published"))
    return Target(problem, good_answer(problem), paper, published, Judge(problem))


def _gold(problem: Problem) -> Scm:
    assert problem.sealed.gold is not None
    return problem.sealed.gold


def alternative(problem: Problem) -> Problem:
    """Return the same evidence, gold the alternative of a reference that is off in its last mechanism."""
    gold = _gold(problem)
    last = gold.order[-1]
    reference = Scm(gold.roots, {**gold.mechanisms, last: apply("not", [gold.mechanisms[last]])})
    return replace(problem, task=replace(problem.task, kind=TaskKind.ALTERNATIVE, reference=reference))


def good_answer(problem: Problem) -> dict[str, Any]:
    gold, reference = _gold(problem), problem.task.reference
    mechanisms = {variable: render(mechanism) for variable, mechanism in gold.mechanisms.items()}
    if problem.task.kind is TaskKind.ROOTS:
        return {"roots": list(gold.roots), "mechanisms": mechanisms}
    if reference is None:
        return {"mechanisms": mechanisms}
    pair = PairwiseExperiments(reference, gold)
    experiment = pair.best().experiment
    witness = witness_for(pair, experiment)
    return {"alternative": {"mechanisms": mechanisms}, "experiment": experiment.to_dict(), "witness": witness}


def case(rng: random.Random) -> str:
    """One answer, as object, text or prediction; the outcome is the stage that it reached."""
    target = rng.choice(targets())
    made = answer(rng, target.good, target.problem.task.variables)
    evaluator = target.published if rng.random() < 0.25 else target.paper
    match rng.randrange(6):
        case 0:
            score = _scored(rng, len(str(made)), lambda: evaluator.score_answer(made))
        case 1:
            key = rng.choice(["extractedAnswer", "rawResponse", "response", "text"])
            content = made if key == "extractedAnswer" else response(rng, [made])
            score = _scored(rng, len(str(content)), lambda: evaluator.score_prediction({key: content}))
        case _:
            others = [
                made,
                *([target.good, answer(rng, target.good, target.problem.task.variables)] if rng.random() < 0.1 else []),
            ]
            text = response(rng, rng.sample(others, len(others)))
            score = _scored(rng, len(text), lambda: evaluator.score_text(text))
    target.judge.check(score, thorough=rng.random() < THOROUGH)
    published = score.to_dict()
    require(published["valid"] == score.valid and published["correct"] == score.correct, "another verdict as a dict")
    reason = score.failure
    require(reason is None or (len(reason) < 2_000 and "\n" not in reason), f"a reason of more than a line: {reason}")
    return _outcome(score)


def _outcome(score: Score) -> str:
    if score.rejection is not None:
        return f"not {score.rejection.stage}"
    return "correct" if score.correct else "train exact" if score.train_exact else "valid"


def _scored(rng: random.Random, length: int, score: Callable[[], Score]) -> Score:
    """Return the score; of some answers the number of steps that it took is checked against their length."""
    if length < LONG and rng.random() >= PROFILED:
        return score()
    steps = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal steps
        steps += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        made = score()
        made.to_dict()
    finally:
        sys.setprofile(before)
    require(steps <= STEPS + STEPS_PER_CHARACTER * length, f"{steps} steps for {length} characters")
    return made
