"""What members read of all candidates, against the reference row by row; splits that members prove."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from random import Random

import numpy as np
import pytest

from calibrant.dsl.replayscm.disclosure import HiddenOrder
from calibrant.dsl.replayscm.episode import ScmEpisode, candidate_worlds, clean_rows, task_class
from calibrant.dsl.replayscm.extensions.extension import NOISE_FREE, MechanismClass, Prior, known_rate
from calibrant.dsl.replayscm.extensions.reference import EvidenceWorld
from calibrant.solvers.replayscm.experiments import greedy
from calibrant.solvers.replayscm.experiments.candidates import MemberArrays, Witnesses, alike_shares, pack_candidates
from calibrant.solvers.replayscm.experiments.greedy import WorldChooser
from calibrant.solvers.replayscm.experiments.shares import expected_bits, request_rows
from calibrant.solvers.replayscm.hidden.members import posterior_sampler
from calibrant.solvers.replayscm.noise.local_weights import EvidenceRow
from calibrant.solvers.replayscm.noise.posterior import Posterior
from tests.support.replayscm.extensions.vectors import frontier_vectors, problem_of

NUM_MEMBERS = 12


def _scm_class(num_vars: int, num_hidden: int, max_parents: int) -> MechanismClass:
    # not in natural order: numbers come from the class, not from names
    observed = tuple(f"X{num_vars - i}" for i in range(num_vars))
    roots = observed[1:3]
    hidden = {f"H{i + 1}": observed[i : i + 2] for i in range(num_hidden)}
    disclosure = HiddenOrder((*observed, *hidden), roots)
    return MechanismClass(observed, roots, disclosure, max_parents, Prior.UNIFORM, NOISE_FREE, hidden)


@pytest.mark.parametrize("num_rows", [1, 3, 8, 64, 70])
@pytest.mark.parametrize(("num_vars", "num_hidden", "max_parents"), [(4, 0, 0), (5, 0, 3), (5, 1, 2), (4, 2, 2)])
def test_keys_are_equal_iff_readings_are(num_vars: int, num_hidden: int, max_parents: int, num_rows: int) -> None:
    """Several candidates a word, one, and several words a candidate; fields side by side and hashed ones."""
    scm_class = _scm_class(num_vars, num_hidden, max_parents)
    sampler, rng = posterior_sampler(Posterior(scm_class)), Random(num_rows)
    members = [sampler.draw(rng) for _ in range(NUM_MEMBERS)]
    contexts = [rng.getrandbits(2) for _ in range(num_rows)]
    candidates = candidate_worlds(scm_class.observed, 2)
    index = {v: i for i, v in enumerate(scm_class.observed)}
    keys = pack_candidates(index, scm_class.roots, candidates, contexts).keys(MemberArrays(scm_class, members).programs)
    shares = alike_shares(keys)
    for place, do in enumerate(candidates):
        readings = [tuple(clean_rows(scm_class, member, do, contexts)) for member in members]
        pairs = list(combinations(range(NUM_MEMBERS), 2))
        alike = [readings[a] == readings[b] for a, b in pairs]
        assert [bool(keys[place, a] == keys[place, b]) for a, b in pairs] == alike
        assert shares[place] == pytest.approx(sum(alike) / len(pairs))


@pytest.mark.parametrize("num_hidden", [0, 1])
def test_witnesses_prove_a_split_while_they_fit(num_hidden: int) -> None:
    scm_class = _scm_class(4, num_hidden, 2)
    sampler, rng = posterior_sampler(Posterior(scm_class)), Random(4)
    members = [sampler.draw(rng) for _ in range(NUM_MEMBERS)]
    index = {v: i for i, v in enumerate(scm_class.observed)}
    contexts, candidates = range(4), candidate_worlds(scm_class.observed, 2)
    arrays = MemberArrays(scm_class, members).programs
    keys = pack_candidates(index, scm_class.roots, candidates, contexts).keys(arrays)
    witnesses = Witnesses(scm_class, index, arrays, keys, [])
    worlds: list[EvidenceWorld] = []
    fitting = members
    behaviours: set[tuple[tuple[str, ...], ...]] = set()
    for do in rng.sample(candidates, len(candidates)):
        worlds.append(EvidenceWorld(do, tuple(clean_rows(scm_class, members[0], do, contexts))))
        fitting = [m for m in fitting if tuple(clean_rows(scm_class, m, do, contexts)) == worlds[-1].rows]
        behaviours = {tuple(tuple(clean_rows(scm_class, m, x, contexts)) for x in candidates) for m in fitting}
        assert witnesses.split_after(worlds) == (len(behaviours) > 1)
    assert len(behaviours) == 1
    assert not np.array_equal(keys, witnesses.keys)
    # worlds that do not go on from those before
    fresh = Witnesses(scm_class, index, arrays, keys, worlds[:1])
    assert fresh.is_split
    assert not fresh.split_after(worlds[1:])


@pytest.mark.parametrize(("num_vars", "num_hidden"), [(5, 0), (5, 1), (4, 2)])
def test_mismatches_give_the_likelihood_of_every_world(num_vars: int, num_hidden: int) -> None:
    rng, rate = Random(num_vars + num_hidden), Fraction(1, 10)
    silent = _scm_class(num_vars, num_hidden, 2)
    scm_class = replace(silent, noise=known_rate(rate))
    sampler = posterior_sampler(Posterior(silent))
    listed = [sampler.draw(rng) for _ in range(NUM_MEMBERS)]
    endogenous = [silent.observed.index(v) for v in silent.endogenous]
    worlds = []
    for number in (1, 3, 2):
        clamped = sum(1 << v for v in rng.sample(endogenous, 1))
        worlds.append([EvidenceRow(rng.getrandbits(num_vars), clamped) for _ in range(number)])
    rows = [row for world in worlds for row in world]
    reading, targets = (
        np.array(values, np.uint64) for values in zip(*((r.word, r.clamped) for r in rows), strict=True)
    )
    wrong = MemberArrays(scm_class, listed).mismatches(reading, targets, np.array([0, 1, 4, 6]))
    assert wrong.max() > 0
    for member, counts in zip(listed, wrong.tolist(), strict=True):
        prior = Posterior(scm_class).likelihood(member)
        for world, number in zip(worlds, counts, strict=True):
            cells = (len(endogenous) - 1) * len(world)
            expected = prior * rate**number * (1 - rate) ** (cells - number)
            assert Posterior(scm_class).condition_rows(world).likelihood(member) == expected


# --- Greedy choices at real size: estimates against exact values, and whole episodes against the clairvoyant minimum


@pytest.mark.parametrize("kind", ["plain", "hidden", "ordered"])
def test_greedy_reaches_the_floor(kind: str) -> None:
    lines = [x for x in frontier_vectors("episode") if x["id"].rpartition("-")[2].startswith(kind) and "floor" in x]
    for line in lines[:3]:
        problem = problem_of(line)
        scm_class = task_class(problem.task)
        chooser = WorldChooser(problem.task, scm_class, problem.id)
        allowance = {**line["item"]["allowance"], "worlds": 50}
        long = problem_of({**line, "item": {**line["item"], "allowance": allowance}})
        episode = ScmEpisode(long)
        worlds = [EvidenceWorld({}, tuple(line["steps"][0]["rows"]))]
        while (choice := chooser.choose(worlds)) is not None:
            do = chooser.candidates[choice.place]
            reading = episode.act({"do": do}).reading
            assert reading is not None
            worlds.append(EvidenceWorld(do, tuple(reading["rows"])))
        assert Posterior(scm_class).condition(*worlds).num_members == line["floor"]
        assert len(worlds) - 1 >= line["clairvoyant"]


def test_bits_are_those_of_listing_readings(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 1,500 drawn readings the standard error is below 0.04 bits."""
    monkeypatch.setattr(greedy, "NUM_NOISY_DRAWS", 1_500)
    line = next(x for x in frontier_vectors("episode") if x["id"].endswith("-noise0"))
    problem = problem_of(line)
    scm_class = task_class(problem.task)
    chooser = WorldChooser(problem.task, scm_class, problem.id)
    start = EvidenceWorld({}, tuple(line["steps"][0]["rows"]))
    contexts = [range(1 << len(scm_class.roots))]
    estimates = chooser.expected_bits([start], contexts, Random(3))
    posterior = Posterior(scm_class).condition(start)
    exact = [expected_bits(posterior, request_rows(scm_class, do, contexts[0])) for do in chooser.candidates]
    assert np.abs(estimates - exact).max() < 0.2


