"""Extended items: generated ones, defects on items that have them and not, certificates and forgeries."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

import msgspec
import pytest

from calibrant.audits.replayscm.extended.generate import ExtendedStratum, extended_strata, sample_extended
from calibrant.audits.replayscm.extended.items import (
    Finding,
    TriedBehaviours,
    audit_extended,
    calibration_bins,
    lies_in_visible_class,
    state_ambiguous,
)
from calibrant.audits.replayscm.extended.verify import (
    CertificateError,
    clairvoyant_certificate,
    mass_certificate,
    verify_certificate,
)
from calibrant.bench.core.registry import bundled_sample
from calibrant.dsl.replayscm.disclosure import HiddenOrder, Ordered
from calibrant.dsl.replayscm.episode import ScmEpisode, clean_rows, task_class
from calibrant.dsl.replayscm.extensions.extension import NoiseKind, NoiseModel
from calibrant.dsl.replayscm.extensions.reference import enumerate_scms, visible_rows
from calibrant.dsl.replayscm.extensions.scores import SubmittedMap, score_map
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.pools.files import as_written, read_pool, record_from_problem
from calibrant.solvers.replayscm.experiments.candidates import decide_behaviour
from calibrant.solvers.replayscm.hidden.mass import posterior_sampler
from calibrant.solvers.replayscm.noise.posterior import Posterior
from tests.support.replayscm.extensions import random_class, random_member, random_worlds

# --- Generated extended items: deterministic, readable again, gold in the class, hidden variables needed --------------
ALL_STRATA = list(extended_strata())
SMALL = [s for s in ALL_STRATA if s.shape.base.num_variables == 6]


def test_strata_are_shapes_by_rates_by_hidden_variables() -> None:
    assert len(ALL_STRATA) == 45
    assert len({stratum.name for stratum in ALL_STRATA}) == 45


@pytest.mark.parametrize(("is_episode", "setting"), [(True, "hidden-order"), (False, "ordered")])
@pytest.mark.parametrize("stratum", SMALL[::4], ids=lambda s: s.name)
def test_items_are_read_again_and_gold_replays(stratum: ExtendedStratum, setting: str, is_episode: bool) -> None:
    problem = sample_extended(stratum, 5, setting=setting, is_episode=is_episode)
    assert msgspec.json.encode(record_from_problem(problem)) == msgspec.json.encode(
        record_from_problem(sample_extended(stratum, 5, setting=setting, is_episode=is_episode))
    )
    assert as_written(problem) == problem
    scm_class, gold = task_class(problem.task), problem.sealed.gold
    assert gold is not None
    submitted = SubmittedMap(gold.mechanisms, gold.order)
    score = score_map(scm_class, submitted, problem.task.training.worlds, problem.sealed.heldout.worlds)
    assert score.heldout_exact
    if is_episode:
        assert len(ScmEpisode(problem).steps[0].reading["rows"]) == 8  # type: ignore[index]
    else:
        cells = problem.task.training.num_rows * len(scm_class.endogenous)
        assert score.train_match is not None
        assert abs(float(1 - score.train_match) - float(stratum.rate)) < 4 * (0.25 / cells) ** 0.5 + 0.01
        assert (score.train_match == 1) == (stratum.rate == 0)
    for hidden in scm_class.hidden_parents:
        assert sum(hidden in f.parents for f in gold.local_functions.values()) >= 2


def test_gold_comes_from_the_stated_prior() -> None:
    """The number of parents is uniform over 0 to 3 under the prior, up to what acyclicity takes."""
    stratum = next(s for s in SMALL if s.rate == Fraction(1, 20) and not s.num_hidden)
    counts = [0] * 4
    for seed in range(60):
        gold = sample_extended(stratum, seed).sealed.gold
        assert gold is not None
        for function in gold.local_functions.values():
            counts[len(function.parents)] += 1
    problem = sample_extended(stratum, 0)
    expected = _parents_law(Posterior(task_class(problem.task)))
    total = sum(counts)
    for count, share in zip(counts, expected, strict=True):
        assert abs(count - total * share) < 4.5 * (total * share * (1 - share)) ** 0.5


def _parents_law(posterior: Posterior) -> list[float]:
    """Return the mean share of mechanisms with each number of parents, from exact marginals."""
    from calibrant.solvers.acyclic.draws import Marginals

    shares = [0.0] * 4
    (term,) = posterior.terms()
    marginals = Marginals(term.weights)
    for v in term.weights.endogenous:
        weights = marginals.of(v)
        for mask, weight in weights.items():
            shares[mask.bit_count()] += weight / sum(weights.values()) / len(term.weights.endogenous)
    return shares


def test_bundled_episodes_are_what_their_seeds_give() -> None:
    """Labels apart: those take a minute."""
    pool = read_pool(bundled_sample("replayscm_episodes"))
    by_name = {stratum.name: stratum for stratum in ALL_STRATA}
    assert len(pool.problems) == 8
    for problem in pool.problems:
        labels = problem.sealed.labels
        drawn = sample_extended(by_name[labels["stratum"]], int(labels["seed"]))
        assert as_written(problem) == problem
        assert {**labels, **drawn.sealed.labels} == labels
        assert replace(problem, sealed=replace(problem.sealed, labels=drawn.sealed.labels)) == as_written(drawn)


# --- Defects of extended items, each on an item that has it and on one that has not -----------------------------------
STRATA = [s for s in extended_strata() if s.shape.base.num_variables == 6]


def _kinds(problem: Problem) -> set[Finding]:
    return {finding.kind for finding in audit_extended(problem)}


def test_passive_items_are_ambiguous_iff_members_disagree() -> None:
    kinds: list[Any] = []
    for stratum in (STRATA[0], STRATA[3], STRATA[12]):
        for seed in range(3):
            problem = sample_extended(stratum, seed, is_episode=False)
            findings = audit_extended(problem)
            kinds.append([finding.kind for finding in findings])
            for finding in findings:
                assert finding.kind is Finding.AMBIGUOUS
                assert finding.share is not None
                assert finding.share < (1 if not stratum.rate else Fraction(99, 100))
                assert finding.is_proved  # the largest share is above 1/100 here, so no other one reaches 99/100
    assert [] in kinds  # 24 worlds of 8 rows decide most


@pytest.mark.parametrize(
    ("shares", "is_proved"),
    [(("1/2",), True), (("1/99", "1/98"), True), (("1/100",), False), (("1/200", "1/400"), False)],
)
def test_ambiguous_under_noise_is_proved_iff_no_untried_behaviour_can_reach_the_threshold(
    shares: tuple[str, ...], is_proved: bool
) -> None:
    tried = TriedBehaviours(max(map(Fraction, shares)), sum(map(Fraction, shares), Fraction(0)))
    finding = state_ambiguous(tried, Fraction(99, 100))
    assert finding.is_proved is is_proved
    assert ("not excluded" in finding.reason) is not is_proved


def test_episodes_are_winnable_and_not_trivial() -> None:
    for place in (0, 1, 6):
        assert not _kinds(sample_extended(STRATA[place], 1)) & {Finding.UNWINNABLE, Finding.TRIVIAL}


def test_a_map_that_one_world_decides_is_trivial() -> None:
    """Without held-out worlds there is one behaviour from the start on."""
    problem = sample_extended(STRATA[0], 2)
    panel = replace(problem.sealed.heldout, worlds=())
    assert Finding.TRIVIAL in _kinds(replace(problem, sealed=replace(problem.sealed, heldout=panel)))


def test_meanings_that_need_no_hidden_variable_by_enumeration() -> None:
    rng = Random(4)
    outcomes: set[bool] = set()
    for _ in range(40):
        scm_class = random_class(rng, 4, num_hidden=1, max_parents=1)
        member = random_member(rng, scm_class)
        visible = random_class(Random(0), 4, max_parents=1)
        order = scm_class.disclosure.order
        disclosure = (
            Ordered(tuple(v for v in order if v != "H1"), scm_class.roots)
            if order
            else HiddenOrder(scm_class.observed, scm_class.roots)
        )
        visible = replace(visible, roots=scm_class.roots, disclosure=disclosure)
        rows = visible_rows(scm_class, member)
        expected = any(visible_rows(visible, other) == rows for other, _ in enumerate_scms(visible))
        assert lies_in_visible_class(scm_class, member) == expected
        outcomes.add(expected)
    assert outcomes == {True, False}


# --- Stated probabilities come true as often as stated, on items whose gold is drawn from the prior -------------------
NUM_ITEMS = 120  # 3,000 were run when this was written: every bin within two standard errors


def _statements(number: int, seed: int) -> Iterator[tuple[Fraction, bool]]:
    rng = Random(seed)
    for item in range(number):
        hidden = item % 3 == 2
        rate = Fraction(rng.choice((1, 2)), 10)
        scm_class = random_class(rng, 4, num_hidden=int(hidden), max_parents=2 - hidden, rate=rate)
        if item % 3 == 1:
            grid = ((Fraction(1, 10), Fraction(1, 2)), (Fraction(1, 5), Fraction(1, 2)))
            scm_class = replace(scm_class, noise=NoiseModel(NoiseKind.SHARED, grid))
        gold, rates = posterior_sampler(Posterior(scm_class)).draw_with_rates(rng)
        true_rate = next(iter(rates.values()))
        known = replace(scm_class, noise=NoiseModel(NoiseKind.RATE, ((true_rate, Fraction(1)),)))
        evidence = random_worlds(rng, known, gold, rng.randint(1, 5), 3, seed=item)
        asked = [({scm_class.endogenous[0]: 1}, range(4)), ({}, range(4))]
        verdict = decide_behaviour(Posterior(scm_class).condition(*evidence), asked, rng)
        truth = tuple(clean_rows(scm_class, gold, do, contexts) for do, contexts in asked)
        yield verdict.share, verdict.rows == truth


def test_statements_come_true_as_often_as_stated() -> None:
    bins = calibration_bins(_statements(NUM_ITEMS, 1))
    assert sum(one_bin.number for one_bin in bins) == NUM_ITEMS
    for one_bin in bins:
        assert abs(one_bin.deviation) < 3, one_bin


def test_bins_hold_their_edges() -> None:
    statements = [(Fraction(1, 2), True), (Fraction(1, 2), False), (Fraction(1), True), (Fraction(1, 5), False)]
    first, middle, last = calibration_bins(statements)
    assert (first.lower, first.number, first.num_true) == (0.0, 1, 0)
    assert (middle.lower, middle.number, middle.share_true, middle.deviation) == (0.5, 2, 0.5, 0.0)
    assert (last.upper, last.number, last.deviation) == (1.0, 1, 0.0)
    low, high = middle.interval
    assert (low, high) == pytest.approx((0.0945, 0.9055), abs=1e-3)
    assert last.interval[1] == pytest.approx(1)


# --- Certificates hold, and forged ones do not ------------------------------------------------------------------------
Forgery = Callable[[dict[str, Any]], None]


@pytest.mark.parametrize("rate", [None, Fraction(1, 10)])
@pytest.mark.parametrize("stated", [0, 2, None])
def test_masses_are_recounted(stated: int | None, rate: Fraction | None) -> None:
    rng = Random(f"{stated} {rate}")
    hidden = int(stated != 0)
    scm_class = random_class(
        rng, 4, num_roots=2, num_hidden=hidden, max_parents=2 - hidden, stated=stated or None, rate=rate
    )
    worlds = random_worlds(rng, scm_class, random_member(rng, scm_class), 2, 2)
    document = json.loads(json.dumps(mass_certificate(Posterior(scm_class).condition(*worlds))))
    assert "recounted" in verify_certificate(document)


def _mass() -> dict[str, Any]:
    rng = Random(8)
    scm_class = random_class(rng, 4, num_hidden=1, max_parents=2, rate=Fraction(1, 10))
    worlds = random_worlds(rng, scm_class, random_member(rng, scm_class), 2, 2)
    return mass_certificate(Posterior(scm_class).condition(*worlds))


def _change_weight(document: dict[str, Any]) -> None:
    sets = next(iter(document["columns"][0]["terms"][0]["weights"].values()))
    name = next(iter(sets))
    sets[name] = str(int(sets[name]) + 1)


def _change_row(document: dict[str, Any]) -> None:
    """One free cell of the first row, the last endogenous variable's."""
    observed, roots = document["class"]["observed"], document["class"]["roots"]
    place = max(i for i, v in enumerate(observed) if v not in roots and v not in document["rows"][0]["targets"])
    row = document["rows"][0]["row"]
    document["rows"][0]["row"] = row[:place] + "10"[int(row[place])] + row[place + 1 :]


