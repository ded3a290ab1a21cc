"""Records of ReplaySCM's audits, the ceiling of published items, and certificates of a pool.

The best answer has the most probable held-out behaviour under the generator's prior. SCMs are sampled from the
posterior (baselines.replayscm.posterior). The first half of the samples chooses the behaviour; its share in the second
half is an unbiased estimate of its probability. Like every ceiling, it may use held-out interventions and root values.

The ceilings of audits.replayscm.ceiling are certified, but under priors that no pool is sampled from: uniform over the
consistent SCMs, or by formula size alone.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import sqrt
from pathlib import Path
from random import Random
from typing import Annotated, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import UNSET, Meta, UnsetType

from calibrant.audits.replayscm.certificates.certificate import build_certificate, to_json
from calibrant.audits.replayscm.certificates.counting import MAX_CAP
from calibrant.audits.replayscm.certificates.verify import CertificateFile
from calibrant.audits.replayscm.findings import Findings
from calibrant.baselines.replayscm.posterior.posterior import Member, Posterior
from calibrant.bench.pools.findings_audit import FindingRecord
from calibrant.bench.runs.audits import AuditHead, ReasonRecord, record_order
from calibrant.bench.runs.records import RecordKind, Timing
from calibrant.dsl.atomic_write import write_atomically
from calibrant.dsl.formulas.text import STANDARD
from calibrant.dsl.replayscm.evaluator import compile_tables
from calibrant.dsl.replayscm.item import Problem, TaskKind
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.world import Column, Panel, pack_rows
from calibrant.dsl.text import plural
from calibrant.solvers.outcome import BudgetSpent
from calibrant.solvers.replayscm.space import ModelClass

# --- Best expected HeldoutExact of any answer, if the published generator drew gold -----------------------------------
NUM_DRAWS = 400  # samples that choose the behaviour, and as many again that estimate its share
Behaviour: TypeAlias = tuple[object, ...]
"""The roots, and the values of all variables in the held-out rows."""


class GeneratorCeiling(msgspec.Struct, frozen=True):
    """The ceiling of one instance under the process that published items are drawn from."""

    probability: Annotated[
        float | None, Meta(description="what the best answer found can expect; None where it could not be estimated")
    ]
    standard_error: Annotated[float | None, Meta(description="of that, over `draws` members")]
    draws: Annotated[int, Meta(description="how many members")]
    realised: Annotated[bool | None, Meta(description="whether gold does what that answer does; None without gold")]
    left_out: Annotated[str, Meta(description="why there is none; else empty")]


def generator_ceiling(problem: Problem) -> GeneratorCeiling:
    """Return the ceiling under the published process, or why it is not available; deterministic per problem."""
    try:
        return _estimate(problem)
    except (ValueError, BudgetSpent) as reason:
        return GeneratorCeiling(None, None, 0, None, str(reason) or "too many latent orders or functions to sum over")


def _estimate(problem: Problem) -> GeneratorCeiling:
    task, heldout = problem.task, problem.sealed.heldout
    if not heldout.worlds:
        raise ValueError("there are no held-out worlds")
    if task.kind is TaskKind.ALTERNATIVE or task.grammar != STANDARD:
        raise ValueError("the prior is of SCMs over the standard operators without constants")
    posterior = Posterior(task)
    if not posterior.components:
        raise ValueError("no configuration of the prior explains the evidence")
    rng, replay = Random(f"generator ceiling:{problem.id}"), BehaviourReplay(heldout)
    samples = replay.behaviours([posterior.sample(rng) for _ in range(2 * NUM_DRAWS)])
    best, _ = Counter(samples[:NUM_DRAWS]).most_common(1)[0]
    share = samples[NUM_DRAWS:].count(best) / NUM_DRAWS
    gold = problem.sealed.gold
    realised = None if gold is None else replay.heldout_behaviour(gold) == best
    return GeneratorCeiling(share, sqrt(share * (1 - share) / NUM_DRAWS), NUM_DRAWS, realised, "")


class BehaviourReplay:
    """Replay of SCMs in the rows of a panel: values of targets and roots are given, the others are computed."""

    def __init__(self, panel: Panel) -> None:
        self.panel = panel
        self._rows = pack_rows(panel.worlds, panel.variables)

    def behaviours(self, members: Sequence[Member]) -> list[Behaviour]:
        """Return the behaviour of each member; equal members are replayed once."""
        distinct: dict[Member, int] = {}
        indices = [distinct.setdefault(member, len(distinct)) for member in members]
        programs = [
            [(v, member.mechanisms[v].parents, member.mechanisms[v].bits) for v in member.order()]
            for member in distinct
        ]
        results = compile_tables(programs, len(programs[0]) if programs else 0).replay(self._rows)
        columns = {words.tobytes(): words for words in results}
        by_words = {key: tuple(self._columns(words)) for key, words in columns.items()}
        behaviours = [
            (member.roots, *by_words[words.tobytes()]) for member, words in zip(distinct, results, strict=True)
        ]
        return [behaviours[index] for index in indices]

    def heldout_behaviour(self, gold: Scm) -> Behaviour:
        """Return gold's behaviour, which the held-out worlds record."""
        return gold.roots, *(self.panel.columns[v] for v in self.panel.variables)

    def _columns(self, words: npt.NDArray[np.uint64]) -> Iterator[Column]:
        for i in range(len(self.panel.variables)):
            bits = np.packbits((words >> np.uint64(i) & np.uint64(1)).astype(np.uint8), bitorder="little")
            yield int.from_bytes(bits.tobytes(), "little")


