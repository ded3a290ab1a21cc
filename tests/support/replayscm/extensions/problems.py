"""Small extended items with held-out worlds: episodes, passive ones and forecasts, from a seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from random import Random
from typing import Any

import msgspec

from calibrant.dsl.formulas.text import render
from calibrant.dsl.replayscm.episode import clean_rows, noisy_rows
from calibrant.dsl.replayscm.extensions.extension import MechanismClass
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.pools.build import problem_from_record
from calibrant.dsl.replayscm.pools.records import ProblemRecord
from calibrant.solvers.replayscm.experiments.answers import member_formulas
from tests.support.replayscm.extensions.random_items import random_class, random_member

NUM_HELDOUT = 3


def small_problem(
    seed: int,
    *,
    rate: str | None = None,
    num_hidden: int = 0,
    is_episode: bool = True,
    is_forecast: bool = False,
    num_worlds: int = 6,
    contexts: str = "all",
    item_seed: int | None = None,
) -> Problem:
    """Return an item of 4 observed variables, 2 of them roots; the same arguments give the same item."""
    rng = Random(f"small|{seed}|{rate}|{num_hidden}")
    scm_class = random_class(rng, 4, num_hidden=num_hidden, stated=2, rate=None if rate is None else Fraction(rate))
    member = random_member(rng, scm_class)
    every = range(1 << len(scm_class.roots))
    rates = dict.fromkeys(scm_class.endogenous, Fraction(rate)) if rate else {}
    flips = seed if item_seed is None else item_seed
    heldout = [_constants(rng, scm_class) for _ in range(NUM_HELDOUT)]
    training = [{}, *(_constants(rng, scm_class) for _ in range(num_worlds - 1))]
    record: dict[str, Any] = {
        "id": f"small_{seed}_{rate}_{num_hidden}",
        "kind": "CAL_A_SCM_EPISODE" if is_episode else "CIND_A_SCM",
        "variables": list(scm_class.observed),
        "units": [f"u{row}" for row in every],
        "disclosure": _disclosure(scm_class),
        "training": []
        if is_episode
        else _worlds(
            "train",
            training,
            [
                noisy_rows(scm_class, member, do, every, seed=flips, world=number, rates=rates)
                for number, do in enumerate(training)
            ],
        ),
        "sealed": {
            "gold": {v: render(f) for v, f in member_formulas(scm_class.roots, member).items()},
            "seed": flips,
            "heldout": _worlds("heldout", heldout, [clean_rows(scm_class, member, do, every) for do in heldout]),
        },
        "max_parents": scm_class.max_parents,
        "prior": scm_class.prior.value,
        "hidden": {h: list(parents or ()) for h, parents in scm_class.hidden_parents.items()},
    }
    if rate is not None:
        record["noise"] = rate
    if is_episode:
        record["allowance"] = {"worlds": num_worlds, "rows": len(every), "max_targets": 2, "contexts": contexts}
    if is_forecast:
        texts = ["".join(str(c >> i & 1) for i in range(len(scm_class.roots))) for c in every]
        record |= {"question": "forecast", "asked": [{"constants": do, "contexts": texts} for do in heldout]}
    return problem_from_record(msgspec.convert(record, ProblemRecord))


def _constants(rng: Random, scm_class: MechanismClass) -> dict[str, int]:
    return {v: rng.getrandbits(1) for v in rng.sample(scm_class.observed, rng.randint(1, 2))}


def _disclosure(scm_class: MechanismClass) -> dict[str, Any]:
    if scm_class.disclosure.order is not None:
        return {"type": "ordered", "order": list(scm_class.disclosure.order), "roots": list(scm_class.roots)}
    return {"type": "hidden_order", "roots": list(scm_class.roots)}


def _worlds(
    name: str, interventions: Sequence[Mapping[str, int]], rows: Sequence[Sequence[str]]
) -> list[dict[str, Any]]:
    return [
        {"id": f"{name}_{number}", "constants": dict(do), "rows": list(texts)}
        for number, (do, texts) in enumerate(zip(interventions, rows, strict=True))
    ]


def gold_submission(problem: Problem) -> dict[str, Any]:
    """Return the answer that states gold."""
    assert problem.sealed.gold is not None
    return {"mechanisms": {v: render(mechanism) for v, mechanism in problem.sealed.gold.mechanisms.items()}}