MASS_FORGERIES: list[Forgery] = [
    _change_weight,
    _change_row,
    lambda d: d.update(mass=str(Fraction(d["mass"]) * 2)),
    lambda d: d["columns"].pop(),
    lambda d: d["columns"].append(d["columns"][0]),
    lambda d: d["columns"][0]["terms"][0].update(sum="7"),
    lambda d: d["columns"][0]["terms"][0].update(factor="1/7"),
    lambda d: d["class"].update(parent_weights=["1", "1/3", "1/7"]),
    lambda d: d["class"].update(rates=[["1/5", "1"]]),
    lambda d: d.update(claim="other"),
    lambda d: d.pop("rows"),
    lambda d: d.update(version=2),
    lambda d: d.update(note="the only member"),
    lambda d: d["rows"][0].update(clean=0),
    lambda d: d["columns"][0]["hidden"][0].update(number=2),
    lambda d: d["columns"][0]["terms"][0].update(unique=True),
    lambda d: d["columns"][0]["terms"][0]["weights"].update(X9={"": "1"}),
    lambda d: d.update(mass=f" {d['mass']}"),
    lambda d: d["columns"][0]["terms"][0].update(sum=f"{d['columns'][0]['terms'][0]['sum']}e0"),
    lambda d: d["columns"][0]["terms"][0].update(factor="1e999999999"),
    lambda d: _scale_weights(d, Fraction(-1)),
    lambda d: _scale_weights(d, Fraction(1, 2**200)),
]


