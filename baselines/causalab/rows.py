"""Methods to compare language models with: what a fixed strategy reaches in a laboratory; each is a row of tables.

Each plays one open episode, from the task and its readings alone, and returns the answer to submit. A *setting* is an
intervention on one property, a *base* the intercept of a property or of the frequency, a *member* a mechanism that fits
all readings. The frequency is the last node and the last column of readings.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import numpy as np

from calibrant.baselines.causalab.frequency import decided_equation, least_norm_equation, space_before_settings
from calibrant.dsl.causalab.episode import LabEpisode
from calibrant.dsl.causalab.hypothesis import hypothesis, state_mechanism
from calibrant.dsl.causalab.item import Family, Weights
from calibrant.dsl.causalab.mechanism import Edge
from calibrant.dsl.causalab.run import missed_readings
from calibrant.solvers.causalab.evidence import EXACT, evidence_of, mechanism_of, predict_frequency
from calibrant.solvers.causalab.exact import solve
from calibrant.solvers.causalab.experiments import solve_by_experiments, solve_noisy_by_experiments
from calibrant.solvers.causalab.linear import Answer, far_end
from calibrant.solvers.causalab.quadratic import solve_to_six_decimals
from calibrant.solvers.outcome import Found, Outcome, OutOfBudget


@dataclass(frozen=True, slots=True)
class HandedIn:
    """A hypothesis as JSON, and the frequency to dial; None dials nothing."""

    hypothesis: Mapping[str, Any]
    frequency: float | None


# of the rows here only `random_mechanism` draws
Row: TypeAlias = Callable[[LabEpisode, int], Outcome[HandedIn]]
"""Plays an episode; the number is a seed, which only rows that draw look at."""

NO_EQUATION = "the frequency's equation is only found from the start in linear laboratories with weights 1, 2, 3"


def exact(episode: LabEpisode, seed: int) -> Outcome[HandedIn]:
    """Set every property, and state the mechanism that the reference replays."""
    return _handed_in(solve(episode))


def exact_weights(episode: LabEpisode, seed: int) -> Outcome[HandedIn]:
    """Answer as `exact`; in quadratic laboratories further settings give the frequency's weights to six decimals."""
    # needs settings beyond those of `exact`, and readings without noise: a weight follows from one large value
    quadratic = episode.task.family is Family.QUADRATIC and not episode.task.noise and episode.task.allowance > 0
    return _handed_in(solve_to_six_decimals(episode) if quadratic else solve(episode))


def greedy(episode: LabEpisode, seed: int) -> Outcome[HandedIn]:
    """Choose settings by expected gain until graph and frequency are decided; bases lie in the generator's range."""
    task = episode.task
    noisy = task.noise and task.family is Family.LINEAR and task.weights is Weights.SMALL
    return _handed_in(solve_noisy_by_experiments(episode) if noisy else solve_by_experiments(episode))


def posterior(episode: LabEpisode, seed: int) -> Outcome[HandedIn]:
    """Answer without settings: the edges of more than half of the members, and their most frequent prediction."""
    space, equation = space_before_settings(episode.task), decided_equation(episode.task)
    if space is None or equation is None:
        return OutOfBudget(NO_EQUATION)
    edges = [edge for edge, number in sorted(space.edge_counts.items()) if 2 * number > space.count]
    return Found(HandedIn(_with_edges(equation.hypothesis, edges), equation.predicted))


def abstain(episode: LabEpisode, seed: int) -> Outcome[HandedIn]:
    """Answer without settings: the frequency's equation whose prediction most members share, without edges."""
    equation = decided_equation(episode.task)
    return OutOfBudget(NO_EQUATION) if equation is None else Found(HandedIn(equation.hypothesis, equation.predicted))


def total_effects(episode: LabEpisode, seed: int) -> Outcome[HandedIn]:
    """Set each property once and take whatever moves for its child; the equation is fitted before any setting.

    An indirect descendant becomes a child too: the edges are those of the transitive closure unless effects cancel.
    """
    task = episode.task
    edges: list[Edge] = []
    for name in task.settable:
        if episode.left <= 0:
            break
        before = dict(zip(task.nodes, evidence_of(task, episode.steps).observations[-1].values, strict=True))
        # the end of the scale that is farther away: the largest change; a refused setting changes nothing
        after = episode.act({"set": name, "value": far_end(before[name])}).reading or before
        # EXACT: far below the step of readings, 0.01
        edges += [(name, node) for node in task.nodes if node != name and abs(after[node] - before[node]) > EXACT]
    equation = decided_equation(task) or least_norm_equation(task)
    return Found(HandedIn(_with_edges(equation.hypothesis, edges), equation.predicted))


