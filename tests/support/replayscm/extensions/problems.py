"""Small extended items and random classes with members, from a seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from random import Random
from typing import Any

import msgspec

from calibrant.dsl.formulas.table import TruthTable, support
from calibrant.dsl.formulas.text import render
from calibrant.dsl.replayscm.disclosure import HiddenOrder, Ordered
from calibrant.dsl.replayscm.episode import clean_rows, noisy_rows
from calibrant.dsl.replayscm.extensions.extension import NOISE_FREE, MechanismClass, Prior, known_rate
from calibrant.dsl.replayscm.extensions.reference import EvidenceWorld, Mechanisms
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.pools.build import problem_from_record
from calibrant.dsl.replayscm.pools.records import ProblemRecord
from calibrant.dsl.replayscm.scm import LocalFunction
from calibrant.solvers.replayscm.experiments.answers import member_formulas

# --- Small extended items with held-out worlds: episodes, passive ones and forecasts, from a seed ---------------------
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


# --- Random classes with random members and the worlds that they show, for comparisons of fast paths ------------------
def random_class(
    rng: Random,
    num_observed: int,
    *,
    num_roots: int = 2,
    num_hidden: int = 0,
    max_parents: int = 2,
    stated: int | None = 2,
    rate: Fraction | None = None,
) -> MechanismClass:
    """Return a random class.

    stated: number of parents of each hidden variable; None for unknown ones
    """
    observed = tuple(f"X{i + 1}" for i in range(num_observed))
    roots = tuple(sorted(rng.sample(observed, num_roots)))
    order = [*roots, *rng.sample([v for v in observed if v not in roots], num_observed - num_roots)]
    hidden: dict[str, tuple[str, ...] | None] = {}
    for i in range(num_hidden):
        hidden[f"H{i + 1}"] = None if stated is None else tuple(sorted(rng.sample(order[:-1], stated)))
    for name, parents in hidden.items():
        places = [order.index(parent) for parent in parents or ()]
        order.insert(max(places, default=num_roots - 1) + 1, name)
    is_ordered = rng.random() < 0.3
    disclosure = Ordered(tuple(order), roots) if is_ordered else HiddenOrder((*observed, *hidden), roots)
    noise = NOISE_FREE if rate is None else known_rate(rate)
    prior = rng.choice(list(Prior))
    return MechanismClass(observed, roots, disclosure, max_parents, prior, noise, hidden)


def random_member(rng: Random, scm_class: MechanismClass) -> Mechanisms:
    """Return a member whose order is random among those that the class admits."""
    names = [*scm_class.hidden_parents, *scm_class.endogenous]
    while True:
        order = rng.sample(names, len(names))
        if scm_class.disclosure.order is not None:
            order = [v for v in scm_class.disclosure.order if v in names]
        placed, member = set(scm_class.roots), dict[str, LocalFunction]()
        for v in order:
            stated = scm_class.hidden_parents.get(v)
            able = [u for u in scm_class.admissible_parents(v) if u in placed]
            if stated is not None and not placed.issuperset(stated):
                break
            parents = stated or tuple(rng.sample(able, rng.randint(0, min(len(able), scm_class.max_parents))))
            member[v] = LocalFunction(parents, _essential(rng, len(parents)))
            placed.add(v)
        if len(member) == len(names):
            return member


def _essential(rng: Random, num_vars: int) -> TruthTable:
    while True:
        table = TruthTable(num_vars, rng.getrandbits(1 << num_vars))
        if len(support(table)) == num_vars:
            return table


def random_worlds(
    rng: Random, scm_class: MechanismClass, member: Mechanisms, num_worlds: int, num_rows: int, *, seed: int = 7
) -> list[EvidenceWorld]:
    """Worlds of a member with up to three random targets, flips included; the first without any."""
    rate = scm_class.noise.max_rate
    rates = dict.fromkeys(scm_class.endogenous, rate) if rate else {}
    worlds = []
    for number in range(num_worlds):
        targets = rng.sample(scm_class.observed, rng.randint(1, 3) if number else 0)
        do = {v: rng.getrandbits(1) for v in targets}
        contexts = [rng.getrandbits(len(scm_class.roots)) for _ in range(num_rows)]
        rows = noisy_rows(scm_class, member, do, contexts, seed=seed, world=number, rates=rates)
        worlds.append(EvidenceWorld(do, rows))
    return worlds
