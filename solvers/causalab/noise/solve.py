"""Linear laboratories with hidden noise: one scalar draw at each setting, along one direction.

A property is set to the value that it has until a reading moves: what moved is the direction, up to its sign. Then each
property gets two values whose steps have a ratio that no two draws imitate, so that exactly one pair of draws makes
both readings agree on the effects of the property.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import numpy as np

from calibrant.dsl.causalab.episode import LabEpisode
from calibrant.dsl.causalab.item import Weights
from calibrant.dsl.causalab.reference import Reading
from calibrant.dsl.errors import CycleError
from calibrant.solvers.budget import BudgetSpent
from calibrant.solvers.causalab.answer import Answer
from calibrant.solvers.causalab.evidence import Evidence, Floats, evidence_of
from calibrant.solvers.causalab.linear import DECIMALS, direct_effects
from calibrant.solvers.causalab.noise.worlds import noisy_dags, replays
from calibrant.solvers.causalab.replay import EXACT, mechanism_of, misfit, predict_frequency
from calibrant.solvers.outcome import Found, Impossible, Outcome, OutOfBudget

STEPS = (97.0, -41.0)  # from the value without noise; ratio away from +-1, 2, 1/2, which two draws could imitate
DRAWS = (-1, 0, 1)
NULL_SETTINGS = 6  # draws of 0 in a row have probability 1/729
IN_WORDS = "linear mechanisms with weights of two decimals and draws -s, 0, s on one set of nodes"


def solve_noisy(episode: LabEpisode) -> Outcome[Answer]:
    """Find the mechanism under noise; needs an episode without settings, and settings that state the value."""
    task = episode.task
    if task.reading is not Reading.VALUE or task.weights is not Weights.SMALL or episode.steps:
        return OutOfBudget("hidden noise is solved from the start, with settings that give the value, weights 1, 2, 3")
    start = evidence_of(task).table[-1]
    direction = _direction(episode, start)
    if direction is None:
        return _without_direction(episode)
    totals = np.zeros((len(task.nodes), len(task.properties)))
    noise_free = start  # what the crystal would read without noise
    for node, name in enumerate(task.properties):
        if name not in task.settable or episode.left < len(STEPS):
            return OutOfBudget(f"{len(episode.steps)} settings made; {name} cannot be set twice more")
        effects = _effects(episode, node, noise_free, direction)
        if isinstance(effects, Impossible):
            return effects
        totals[:, node] = effects
        noise_free = noise_free + effects * STEPS[-1]
    return _certify(evidence_of(task, episode.steps), totals, direction)


def _direction(episode: LabEpisode, start: Floats) -> Floats | None:
    name = episode.task.settable[0]
    for _ in range(NULL_SETTINGS):
        if episode.left <= 0:
            return None
        reading = _set_and_read(episode, name, episode.task.baseline[name])
        if np.abs(reading - start).max() > EXACT:
            return np.asarray(reading - start)
    return None


def _without_direction(episode: LabEpisode) -> Outcome[Answer]:
    """Solve without a known direction of the noise: set each property twice and count the remaining mechanisms."""
    task = episode.task
    # no null setting showed the direction, as in 1 of 729 episodes with 6 of them: listing, certified by replay
    nulls = len(episode.steps)
    for name, step in product(task.settable, STEPS):
        if episode.left > 0:
            _set_and_read(episode, name, task.baseline[name] + step)
    evidence = evidence_of(task, episode.steps)
    try:
        space = noisy_dags(evidence)
        survivors = [member for member in space.mechanisms() if replays(space, member)]
    except BudgetSpent as spent:
        return OutOfBudget(str(spent))
    if len(survivors) != 1:
        return OutOfBudget(
            f"{nulls} settings changed nothing, the noise did not show; {len(survivors)} mechanisms are left"
        )
    return Found(Answer(survivors[0], predict_frequency(survivors[0], evidence), True, space.in_words))


def _set_and_read(episode: LabEpisode, name: str, value: float) -> Floats:
    step = episode.act({"set": name, "value": float(round(value, DECIMALS))})
    return np.array([(step.reading or {})[node] for node in episode.task.nodes])


def _effects(episode: LabEpisode, node: int, quiet: Floats, direction: Floats) -> Floats | Impossible:
    name = episode.task.properties[node]
    changes = [_set_and_read(episode, name, quiet[node] + step) - quiet for step in STEPS]
    columns = [
        [(change - draw * direction) / step for draw in DRAWS] for change, step in zip(changes, STEPS, strict=True)
    ]
    # exactly one pair of draws agrees: see STEPS
    for first, second in product(*columns):
        if np.abs(first - second).max() <= EXACT and abs(first[node] - 1) <= EXACT:
            return np.asarray(np.rint(first * 100) / 100)
    return Impossible(f"{IN_WORDS}: no pair of draws makes both settings of {name} agree")


def _certify(evidence: Evidence, totals: Floats, direction: Floats) -> Outcome[Answer]:
    m = evidence.frequency
    direct = direct_effects(totals)
    weights = [{p: float(w) for p, w in enumerate(row) if w} for row in direct]
    baseline = evidence.table[[observation.noisy for observation in evidence.observations].index(True) - 1]
    base = float(np.round(baseline[m] - baseline[:m] @ direct[m], DECIMALS))
    try:
        mechanism = mechanism_of(evidence.nodes, weights, base)
    except CycleError as error:
        return Impossible(f"{IN_WORDS}: {error}")
    node_shifts = np.round(direction - np.hstack([direct, np.zeros((m + 1, 1))]) @ direction, DECIMALS)
    shifts = [_shift(evidence, node_shifts * draw) for draw in DRAWS]
    # the class has one draw for all affected nodes: shifts of different size contradict it
    if len(set(np.abs(node_shifts[node_shifts != 0]))) > 1:
        return Impossible(f"{IN_WORDS}: nodes are shifted by different amounts")
    if (distance := misfit(mechanism, evidence, reading=evidence.task.reading, shifts=shifts)) > EXACT:
        return Impossible(f"{IN_WORDS}: the only one that explains the changes is {distance:g} away from a reading")
    return Found(Answer(mechanism, predict_frequency(mechanism, evidence), True, IN_WORDS))


def _shift(evidence: Evidence, node_shifts: Floats) -> Mapping[str, float]:
    return {node: float(shift) for node, shift in zip(evidence.nodes, node_shifts, strict=True) if shift}
