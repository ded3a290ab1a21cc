"""Findings about one instance, ready for JSON; its identity; separation of two SCMs by hard interventions.

Single-variable interventions are measured by dsl.replayscm.alternatives, as the Alternative-SCM task does.
For more targets all assignments are simulated at once: with per-row values (hard_assigned) a world can show every one
of them, so a set of targets separates two SCMs under hard_assigned iff it does so under some constants. If no set of
at most n targets separates them, no evidence from such interventions ever will.

Counts are texts, because they are larger than the integers of many readers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from hashlib import sha256
from itertools import combinations, product
from operator import or_
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from calibrant.audits.claims import ItemIdentity
from calibrant.audits.replayscm.bounded import Bounded, Exposure, HeldoutBalance, InterventionMix
from calibrant.dsl.replayscm.alternatives import PairwiseExperiments, Separation, witness_for
from calibrant.dsl.replayscm.disclosure import natural
from calibrant.dsl.replayscm.episode import candidate_worlds, episode_contexts, num_candidates
from calibrant.dsl.replayscm.evaluator import MAX_LAID_ROWS, Layout, lay_out
from calibrant.dsl.replayscm.extensions.extension import NOISE_FREE, Contexts, Extension
from calibrant.dsl.replayscm.generation.strata import MAX_TARGETS
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.pools.files import record_from_problem
from calibrant.dsl.replayscm.pools.records import SealedRecord
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.world import Column
from calibrant.solvers.canonical import canonical_key
from calibrant.solvers.replayscm.canonical import scm_structure

# --- Separation of two SCMs by every hard intervention on up to three targets, over every assignment of the roots -----


@dataclass(frozen=True, slots=True)
class TargetSeparation:
    """Separation of two SCMs by hard interventions on one set of targets."""

    targets: Annotated[tuple[str, ...], Meta(description="names of the targets; empty for no intervention")]
    disagreement_rate: Annotated[
        float,
        Meta(
            description="per-row values, every one equally often: share of (root assignment, values) with a difference"
        ),
    ]
    constants: Annotated[Mapping[str, int], Meta(description="constant values of the targets that separate best")]
    constants_rate: Annotated[
        float, Meta(description="share of root assignments with a difference under these constants")
    ]
    witness: Annotated[
        Mapping[str, Any] | None,
        Meta(description="an Alternative-SCM witness with the targets' values beside it; None where nothing differs"),
    ]

    @property
    def separates(self) -> bool:
        return self.disagreement_rate > 0


class PairAudit:
    """Two SCMs over the same roots; `ValueError` from dsl.replayscm.alternatives otherwise."""

    def __init__(self, first: Scm, second: Scm, *, max_targets: int = MAX_TARGETS) -> None:
        self.pair = PairwiseExperiments(first, second)
        self.models = first, second
        self.max_targets = max_targets
        self.roots = first.roots

    @cached_property
    def single(self) -> tuple[Separation, ...]:
        """The single-variable interventions that separate: by falling disagreement, then cell rate, then menu order."""
        separating = [separation for separation in self.pair.separations() if separation.separates]
        return tuple(sorted(separating, key=lambda s: (-s.disagreement_rate, -s.cell_rate)))  # sorting is stable

    @property
    def witness(self) -> dict[str, Any] | None:
        """A witness for the best single-variable intervention, as an Alternative-SCM answer needs it."""
        return witness_for(self.pair, self.single[0].experiment) if self.single else None

    @cached_property
    def any_targets(self) -> tuple[TargetSeparation, ...]:
        """The target sets that separate: fewest targets first, then highest disagreement rate, then by name."""
        names = natural(self.models[0].variables)
        menu = [targets for num_targets in range(self.max_targets + 1) for targets in combinations(names, num_targets)]
        measured = self.separations(menu)
        separating = [separation for separation in measured if separation.separates]
        return tuple(sorted(separating, key=lambda s: (len(s.targets), -s.disagreement_rate)))

    @property
    def best(self) -> TargetSeparation | None:
        """The highest disagreement rate, then fewest targets; None if no set of at most `max_targets` separates."""
        return max(self.any_targets, key=lambda s: s.disagreement_rate, default=None)

    def separations(self, menu: Sequence[tuple[str, ...]]) -> Iterator[TargetSeparation]:
        """Yield how far interventions on each set of targets separate the two SCMs.

        All assignments of the roots are simulated under each value of the targets, many at once. A target that is a
        root keeps its value in all of them, which leaves the shares as they are.
        """
        num_sets = max(1, MAX_LAID_ROWS >> len(self.roots) + self.max_targets)
        for start in range(0, len(menu), num_sets):
            yield from self._simulated(menu[start : start + num_sets])

    def _simulated(self, menu: Sequence[tuple[str, ...]]) -> Iterator[TargetSeparation]:
        constants = [
            [dict(zip(targets, reversed(bits), strict=True)) for bits in product((0, 1), repeat=len(targets))]
            for targets in menu
        ]
        layout = lay_out(self.models[0].variables, self.roots, [values for options in constants for values in options])
        first, second = map(layout.simulate, self.models)
        anywhere = reduce(or_, (first[v] ^ second[v] for v in self.models[0].endogenous), 0)
        counts, begin = layout.counts(anywhere), 0
        for targets, options in zip(menu, constants, strict=True):
            shares = counts[begin : begin + len(options)]
            best = shares.index(max(shares))
            separating = next((index for index, share in enumerate(shares) if share), None)
            witness = None
            if separating is not None:
                witness = self._witness(options[separating], layout, begin + separating, anywhere, (first, second))
            yield TargetSeparation(
                targets,
                sum(shares) / (layout.block_rows * len(options)),
                options[best],
                max(shares) / layout.block_rows,
                witness,
            )
            begin += len(options)

    def _witness(
        self,
        targets: Mapping[str, int],
        layout: Layout,
        block: int,
        anywhere: Column,
        columns: tuple[Mapping[str, Column], Mapping[str, Column]],
    ) -> dict[str, Any]:
        """Return the first differing row of a block as a witness."""
        rows = layout.block(anywhere, block)
        row = (rows & -rows).bit_length() - 1
        assignment = {root: row >> i & 1 for i, root in enumerate(self.roots)}
        first, second = columns
        return {
            "assignments": dict(targets),
            "rootAssignment": assignment | {root: targets[root] for root in self.roots if root in targets},
            "differences": list(_claims(self.models[0].endogenous, block * layout.block_rows + row, first, second)),
        }


def _claims(
    endogenous: tuple[str, ...], row: int, first: Mapping[str, Column], second: Mapping[str, Column]
) -> Iterator[dict[str, Any]]:
    for variable in endogenous:
        reference, alternative = first[variable] >> row & 1, second[variable] >> row & 1
        if reference != alternative:
            yield {"variable": variable, "reference": reference, "alternative": alternative}


# --- Findings of an audit about one instance, ready for JSON ----------------------------------------------------------


class ClassCount(msgspec.Struct, frozen=True):
    """Number of SCMs of one class that fit the evidence."""

    max_parents: Annotated[int, Meta(description="most functional parents of a mechanism of the class")]
    in_words: Annotated[str, Meta(description="the class of SCMs, in words")]
    members: Annotated[str, Meta(description="SCMs of the class that fit the training worlds, in decimal")]
    heldout_exact: Annotated[
        str | None, Meta(description="how many of them replay every held-out world; None without held-out worlds")
    ]


class Spectrum(msgspec.Struct, frozen=True):
    """Members by total formula size, in a class with a size cap"""  # noqa: D400, D415  # in published JSON schemas

    in_words: Annotated[str, Meta(description="the class of SCMs, in words")]
    by_size: Annotated[dict[int, str], Meta(description="size -> members, ascending.")]


class Survivors(msgspec.Struct, frozen=True):
    """Two members that differ most among those looked at, and the experiment that tells them apart."""

    in_words: Annotated[str, Meta(description="the class of SCMs, in words")]
    looked_at: Annotated[int, Meta(description="members compared with each other")]
    roots: Annotated[list[str], Meta(description="names of the variables without a mechanism")]
    one: Annotated[dict[str, str], Meta(description="mechanisms of the first as text")]
    other: Annotated[dict[str, str], Meta(description="mechanisms of the second as text; its roots are the same")]
    means_gold: Annotated[str, Meta(description='which of them means the same as gold: "one", "other" or ""')]
    disagreement_rate: Annotated[
        float, Meta(description="share of root assignments in which the experiment shows a difference")
    ]
    cell_rate: Annotated[float, Meta(description="share of cells in which the experiment shows a difference")]
    experiment: Annotated[
        dict[str, Any] | None, Meta(description="the best single-variable intervention, None if none separates the two")
    ]
    witness: Annotated[
        dict[str, Any] | None, Meta(description="root assignment, and the values of both at the variables that differ")
    ]
    targets: Annotated[TargetSeparation | None, Meta(description="the best hard intervention on up to three targets")]
    separating_sets: Annotated[
        dict[int, int], Meta(description="number of targets -> number of target sets that separate the two")
    ]


class CappedCount(msgspec.Struct, frozen=True):
    """Number of SCMs that fit the evidence in a class that also bounds each mechanism's formula size."""

    max_parents: Annotated[int, Meta(description="most functional parents of a mechanism of the class")]
    max_size: Annotated[int, Meta(description="largest formula of a mechanism of the class")]
    members: Annotated[str, Meta(description="SCMs of the class that fit the training worlds, in decimal")]