def _scale_weights(document: dict[str, Any], factor: Fraction) -> None:
    """Multiply the weights of one variable, and their sums."""
    for term in (term for column in document["columns"] for term in column["terms"]):
        sets = next(iter(term["weights"].values()))
        sets.update({parents: str(Fraction(weight) * factor) for parents, weight in sets.items()})
        term.update(sum=str(Fraction(term["sum"]) * factor), factor=str(Fraction(term["factor"]) / factor))


@pytest.mark.parametrize("forge", MASS_FORGERIES)
def test_a_forged_mass_is_noticed(forge: Forgery) -> None:
    if "mass" not in _CACHE:
        _CACHE["mass"] = _mass()
    document = copy.deepcopy(_CACHE["mass"])
    forge(document)
    with pytest.raises(CertificateError):
        verify_certificate(document)


_CACHE: dict[str, dict[str, Any]] = {}


def _clairvoyant() -> dict[str, Any]:
    pytest.importorskip("highspy")
    from tests.solvers.replayscm.experiments.test_policies import search_of
    from tests.support.replayscm.extensions import frontier_vectors

    if "clairvoyant" not in _CACHE:
        lines = (x for x in frontier_vectors("episode") if not x["item"]["class"]["hidden"])
        line = next(x for x in lines if x.get("clairvoyant", 0) > 1)
        search = search_of(line)
        _CACHE["clairvoyant"] = clairvoyant_certificate(search, search.solve())
    return copy.deepcopy(_CACHE["clairvoyant"])


