"""Rows that tables of language models are calibrated against: what a fixed strategy gets from a laboratory.

Each plays one open episode, from the task and its readings alone, and says what it would hand in.
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
from calibrant.dsl.causalab.hypothesis import state_mechanism
from calibrant.dsl.causalab.item import Family, Weights
from calibrant.dsl.causalab.mechanism import Edge
from calibrant.solvers.causalab.answer import Answer
from calibrant.solvers.causalab.evidence import evidence_of
from calibrant.solvers.causalab.exact import solve
from calibrant.solvers.causalab.experimenter import solve_by_experiments
from calibrant.solvers.causalab.linear import far_end
from calibrant.solvers.causalab.noise.experimenter import solve_noisy_by_experiments
from calibrant.solvers.causalab.quadratic.weights import solve_to_six_decimals
from calibrant.solvers.causalab.replay import EXACT, mechanism_of, predict_frequency
from calibrant.solvers.outcome import Found, Outcome, OutOfBudget


@dataclass(frozen=True, slots=True)
class HandedIn:
    """A hypothesis as JSON, and the frequency to dial; None dials nothing."""

    hypothesis: Mapping[str, Any]
    frequency: float | None


Row: TypeAlias = Callable[[LabEpisode, int], Outcome[HandedIn]]
"""Plays an episode; the number is a seed, which only rows that draw look at."""

NO_EQUATION = "the frequency's equation is only found from the start in linear laboratories with weights 1, 2, 3"


def exact(episode: LabEpisode, seed: int) -> Outcome[HandedIn]:
    """Every property is set, and the mechanism that the reference replays is stated."""
    return _handed_in(solve(episode))


def exact_weights(episode: LabEpisode, seed: int) -> Outcome[HandedIn]:
    """Answer as `exact`; in quadratic laboratories further settings give the frequency's weights to six decimals."""
    quadratic = episode.task.family is Family.QUADRATIC and not episode.task.noise and episode.task.allowance > 0
    return _handed_in(solve_to_six_decimals(episode) if quadratic else solve(episode))


def greedy(episode: LabEpisode, seed: int) -> Outcome[HandedIn]:
    """Choose settings by expected gain until graph and frequency are decided.

    Bases are taken as the benchmark draws them.
    """
    task = episode.task
    noisy = task.noise and task.family is Family.LINEAR and task.weights is Weights.SMALL
    return _handed_in(solve_noisy_by_experiments(episode) if noisy else solve_by_experiments(episode))


def posterior(episode: LabEpisode, seed: int) -> Outcome[HandedIn]:
    """No settings: the edges of more than half of the members, and the most frequent prediction."""
    space, equation = space_before_settings(episode.task), decided_equation(episode.task)
    if space is None or equation is None:
        return OutOfBudget(NO_EQUATION)
    edges = [edge for edge, number in sorted(space.edge_counts.items()) if 2 * number > space.count]
    return Found(HandedIn(_with_edges(equation.hypothesis, edges), equation.predicted))


def abstain(episode: LabEpisode, seed: int) -> Outcome[HandedIn]:
    """No settings: the frequency's equation as the records decide it, and no edge between properties."""
    equation = decided_equation(episode.task)
    return OutOfBudget(NO_EQUATION) if equation is None else Found(HandedIn(equation.hypothesis, equation.predicted))


def total_effects(episode: LabEpisode, seed: int) -> Outcome[HandedIn]:
    """Each property is set once, and whatever moved is taken for a child; the equation is that of the records."""
    task = episode.task
    edges: list[Edge] = []
    for name in task.settable:
        if episode.left <= 0:
            break
        before = dict(zip(task.nodes, evidence_of(task, episode.steps).observations[-1].values, strict=True))
        after = episode.act({"set": name, "value": far_end(before[name])}).reading or before
        edges += [(name, node) for node in task.nodes if node != name and abs(after[node] - before[node]) > EXACT]
    equation = decided_equation(task) or least_norm_equation(task)
    return Found(HandedIn(_with_edges(equation.hypothesis, edges), equation.predicted))


def least_norm(episode: LabEpisode, seed: int) -> Outcome[HandedIn]:
    """No settings: least-norm regression of the frequency on all properties over what is shown."""
    equation = least_norm_equation(episode.task)
    return Found(HandedIn(equation.hypothesis, equation.predicted))


def mean(episode: LabEpisode, seed: int) -> Outcome[HandedIn]:
    """Return the mean of the frequencies that were shown, and no hypothesis."""
    return Found(HandedIn({}, float(np.mean(evidence_of(episode.task).table[:, -1]))))


def random_mechanism(episode: LabEpisode, seed: int) -> Outcome[HandedIn]:
    """Return a random weighted DAG as the generator draws them, and what it predicts."""
    task = episode.task
    rng = random.Random(f"random mechanism {seed} {sorted(task.baseline.items())}")
    nodes = task.nodes
    order = [*rng.sample(range(len(nodes) - 1), len(nodes) - 1), len(nodes) - 1]
    pairs = list(combinations(order, 2))
    chosen = rng.sample(pairs, rng.randint(len(nodes) - 1, min(len(pairs), 2 * len(nodes))))
    if all(child != order[-1] for _, child in chosen):
        chosen.append((order[-2], order[-1]))
    weights: list[dict[int, float]] = [{} for _ in nodes]
    for parent, child in chosen:
        weights[child][parent] = float(rng.randint(1, 3))
    mechanism = mechanism_of(nodes, weights, float(rng.randint(15, 25)))
    return Found(HandedIn(state_mechanism(mechanism), predict_frequency(mechanism, evidence_of(task))))


def prior(episode: LabEpisode, seed: int) -> Outcome[HandedIn]:
    """Nothing: the empty hypothesis, and nothing dialled."""
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
        "mean": mean,
        "random": random_mechanism,
        "prior": prior,
    }
)


def play(row: Row, episode: LabEpisode, seed: int) -> Outcome[HandedIn]:
    """Let a row play an open episode to its end; where it has no answer, the empty hypothesis is handed in."""
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