class Coverage(msgspec.Struct, frozen=True):
    """Local predecessor patterns that scored training rows show (audits.replayscm.bounded)."""

    seen: Annotated[int, Meta(description="number of patterns shown, over all variables")]
    total: Annotated[int, Meta(description="number of patterns, over all variables")]
    by_variable: Annotated[dict[str, list[int]], Meta(description="variable -> [shown, all]")]

    @property
    def share(self) -> float:
        return self.seen / self.total if self.total else 1.0


class Draw(msgspec.Struct, frozen=True):
    """The exact probability that a drawn member is held-out exact."""

    in_words: Annotated[str, Meta(description="the class of SCMs, in words")]
    size_penalty: Annotated[
        int | None, Meta(description="members weigh 2**(-size_penalty * total formula size); null: all the same")
    ]
    probability: Annotated[float | None, Meta(description="None for an empty class")]


class Ceiling(msgspec.Struct, frozen=True):
    """The best expected HeldoutExact of any answer, if the truth is drawn from the class (audits.replayscm.ceiling)."""

    in_words: Annotated[str, Meta(description="the class of SCMs, in words")]
    size_penalty: Annotated[
        int | None, Meta(description="members weigh 2**(-size_penalty * total formula size); null: all the same")
    ]
    lower: Annotated[float, Meta(description="certified lower bound")]
    upper: Annotated[float, Meta(description="certified upper bound")]
    exact: Annotated[bool, Meta(description="whether the bounds are equal")]
    counts: Annotated[int, Meta(description="number of exact counts made")]
    realised: Annotated[bool | None, Meta(description="whether the best answer is held-out exact; None without gold")]


