"""Answers of every kind to problems of every setting: each gets a verdict, in few steps, and no wrong one."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Sequence
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
from tests.fuzz.corruption import CHARACTER_DAMAGE, LONGEST, damaged
from tests.oracles.independent import Judge, require

# --- Answers that are wrong in some way, or right in an unusual one: mechanisms, then objects, then texts -------------
TOKENS = (
    "(", ")", "(", ")", "not", "and", "or", "xor", "iff", "if", "nand", "AND", "0", "1", "X1", "X2", "X3", "X4", "X5",
    "X99", "x1", "X1,", "(X1)", "((X1))", "()", "\u00a0", "\u200b", "\n", "\t", "\v", "\ufeff", '"', "X\u0661", "_",
)  # fmt: skip
OPERATORS = ("and", "or", "xor", "iff")


def formula(rng: random.Random, variables: Sequence[str], budget: int) -> str:
    """Return a well-formed text over the variables."""
    if budget <= 1 or rng.random() < 0.25:
        name = rng.choice(variables)
        return f"({name})" if rng.random() < 0.05 else name
    if rng.random() < 0.2:
        return f"(not {formula(rng, variables, budget - 1)})"
    parts = [formula(rng, variables, budget // 2) for _ in range(rng.choice([2, 2, 2, 3, 6]))]
    return f"({rng.choice(OPERATORS)} {' '.join(parts)})"


def rewritten(rng: random.Random, text: str, variables: Sequence[str]) -> str:
    """Return the same function in other words, mostly; some mention more than they depend on."""
    other = rng.choice(variables)
    return rng.choice(
        [
            f"(not (not {text}))",
            f" {text}\n",
            text.replace(" ", "\u2003"),
            text.replace("(", "( ").replace(")", " )"),
            f"(and {text} {text})",
            f"(or {text} (and {other} (not {other})))",
            f"(xor {text} {other} {other})",
            f"(iff {text} (iff {other} {other}))",
            "(not " * 2 * rng.choice([1, 1, 1, 2, 3, _rarely(rng, 250, 20)]) + text,  # closed below
            f"(and {' '.join([text] * rng.choice([2, 2, 3, 3, 6, _rarely(rng, 300, 20)]))})",
        ]
    )


def _rarely(rng: random.Random, much: int, little: int) -> int:
    return much if rng.random() < 0.05 else rng.randrange(1, little)


def mechanism(rng: random.Random, text: str, variables: Sequence[str]) -> Any:
    """Something in place of a mechanism's text."""
    match rng.randrange(8):
        case 0:
            return formula(rng, variables, rng.choice([2, 5, 12, 40]))
        case 1 | 2:
            other = rewritten(rng, text, variables)
            return other + ")" * (other.count("(") - other.count(")"))
        case 3:
            return " ".join(rng.choices([*TOKENS, *variables], k=rng.choice([1, 3, 6, 12, 40])))
        case 4:
            tokens = text.replace("(", " ( ").replace(")", " ) ").split()
            tokens[rng.randrange(len(tokens))] = rng.choice([*TOKENS, *variables])
            return " ".join(tokens)
        case 5:
            depth = _rarely(rng, rng.choice([495, 496, 497, 5_000]), 8)
            return "(not " * depth + text + ")" * (depth - rng.randrange(2))
        case 6:
            return rng.choice(CHARACTER_DAMAGE)(rng, text)
        case _:
            return damaged(rng, {"": text}).get("", [text])


def answer(rng: random.Random, good: dict[str, Any], variables: Sequence[str]) -> dict[str, Any]:
    """Return a good answer with some mechanisms changed, and sometimes its shape."""
    made: dict[str, Any] = json.loads(json.dumps(good))
    mechanisms = made["alternative"]["mechanisms"] if "alternative" in made else made["mechanisms"]
    for _ in range(rng.choice([0, 1, 1, 1, 2, 3])):
        name = rng.choice(list(mechanisms))
        text = mechanisms[name]
        mechanisms[name] = mechanism(rng, text, variables) if isinstance(text, str) and text.strip() else "X1"
    if rng.random() < 0.1:
        names = list(mechanisms)
        one, other = rng.choice(names), rng.choice(names)
        mechanisms[one], mechanisms[other] = mechanisms[other], mechanisms[one]
    if rng.random() < 0.15 and "roots" in made:
        roots = rng.sample(list(variables), len(made["roots"]))
        made["roots"] = roots
        keys = [v for v in variables if v not in roots]
        earlier = [*roots, *keys]
        made["mechanisms"] = {v: formula(rng, earlier[: len(roots) + i], 6) for i, v in enumerate(keys)}
    while rng.random() < 0.25:
        made = damaged(rng, made)
    return made


def response(rng: random.Random, answers: Sequence[Any]) -> str:
    """Return a text that holds the answers, somewhere, in some state."""
    texts = [json.dumps(a, ensure_ascii=rng.random() < 0.5, indent=rng.choice([None, None, 2])) for a in answers]
    text = rng.choice(["", "Answer: ", "```json\n", "{", "[", "\ufeff"]) + rng.choice([" ", "\n", "} {"]).join(texts)
    text += rng.choice(["", "", "\n", "\n```", "}", "]", " {", '{"mechanisms": {}}'])
    if rng.random() < 0.1:
        text = json.dumps({"answer": text} if rng.random() < 0.5 else {"answer": answers[0]})
    if rng.random() < 0.02:
        text = rng.choice('{["') * rng.choice([100, 2_000]) + text
    while rng.random() < 0.35 and len(text) <= LONGEST:
        text = rng.choice(CHARACTER_DAMAGE)(rng, text)
    return text


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
