"""Forgeries of ReplaySCM's certificates: of counts, of counts under a cap of formula size, of unique members."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from random import Random
from typing import Any

from calibrant.audits.replayscm.certificates.certificate import build_certificate, evidence_digest, to_json
from calibrant.dsl.formulas.text import parse
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.scm import Scm
from calibrant.solvers.replayscm.space import ModelClass
from tests.support.forgery.forger import is_same, one_place_mutants
from tests.support.replayscm.random_problems import SETTINGS, Shape, gold_problem

KINDS = ("count", "capped", "unique")


def model_class(kind: str, problem: Problem) -> ModelClass:
    return ModelClass(2, 5 if kind == "capped" else None, problem.task.disclosure.roots is None)


@cache
def problems() -> tuple[Problem, ...]:
    """Two of every disclosure with much left open, two with little."""
    shapes = (Shape(endogenous=3, training=2), Shape(endogenous=2, units=8, training=7))
    return tuple(gold_problem(seed, s, shape) for shape in shapes for s in SETTINGS for seed in (11, 12, 13))


@cache
def genuine(kind: str) -> tuple[tuple[Problem, dict[str, Any]], ...]:
    """Problems with the certificates that are written of them; of unique members only where there is one."""
    made = [
        (problem, json.loads(to_json(build_certificate(problem, model_class(kind, problem))))) for problem in problems()
    ]
    if kind == "unique":
        made = [(problem, file) for problem, file in made if "unique" in file]
    return tuple(made[:8])


def is_true(problem: Problem, file: Any) -> bool:
    """Whether it is what is written of the problem in its class; of a proof any text may do that proves it."""
    try:
        chosen = file["class"]
        stated = ModelClass(chosen["max_parents"], chosen["max_size"], chosen["nested_roots"])
        right = json.loads(to_json(build_certificate(problem, stated)))
        rest = [{key: value for key, value in one.items() if key != "unique"} for one in (file, right)]
        if not is_same(*rest) or ("unique" in file) != ("unique" in right) or type(file["version"]) is not int:
            return False
        return "unique" not in right or _is_member(problem, file["unique"], right["unique"])
    except Exception:  # an oracle that stumbles over data has seen that they are none
        return False


def _is_member(problem: Problem, claimed: Any, right: Any) -> bool:
    models = [
        Scm(tuple(one["roots"]), {v: parse(text, problem.task.grammar) for v, text in one["mechanisms"].items()})
        for one in (claimed, right)
    ]
    same = models[0].roots == models[1].roots and models[0].local_functions == models[1].local_functions
    return same and set(claimed) == set(right)


def forgeries(kind: str, rng: Random, drawn: int) -> Iterator[tuple[Problem, Any]]:
    """Problems and files, not all of them false."""
    for problem, file in genuine(kind):
        for forged in one_place_mutants(file, rng, drawn):
            yield problem, forged
        for part in ("functions", "by_roots", "class", "unique"):
            for forged in one_place_mutants({part: file.get(part, {})}, rng, drawn // 3):
                yield problem, {**file, **forged}
        for other in rng.sample(problems(), 6):
            yield other, file
            yield other, {**file, "instance": other.id, "evidence": evidence_digest(other)}
        for key in file:
            yield problem, {k: v for k, v in file.items() if k != key}
        for changed in ({"max_parents": 3}, {"max_parents": 1}, {"max_size": 3}, {"max_size": None}, {"in_words": ""}):
            yield problem, {**file, "class": {**file["class"], **changed}}
        yield problem, {**file, "count": str(int(file["count"]) + 1)}
        yield problem, {**file, "count": f" {file['count']}"}
        if "unique" in file:
            proof = file["unique"]["proof"]
            for lines in ([], ["0"], proof[:-1], [*proof[:-1], "1 0"], ["d 1 0", *proof]):
                yield problem, {**file, "unique": {**file["unique"], "proof": lines}}
            names = {**file["unique"]["variables"], "X9 <- X8": 10**6}
            yield problem, {**file, "unique": {**file["unique"], "variables": names}}