# --- Records of ReplaySCM's audits: one JSON line per (pool, instance, options), appended as instances are done -------
RECORD_VERSION = 4


class AuditRecord(AuditHead, frozen=True, forbid_unknown_fields=True):
    """The audit of one instance of a pool, or why there is none."""

    findings: Annotated[Findings | None, Meta(description="null if it was not")]
    generator: Annotated[
        GeneratorCeiling | None,
        Meta(description="the ceiling under the process that published items are drawn from; None without findings"),
    ]
    error: Annotated[str, Meta(description="why it was not; empty otherwise")]
    program: Annotated[str, Meta(description="version of the program")]
    timing: Annotated[Timing, Meta(description="when, and how long")]
    version: Annotated[int, Meta(description="version of the format")] = RECORD_VERSION
    extended: Annotated[
        tuple[FindingRecord, ...] | UnsetType,
        Meta(description="findings about an item with a stated class: an episode, noise or hidden variables"),
    ] = UNSET
    why: Annotated[ReasonRecord | None, Meta(description="why the item is open; null without results")] = None


AUDIT_RECORDS = RecordKind("audits", "an audit", AuditRecord, RECORD_VERSION, record_order)


LINE_RECORDS = {"audits": (AuditRecord,), "certificates": (CertificateFile,)}


# --- Certificates of a pool: one file per instance, named by its id ---------------------------------------------------
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,119}")


def certificate_name(instance: str) -> str:
    """Return the id if it is a valid file name on every system, else a digest of it; with `.json`."""
    name = instance if _PLAIN_NAME.fullmatch(instance) else f"id_{hashlib.sha256(instance.encode()).hexdigest()[:32]}"
    return f"{name}.json"


def _recountable(model_class: ModelClass) -> ModelClass:
    """Return the class; `ValueError` if its size limit is larger than `calibrant verify` can recount."""
    parents, size = model_class.max_parents, model_class.max_size
    max_size = MAX_CAP.get(parents, 0)
    if size is not None and size > max_size:
        raise ValueError(f"with {parents} parents, `calibrant verify` recounts sizes up to {max_size}, not {size}")
    return model_class


def write_certificates(
    problems: Iterable[Problem], folder: Path, class_of: Callable[[Problem], ModelClass]
) -> Iterator[str]:
    """Write the certificate of each count; yield a line for each instance without one, then the number written."""
    folder.mkdir(parents=True, exist_ok=True)
    num_written = 0
    for problem in problems:
        try:
            text = to_json(build_certificate(problem, _recountable(class_of(problem))))
        except (ValueError, BudgetSpent) as error:
            yield f"no certificate of {problem.id}: {error}"
            continue
        write_atomically(folder / certificate_name(problem.id), f"{text}\n")
        num_written += 1
    yield f"{plural(num_written, 'certificates')} written to {folder}"
