"""Certificates hold, and forged ones do not."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from fractions import Fraction
from random import Random
from typing import Any

import pytest

from calibrant.audits.replayscm.extended.certificates import clairvoyant_certificate, mass_certificate
from calibrant.audits.replayscm.extended.verify import CertificateError, verify_certificate
from calibrant.solvers.replayscm.noise.posterior import Posterior
from tests.support.replayscm.extensions.problems import random_class, random_member, random_worlds

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
]


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
    from tests.solvers.replayscm.experiments.test_clairvoyant import search_of
    from tests.support.replayscm.extensions.vectors import frontier_vectors

    if "clairvoyant" not in _CACHE:
        lines = (x for x in frontier_vectors("episode") if not x["item"]["class"]["hidden"])
        line = next(x for x in lines if x.get("clairvoyant", 0) > 1)
        search = search_of(line)
        _CACHE["clairvoyant"] = clairvoyant_certificate(search, search.solve())
    return copy.deepcopy(_CACHE["clairvoyant"])


def _heavy(document: dict[str, Any]) -> dict[str, Any]:
    return next(row for row in document["rows"] if Fraction(row["weight"]) > 0)


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
]


def test_a_clairvoyant_minimum_is_checked_by_replay() -> None:
    assert "prove 2" in verify_certificate(json.loads(json.dumps(_clairvoyant())))


@pytest.mark.parametrize("forge", CLAIRVOYANT_FORGERIES)
def test_a_forged_minimum_is_noticed(forge: Forgery) -> None:
    document = _clairvoyant()
    forge(document)
    with pytest.raises(CertificateError):
        verify_certificate(document)