def test_sampled_contexts_and_chosen_ones_give_choices() -> None:
    for kind in ("drawn", "chosen", "noisedrawn"):
        line = next(x for x in frontier_vectors("episode") if x["id"].endswith(f"-{kind}0"))
        problem = problem_of(line)
        chooser = WorldChooser(problem.task, task_class(problem.task), problem.id)
        start = EvidenceWorld({}, tuple(line["steps"][0]["rows"]))
        first, second = (chooser.choose([start]) for _ in range(2))
        assert first == second is not None
        rows = line["item"]["allowance"]["rows"]
        assert all(len(variant) == rows for variant in chooser.contexts(Random(0)))


def test_compared_candidates_of_large_noisy_items() -> None:
    line = next(x for x in frontier_vectors("episode") if x["id"].endswith("-noise0"))
    names = [f"X{i}" for i in range(1, 9)]
    raw = {**line["item"]["class"], "variables": names, "roots": ["X1"], "parents_weights": []}
    item = {**line["item"], "class": raw, "gold": {}, "allowance": {**line["item"]["allowance"], "max_targets": 3}}
    gold = {name: {"parents": [], "table": "0"} for name in names[1:]}
    problem = problem_of({**line, "item": {**item, "gold": gold}})
    chooser = WorldChooser(problem.task, task_class(problem.task), problem.id)
    assert len(chooser.places) == 1 + 16 + greedy.NUM_OTHER_CANDIDATES
    assert chooser.places == sorted(chooser.places)
    assert chooser.scm_class.noise.max_rate > Fraction(0)