def _heavy(document: dict[str, Any]) -> dict[str, Any]:
    return next(row for row in document["rows"] if Fraction(row["weight"]) > 0)


def _plain(document: dict[str, Any]) -> dict[str, Any]:
    return next(row for row in document["rows"] if not row["parts"])


CLAIRVOYANT_FORGERIES: list[Forgery] = [
    lambda d: d["worlds"].pop(),
    lambda d: d.update(bound=d["bound"] + 1),
    lambda d: _heavy(d).update(weight="9"),
    lambda d: _heavy(d).update(weight="-1"),
    lambda d: _heavy(d)["alternatives"][0][0].pop(),
    lambda d: d.update(worlds=[0, 0]),
    lambda d: d.update(proved_by="dual weights", rows=d["rows"][:1]),
    lambda d: d["class"].update(admissible={}),
    lambda d: d["class"].update(max_parents=1),
    lambda d: _heavy(d).update(label="refute member"),
    lambda d: _heavy(d).update(weight=f"{_heavy(d)['weight']}.0"),
    lambda d: _plain(d).update(parts=[["1/2"]]),
    lambda d: d.update(rows=[], worlds=[], bound=0),
    lambda d: d.update(rows=[], bound=0, proved_by="HiGHS", worlds=d["worlds"][:-1]),
    lambda d: d.update(floor=str(int(d["floor"]) + 1)),
    lambda d: d.update(proved_by="HiGHS", worlds=list(range(len(d["candidates"])))),
    lambda d: d.update(proved_by="HiGHS"),
    lambda d: d.update(proved_by="nobody", rows=[], bound=0),
    lambda d: d.update(version=2),
    lambda d: d.update(note="the only member"),
    lambda d: _heavy(d).update(label=_heavy(d)["label"] + "1"),
    lambda d: d["candidates"][1].update({v: bool(bit) for v, bit in d["candidates"][1].items()}),
]


def test_a_clairvoyant_minimum_is_checked_by_replay() -> None:
    assert "prove 2" in verify_certificate(json.loads(json.dumps(_clairvoyant())))


@pytest.mark.parametrize("forge", CLAIRVOYANT_FORGERIES)
def test_a_forged_minimum_is_noticed(forge: Forgery) -> None:
    document = _clairvoyant()
    forge(document)
    with pytest.raises(CertificateError):
        verify_certificate(document)
