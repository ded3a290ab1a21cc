"""Identity of ReplaySCM items: what their actions can show, and the SCMs that they are about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256

import msgspec

from calibrant.audits.claims import ItemIdentity
from calibrant.dsl.replayscm.episode import candidate_worlds, episode_contexts, num_candidates
from calibrant.dsl.replayscm.evaluator import MAX_LAID_ROWS, lay_out
from calibrant.dsl.replayscm.extensions.extension import NOISE_FREE, Contexts, Extension
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.pools.files import record_from_problem
from calibrant.dsl.replayscm.pools.records import SealedRecord
from calibrant.dsl.replayscm.scm import Scm
from calibrant.solvers.canonical import canonical_key
from calibrant.solvers.replayscm.canonical import scm_structure

MAX_SHOWN_ROWS = 1 << 22  # 40 variables, 4 roots and 3 targets have 1.3 million


def duplicate_key(problem: Problem) -> bytes:
    """Return a digest of the task and, of an episode, of all that its actions can show.

    Without noise these are the observed values under every intervention that an action may ask for, of all contexts
    or chosen ones. Sampled contexts and noise differ from world to world: there the functions of gold, the seed and
    the rates count, as where there are more than `MAX_SHOWN_ROWS` rows, so SCMs that differ only in states that no
    action reaches count as different.
    """
    record = record_from_problem(problem)
    record = msgspec.structs.replace(record, id="", sealed=SealedRecord(), results=[])
    digest = sha256(msgspec.json.encode(record))
    for part in _reading_sources(problem):
        digest.update(part)
    return digest.digest()


def _reading_sources(problem: Problem) -> Iterator[bytes]:
    """Yield what decides the readings of an episode, nothing for other items."""
    extension, sealed = problem.task.extension, problem.sealed
    if extension is None or extension.allowance is None:
        return
    gold, allowance = sealed.gold, extension.allowance
    is_random = extension.noise != NOISE_FREE or allowance.contexts is Contexts.SAMPLED
    if is_random:
        yield repr((sealed.seed, sorted(sealed.rates.items()))).encode()
        yield repr(sealed.spelling and (sorted(sealed.spelling.names.items()), sealed.spelling.roots)).encode()
    if gold is None:
        return
    max_targets = allowance.max_targets if allowance.worlds else 0
    num_worlds = num_candidates(len(extension.variables), max_targets)
    if is_random or num_worlds << len(extension.roots) > MAX_SHOWN_ROWS:
        yield repr((gold.roots, gold.signature)).encode()
        return
    start = episode_contexts(extension, 0, sealed.seed, sealed.spelling)
    yield repr(start).encode()
    yield from _shown_columns(gold, extension, max_targets, start if not allowance.worlds else None)


def _shown_columns(
    gold: Scm, extension: Extension, max_targets: int, contexts: Sequence[int] | None
) -> Iterator[bytes]:
    """Yield the observed columns under each intervention; contexts: that are shown, None for all."""
    num_contexts = 1 << len(extension.roots)
    worlds = candidate_worlds(extension.variables, max_targets)
    block = (1 << num_contexts) - 1 if contexts is None else sum(1 << context for context in set(contexts))
    step = max(1, MAX_LAID_ROWS // num_contexts)
    for first in range(0, len(worlds), step):
        layout = lay_out((*gold.roots, *gold.order), extension.roots, worlds[first : first + step])
        mask = layout.rows // ((1 << num_contexts) - 1) * block
        columns = layout.simulate(gold)
        for variable in extension.variables:
            yield (columns[variable] & mask).to_bytes(-(-layout.num_blocks * num_contexts // 8), "little")


def _models(problem: Problem) -> list[Scm]:
    """Return gold and the SCM that is shown to differ from, which is gold of another item."""
    return [model for model in (problem.sealed.gold, problem.task.reference) if model is not None]


IDENTITY = ItemIdentity(
    "SCMs",
    duplicate_key,
    lambda problem: tuple(canonical_key(scm_structure(model)) for model in _models(problem)),
    lambda problem: canonical_key(scm_structure(_models(problem)[0], with_functions=False)),
)