class Split(msgspec.Struct, frozen=True):
    """The world that removes the largest share of the members, of the candidates (audits.replayscm.ambiguity).

    It is the one that is expected to, over truths drawn from the members; where roots are hidden, gold is the truth.
    """

    in_words: Annotated[str, Meta(description="the class of SCMs, in words")]
    candidates: Annotated[int, Meta(description="worlds that were compared")]
    mode: Annotated[str, Meta(description="mode of the intervention")]
    targets: Annotated[list[str], Meta(description="targets of the intervention")]
    columns: Annotated[list[str], Meta(description="names of the roots and targets")]
    rows: Annotated[list[str], Meta(description="the distinct rows of these columns in the world")]
    removed: Annotated[
        list[float] | None, Meta(description="certified bounds of the expected share; None if roots are hidden")
    ]
    estimate: Annotated[float | None, Meta(description="estimate of the expected share; None if roots are hidden")]
    standard_error: Annotated[
        float | None, Meta(description="standard error of the estimate; None if roots are hidden")
    ]
    removed_from_gold: Annotated[
        float | None, Meta(description="the exact share if gold is the truth; None without gold")
    ]


class Findings(msgspec.Struct, frozen=True):
    """The audit of one instance."""

    num_variables: Annotated[int, Meta(description="number of variables")]
    num_roots: Annotated[int, Meta(description="number of roots")]
    num_worlds: Annotated[int, Meta(description="number of training worlds")]
    num_rows: Annotated[int, Meta(description="number of rows of the training worlds")]
    num_heldout: Annotated[int, Meta(description="number of held-out worlds")]
    headline: Annotated[int, Meta(description="parent limit of the class that the verdict is about")]
    classes: Annotated[list[ClassCount], Meta(description="counts of the classes, by ascending parent limit")]
    capped: Annotated[list[CappedCount], Meta(description="classes with a bound of formula size, largest first")]
    spectrum: Annotated[
        Spectrum | None, Meta(description="members by size; None where the class is empty or cannot be listed by size")
    ]
    draws: Annotated[
        list[Draw],
        Meta(description="over a class with gold as a member: uniform, then by size; [] without such a class"),
    ]
    ceilings: Annotated[
        list[Ceiling],
        Meta(description="over a class with gold as a member: uniform, then by size; [] without such a class"),
    ]
    bounded: Annotated[
        Bounded | None,
        Meta(description="the paper's searches with budgets and flags, each with the exact number; None without gold"),
    ]
    exposure: Annotated[
        list[Exposure] | None,
        Meta(description="training worlds in which each variable is scored or a target; None without gold"),
    ]
    coverage: Annotated[
        Coverage | None,
        Meta(description="local patterns that training rows show; None without gold"),
    ]
    mix: Annotated[
        InterventionMix,
        Meta(description="training worlds by mode and number of targets"),
    ]
    balance: Annotated[
        HeldoutBalance | None,
        Meta(description="novelty of the held-out targets; None without held-out worlds"),
    ]
    survivors: Annotated[
        Survivors | None, Meta(description="two members that differ most; None for fewer than two members")
    ]
    split: Annotated[
        Split | None, Meta(description="the world that splits the members best; None for fewer than two members")
    ]
    left_out: Annotated[dict[str, str], Meta(description="part of the audit -> why it is missing")]

    def __repr__(self) -> str:
        counts = ", ".join(f"{entry.members} at k <= {entry.max_parents}" for entry in self.classes)
        return f"<Findings: members {counts}>"[:120]

    def members(self, max_parents: int) -> int:
        """Return the count of a class that was counted."""
        return int(self.class_count(max_parents).members)

    def class_count(self, max_parents: int) -> ClassCount:
        return next(entry for entry in self.classes if entry.max_parents == max_parents)


# --- Identity of ReplaySCM items: what their actions can show, and the SCMs that they are about -----------------------

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
        yield repr(sealed.renaming and (sorted(sealed.renaming.names.items()), sealed.renaming.roots)).encode()
    if gold is None:
        return
    max_targets = allowance.max_targets if allowance.worlds else 0
    num_worlds = num_candidates(len(extension.variables), max_targets)
    if is_random or num_worlds << len(extension.roots) > MAX_SHOWN_ROWS:
        yield repr((gold.roots, gold.signature)).encode()
        return
    start = episode_contexts(extension, 0, sealed.seed, sealed.renaming)
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