def least_norm(episode: LabEpisode, seed: int) -> Outcome[HandedIn]:
    """Answer without settings: least-norm regression of the frequency on all properties over the readings shown."""
    equation = least_norm_equation(episode.task)
    return Found(HandedIn(equation.hypothesis, equation.predicted))


NUM_IGNORED = 2  # settings that a hasty answer does not look at


def hasty(episode: LabEpisode, seed: int) -> Outcome[HandedIn]:
    """Make two settings, ignore them, and answer the least-norm equation of what was shown before."""
    _set_first(episode)
    return least_norm(episode, seed)


def hasty_verified(episode: LabEpisode, seed: int) -> Outcome[HandedIn]:
    """Answer as `hasty`, unless its own readings contradict the equation: then set on and refit.

    This is what one returned answer can change (arXiv 2605.26029, section 5.5).
    """
    answer = hasty(episode, seed)
    if not isinstance(answer, Found) or episode.left <= 0:
        return answer
    stated = hypothesis(answer.value.hypothesis)
    return exact(episode, seed) if missed_readings(stated, episode.task, episode.steps) else answer


def _set_first(episode: LabEpisode) -> None:
    for name in episode.task.settable[:NUM_IGNORED]:
        if episode.left <= 0:
            break
        before = dict(zip(episode.task.nodes, evidence_of(episode.task).observations[-1].values, strict=True))
        episode.act({"set": name, "value": far_end(before[name])})


def mean(episode: LabEpisode, seed: int) -> Outcome[HandedIn]:
    """Answer the mean of the frequencies shown, and no hypothesis."""
    return Found(HandedIn({}, float(np.mean(evidence_of(episode.task).table[:, -1]))))


def random_mechanism(episode: LabEpisode, seed: int) -> Outcome[HandedIn]:
    """Draw a weighted DAG with the generator's numbers of edges, weights and bases; answer it and its prediction.

    Other than in the generator (dsl.causalab.generation) there is no limit of parents, and the frequency is last.
    """
    task = episode.task
    # the readings are part of the seed: different items get independent mechanisms under one seed
    rng = random.Random(f"random mechanism {seed} {sorted(task.baseline.items())}")
    nodes = task.nodes
    order = [*rng.sample(range(len(nodes) - 1), len(nodes) - 1), len(nodes) - 1]
    pairs = list(combinations(order, 2))
    chosen = rng.sample(pairs, rng.randint(len(nodes) - 1, min(len(pairs), 2 * len(nodes))))
    # the frequency must have a parent
    if all(child != order[-1] for _, child in chosen):
        chosen.append((order[-2], order[-1]))
    weights: list[dict[int, float]] = [{} for _ in nodes]
    for parent, child in chosen:
        weights[child][parent] = float(rng.randint(1, 3))
    mechanism = mechanism_of(nodes, weights, float(rng.randint(15, 25)))
    return Found(HandedIn(state_mechanism(mechanism), predict_frequency(mechanism, evidence_of(task))))


def prior(episode: LabEpisode, seed: int) -> Outcome[HandedIn]:
    """Answer nothing: the empty hypothesis, and no frequency dialled."""
    return Found(HandedIn({}, None))


ROWS: Final[Mapping[str, Row]] = MappingProxyType(
    {
        "exact": exact,
        "exact-weights": exact_weights,
        "greedy": greedy,
        "posterior": posterior,
        "abstain": abstain,
        "total-effects": total_effects,
        "least-norm": least_norm,
        "hasty": hasty,
        "hasty-verified": hasty_verified,
        "mean": mean,
        "random": random_mechanism,
        "prior": prior,
    }
)


def play(row: Row, episode: LabEpisode, seed: int) -> Outcome[HandedIn]:
    """Play an open episode to its end by a method; without an answer, the empty hypothesis is submitted."""
    outcome = row(episode, seed)
    if isinstance(outcome, Found):
        if outcome.value.frequency is not None:
            episode.act({"reactor": outcome.value.frequency})
        episode.act({"submit": {"hypothesis": dict(outcome.value.hypothesis)}})
    else:
        episode.act({"submit": {"hypothesis": {}}})
    return outcome


def _handed_in(outcome: Outcome[Answer]) -> Outcome[HandedIn]:
    if isinstance(outcome, Found):
        return Found(HandedIn(state_mechanism(outcome.value.mechanism), outcome.value.frequency))
    return outcome


def _with_edges(hypothesis: Mapping[str, Any], edges: list[Edge]) -> dict[str, Any]:
    """Return the hypothesis with further edges; one that is there already is not repeated."""
    present = {(edge["from"], edge["to"]) for edge in hypothesis["edges"]}
    further = [{"from": parent, "to": child} for parent, child in edges if (parent, child) not in present]
    return {**hypothesis, "edges": [*hypothesis["edges"], *further]}
