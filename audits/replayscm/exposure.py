"""Exposure, intervention coverage and held-out balance of an instance (paper, section B.2.3 and Table B.2)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import fsum
from typing import Annotated

from msgspec import Meta

from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.world import Intervention, World


@dataclass(frozen=True, slots=True)
class Exposure:
    """Numbers of training worlds in which one endogenous variable is scored, and in which it is a target."""

    variable: Annotated[str, Meta(description="name of the variable")]
    scored_worlds: Annotated[int, Meta(description="worlds and cells in which it is not a target")]
    scored_cells: Annotated[int, Meta(description="worlds and cells in which it is not a target")]
    intervened_worlds: Annotated[int, Meta(description="those in which it is")]


@dataclass(frozen=True, slots=True)
class InterventionMix:
    """Numbers of training worlds by mode."""

    none: Annotated[int, Meta(description="worlds of that mode")]
    hard_constant: Annotated[int, Meta(description="worlds of that mode")]
    hard_assigned: Annotated[int, Meta(description="worlds of that mode")]
    by_targets: Annotated[dict[int, int], Meta(description="number of targets -> worlds with so many")]


@dataclass(frozen=True, slots=True)
class HeldoutBalance:
    """Target novelty of the held-out worlds: 1 - the largest Jaccard similarity to a training world's target set."""

    smallest: Annotated[float, Meta(description="over the held-out worlds")]
    mean: Annotated[float, Meta(description="over the held-out worlds")]
    largest: Annotated[float, Meta(description="over the held-out worlds")]


def exposure(problem: Problem) -> list[Exposure]:
    """Return one row per endogenous variable of gold, natural order."""
    gold = problem.sealed.gold
    if gold is None:
        raise ValueError("exposure needs to know which variables are endogenous")
    worlds = problem.task.training.worlds
    return [_exposure(variable, worlds) for variable in gold.endogenous]


def _exposure(variable: str, worlds: tuple[World, ...]) -> Exposure:
    free = [world for world in worlds if variable not in world.intervention.targets]
    return Exposure(variable, len(free), sum(world.num_rows for world in free), len(worlds) - len(free))


def intervention_mix(problem: Problem) -> InterventionMix:
    """Return modes and target counts of the training worlds."""
    worlds = problem.task.training.worlds
    modes = [world.intervention.mode for world in worlds]
    targets = [len(world.intervention.targets) for world in worlds]
    return InterventionMix(
        modes.count("none"),
        modes.count("hard_constant"),
        modes.count("hard_assigned"),
        {number: targets.count(number) for number in sorted(set(targets))},
    )


def heldout_balance(problem: Problem) -> HeldoutBalance | None:
    """Return novelty of the held-out targets; None without held-out worlds."""
    training = problem.task.training.worlds
    novelties = [target_novelty(world.intervention, training) for world in problem.sealed.heldout.worlds]
    if not novelties:
        return None
    return HeldoutBalance(min(novelties), fsum(novelties) / len(novelties), max(novelties))


def target_novelty(intervention: Intervention, training: Iterable[World]) -> float:
    """Return 1 minus the largest Jaccard similarity of the targets to those of a training world."""
    similar = (_jaccard(intervention.targets, world.intervention.targets) for world in training)
    return 1 - max(similar, default=0.0)


def _jaccard(first: frozenset[str], second: frozenset[str]) -> float:
    union = first | second
    return len(first & second) / len(union) if union else 1.0
