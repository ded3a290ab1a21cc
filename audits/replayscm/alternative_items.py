"""Alternative-SCM items from the version space: gold and another member, and the experiment that tells them apart.

The paper mines alternatives from stored answers (section B.2.5): `discovered_pair` takes one of those. Otherwise the
other member is drawn from all SCMs of the class that fit, small ones with more weight; where the class is empty because
gold has more parents, it is gold with one mechanism exchanged. It is used only if it differs from gold semantically and
a single-variable hard intervention separates the two. Either of them is the reference, by a fair draw, as in the
official records.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from calibrant.dsl.formulas.text import render
from calibrant.dsl.replayscm.alternatives import Separation, told_apart
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
SIZE_PENALTY = 2  # a member weighs 2**(-2 * total size): members are then about as large as gold
DRAWS = 32  # members drawn before the nearest edit of gold is taken

SUFFIX = "__ALT_EXP"


@dataclass(frozen=True)
class KnownPair:
    """Two SCMs that fit the training worlds of one problem and do not mean the same.

    reference_role: "gold" or "alternative", whichever the reference is; `counterpart` is the other SCM
    separation: the best experiment of the menu, which separates the two
    witness: root assignment and differing values that show it
    systems: whose answers the alternative was; None where it was drawn from the version space
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
    """Return the Alternative-SCM item of a problem and a seed, or None where `known_pair` finds no pair."""
    pair = known_pair(problem, seed)
    return pair.problem if pair else None


def open_ended_item(problem: Problem) -> Problem:
    """Return the Alternative-SCM item of a problem of which no pair is known: gold is the reference.

    Whether an alternative exists is not claimed; items without a known answer are the paper's open-ended cases.
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
    """Draw a pair of gold and a member that a single-variable intervention separates from it.

    None if no draw can be separated from gold and solvers.replayscm.alternative finds no other SCM either. `ValueError`
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
    """Return the pair of gold and a member; None where it means the same, does not fit or cannot be separated."""
    gold = _gold_of(problem)
    reference, counterpart = (gold, member) if gold_is_reference else (member, gold)
    if reference.equivalent(counterpart) or not replays(member, problem.task.training):
        return None
    evidence = told_apart(reference, counterpart)
    if evidence is None:
        return None
    require_replay(member, problem.task.training.worlds)
    return KnownPair(problem, "gold" if gold_is_reference else "alternative", reference, counterpart, *evidence)


def _members(problem: Problem, gold: Scm, rng: Random) -> Iterator[Scm]:
    """Yield random members of the class, then the nearest separable SCM, if there is one."""
    space = VersionSpace(problem.task, MEMBERS)
    if space.count:
        for _ in range(DRAWS):
            yield from sample_members(space, rng, 1, size_penalty=SIZE_PENALTY)
    nearest = find_alternative(replace(problem.task, kind=TaskKind.ALTERNATIVE, reference=gold))
    if isinstance(nearest, Found):
        yield nearest.value.model


def _texts(model: Scm) -> dict[str, str]:
    return {variable: render(mechanism) for variable, mechanism in model.mechanisms.items()}
