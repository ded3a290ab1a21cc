"""Blickets: an episode of each exact learner against the number of objects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from random import Random

from calibrant.bench.blickets.agents import agent
from calibrant.bench.lab.limits.sweep import Ask, Curve, Sweep
from calibrant.dsl.blickets.episode import BlicketEpisode
from calibrant.dsl.blickets.generation import SUITES, sample_items
from calibrant.dsl.errors import CalibrantError

# learner -> suite that it plays, numbers of objects
LEARNERS: dict[str, tuple[str, Sequence[int]]] = {
    "static": ("conjunctive", (3, 4, 5, 6, 7, 8)),
    "order-aware": ("order", (3, 4, 5, 6, 7)),
    "noise-aware": ("stochastic", (3, 4, 5, 6, 7, 8)),
    "switch-aware": ("easy-3", (3, 4, 5, 6, 7, 8)),
    "universal": ("easy-3", (3, 4, 5, 6, 7)),
}


def sweeps() -> tuple[Sweep, ...]:
    curves = [Curve(name, xs, partial(_episode, name, suite)) for name, (suite, xs) in LEARNERS.items()]
    return (Sweep("blickets", "an episode of an exact learner", "objects", curves),)


def _episode(learner: str, suite: str, num_objects: int, seed: int) -> Ask:
    item = next(islice(sample_items(replace(SUITES[suite], n=num_objects), seed), 1))

    def ask() -> str | None:
        try:
            agent(learner).play(BlicketEpisode(item), Random(seed))
        except (CalibrantError, ValueError) as error:
            return str(error)
        return None

    return ask
