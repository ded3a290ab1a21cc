"""Random classes with random members and the worlds that they show, for comparisons of fast paths."""

from __future__ import annotations

from fractions import Fraction
from random import Random

from calibrant.dsl.formulas.table import TruthTable, support
from calibrant.dsl.replayscm.disclosure import HiddenOrder, Ordered
from calibrant.dsl.replayscm.episode import noisy_rows
from calibrant.dsl.replayscm.extensions.extension import NOISE_FREE, MechanismClass, Prior, known_rate
from calibrant.dsl.replayscm.extensions.reference import EvidenceWorld, Mechanisms
from calibrant.dsl.replayscm.scm import LocalFunction


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
