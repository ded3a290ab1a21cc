"""Identity of ReplaySCM items: what they show whatever is done, and the SCMs that they are about."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256

import msgspec

from calibrant.audits.soundness import ItemIdentity
from calibrant.dsl.replayscm.extensions.extension import NOISE_FREE, Contexts
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.pools.files import record_from_problem
from calibrant.dsl.replayscm.pools.records import SealedRecord
from calibrant.dsl.replayscm.scm import Scm
from calibrant.solvers.canonical import canonical_key
from calibrant.solvers.replayscm.canonical import scm_structure


def duplicate_key(problem: Problem) -> bytes:
    """Return a digest of the task and, of an episode, of what decides its readings.

    These are the functions of gold, and the seed and rates where contexts are sampled or cells flipped. SCMs that
    differ only in states that no action reaches count as different.
    """
    record = record_from_problem(problem)
    record = msgspec.structs.replace(record, id="", sealed=SealedRecord(), results=[])
    return sha256(msgspec.json.encode(record) + repr([*_reading_sources(problem)]).encode()).digest()


def _reading_sources(problem: Problem) -> Iterator[object]:
    extension, sealed = problem.task.extension, problem.sealed
    if extension is None or extension.allowance is None:
        return
    yield None if sealed.gold is None else (sealed.gold.roots, sealed.gold.signature)
    if extension.noise != NOISE_FREE or extension.allowance.contexts is Contexts.SAMPLED:
        yield sealed.seed, sorted(sealed.rates.items())
        yield None if sealed.spelling is None else (sorted(sealed.spelling.names.items()), sealed.spelling.roots)


def _models(problem: Problem) -> list[Scm]:
    """Return gold and the SCM that is shown to differ from, which is gold of another item."""
    return [model for model in (problem.sealed.gold, problem.task.reference) if model is not None]


IDENTITY = ItemIdentity(
    "SCMs",
    duplicate_key,
    lambda problem: tuple(canonical_key(scm_structure(model)) for model in _models(problem)),
    lambda problem: canonical_key(scm_structure(_models(problem)[0], with_functions=False)),
)
