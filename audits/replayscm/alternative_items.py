"""Alternative-SCM items from the version space: gold and another member, and the experiment that tells them apart.

The paper mines alternatives from stored answers (section B.2.5): `discovered_pair` takes one of those. Otherwise the
other member is sampled from all consistent SCMs of the class, small ones with more weight. If the class has none, as
gold has more parents, it is gold with one mechanism exchanged. A pair is used only if it differs semantically and a
single-variable hard intervention separates it. A fair draw decides which SCM is the reference, as in the official
records.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from calibrant.dsl.formulas.text import render
from calibrant.dsl.replayscm.alternatives import Separation, find_separation
from calibrant.dsl.replayscm.evaluator import replays
from calibrant.dsl.replayscm.item import Problem, TaskKind
from calibrant.dsl.replayscm.scm import Scm
from calibrant.solvers.formulas.synthesis import MAX_SIZE_OF_FOUR
from calibrant.solvers.outcome import Found
from calibrant.solvers.replayscm.alternative import find_alternative
from calibrant.solvers.replayscm.certified import require_replay
from calibrant.solvers.replayscm.members import sample_members
from calibrant.solvers.replayscm.space import ModelClass, VersionSpace

MEMBERS = ModelClass(4, MAX_SIZE_OF_FOUR)
SIZE_PENALTY = 2  # a member of total size s has the weight 2**(-2 * s): members are then about as large as gold
NUM_DRAWS = 32  # members sampled before the nearest edit of gold is taken

SUFFIX = "__ALT_EXP"


@dataclass(frozen=True)
class KnownPair:
    """Two SCMs that fit the training worlds of one problem and are not equivalent.

    reference_role: "gold" or "alternative", whichever the reference is; `counterpart` is the other SCM
    separation: the best experiment of the menu, which separates the two
    witness: a root assignment on which the two differ under the experiment, and the differing values
    systems: names of the systems that returned the alternative; None if it was sampled from the version space
    """

    source: Problem
    reference_role: str
    reference: Scm
    counterpart: Scm
    separation: Separation
    witness: Mapping[str, Any]
    systems: tuple[str, ...] | None = None

    @property
    def answer(self) -> dict[str, Any]:
        """The known answer, as a submission: the other SCM, the experiment, the witness."""
        return {
            "alternative": {"mechanisms": _texts(self.counterpart)},
            "experiment": self.separation.experiment.to_dict(),
            "witness": dict(self.witness),
        }

    @property
    def problem(self) -> Problem:
        """The item: the source's evidence and disclosure with the reference supplied; the pair is in its labels."""
        task = replace(self.source.task, kind=TaskKind.ALTERNATIVE, reference=self.reference)
        labels = {
            **self.source.sealed.labels,
            "reference_role": self.reference_role,
            "known_answer": json.dumps(self.answer),
            "best_disagreement_rate": str(self.separation.disagreement_rate),
        }
        if self.systems is not None:
            labels["alternative_sources"] = json.dumps(self.systems)
        return replace(
            self.source, id=self.source.id + SUFFIX, task=task, sealed=replace(self.source.sealed, labels=labels)
        )


def alternative_item(problem: Problem, seed: int) -> Problem | None:
    """Return the Alternative-SCM item of a problem and a seed, or None if `known_pair` finds no pair."""
    pair = known_pair(problem, seed)
    return pair.problem if pair else None


def open_ended_item(problem: Problem) -> Problem:
    """Return the Alternative-SCM item of a problem without a known pair: gold is the reference.

    An alternative may or may not exist; these are the paper's open-ended cases.
    """
    gold = _gold_of(problem)
    task = replace(problem.task, kind=TaskKind.ALTERNATIVE, reference=gold)
    labels = {**problem.sealed.labels, "reference_role": "gold"}
    return replace(problem, id=problem.id + SUFFIX, task=task, sealed=replace(problem.sealed, labels=labels))


def _gold_of(problem: Problem) -> Scm:
    """Return gold; `ValueError` for a problem without it, with hidden roots or with a reference."""
    gold = problem.sealed.gold
    if gold is None or problem.task.kind is not TaskKind.SCM or problem.task.disclosure.roots is None:
        raise ValueError(f"problem '{problem.id}' has no gold SCM, hides its roots or has a reference")
    return gold


def known_pair(problem: Problem, seed: int) -> KnownPair | None:
    """Sample a pair of gold and a member that a single-variable intervention separates from it.

    None if no sampled member is separable and `solvers.replayscm.alternative` finds no other SCM either. `ValueError`
    for a problem that has no gold SCM, hides its roots or already has a reference.
    """
    gold = _gold_of(problem)
    rng = Random(f"alternative:{problem.id}:{seed}")
    gold_is_reference = rng.random() < 0.5
    pairs = (_pair(problem, member, gold_is_reference) for member in _members(problem, gold, rng))
    return next((pair for pair in pairs if pair is not None), None)


def discovered_pair(problem: Problem, seed: int, discovered: Sequence[tuple[Scm, tuple[str, ...]]]) -> KnownPair | None:
    """Return a pair of gold and the first discovered SCM that a single-variable intervention separates from it.

    discovered: SCMs that fit the training worlds, each with the systems whose answer it was
    """
    _gold_of(problem)
    gold_is_reference = Random(f"alternative:{problem.id}:{seed}").random() < 0.5
    for model, systems in discovered:
        pair = _pair(problem, model, gold_is_reference)
        if pair is not None:
            return replace(pair, systems=systems)
    return None


def _pair(problem: Problem, member: Scm, gold_is_reference: bool) -> KnownPair | None:
    """Return the pair of gold and a member; None if the member is equivalent, does not fit or is not separable."""
    gold = _gold_of(problem)
    reference, counterpart = (gold, member) if gold_is_reference else (member, gold)
    if reference.equivalent(counterpart) or not replays(member, problem.task.training):
        return None
    evidence = find_separation(reference, counterpart)
    if evidence is None:
        return None
    require_replay(member, problem.task.training.worlds)
    return KnownPair(problem, "gold" if gold_is_reference else "alternative", reference, counterpart, *evidence)


def _members(problem: Problem, gold: Scm, rng: Random) -> Iterator[Scm]:
    """Yield random members of the class, then the nearest separable SCM, if there is one."""
    space = VersionSpace(problem.task, MEMBERS)
    if space.count:
        for _ in range(NUM_DRAWS):
            yield from sample_members(space, rng, 1, size_penalty=SIZE_PENALTY)
    nearest = find_alternative(replace(problem.task, kind=TaskKind.ALTERNATIVE, reference=gold))
    if isinstance(nearest, Found):
        yield nearest.value.model


def _texts(model: Scm) -> dict[str, str]:
    return {variable: render(mechanism) for variable, mechanism in model.mechanisms.items()}
