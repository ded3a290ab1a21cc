"""Methods with a fixed strategy, for comparison with language models in a laboratory; each is a row of tables.

Each plays one open episode, from the task and its readings alone, and returns the answer to submit. A *setting* is an
intervention on one property, a *base* the intercept of a property or of the frequency, a *member* a mechanism that fits
all readings. The frequency is the last node and the last column of readings.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from math import fsum, isnan
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from calibrant.dsl.causalab.episode import LabEpisode, LabStep, RunScore, missed_readings, run_score
from calibrant.dsl.causalab.item import Family, LabItem, Task, Weights
from calibrant.dsl.causalab.mechanism import FREQUENCY, Edge, hypothesis, state_mechanism
from calibrant.solvers.causalab.evidence import (
    EXACT,
    Answer,
    Evidence,
    evidence_of,
    far_end,
    mechanism_of,
    predict_frequency,
)
from calibrant.solvers.causalab.exact import solve
from calibrant.solvers.causalab.experiments import solve_by_experiments, solve_noisy_by_experiments
from calibrant.solvers.causalab.quadratic import exact_reading, exact_readings, least_norm_fit, solve_to_six_decimals
from calibrant.solvers.causalab.space import FREQUENCY_BASE, WeightedDags, frequency_equation, likely_dags
from calibrant.solvers.outcome import BudgetSpent, Found, Outcome, OutOfBudget

# --- The frequency's equation from the values shown before any setting, which are free of noise -----------------------
DISPLAY_STEP = 0.01  # last displayed decimal; smaller weights count as 0


@dataclass(frozen=True, slots=True)
class Regression:
    """F = base + sum of weights * properties, and what it predicts for the reactor crystal."""

    weights: Mapping[str, float]
    base: float
    predicted: float

    @property
    def hypothesis(self) -> dict[str, Any]:
        """The hypothesis that states this equation and no edge between properties."""
        names = sorted(self.weights)
        return {
            "edges": [{"from": name, "to": FREQUENCY} for name in names],
            "freq_equation": " + ".join([f"{FREQUENCY} = base", *(f"c_{name}*{name}" for name in names)]),
            "coefficients": {"base": self.base} | {f"c_{name}": self.weights[name] for name in names},
            "weights": [{"from": n, "to": FREQUENCY, "power": 1, "value": self.weights[n]} for n in names],
        }


def before_settings(task: Task) -> Evidence:
    """Return the evidence at the start, which is free of noise in every task."""
    return evidence_of(replace(task, noise=False))


def space_before_settings(task: Task) -> WeightedDags | None:
    """Return the version space at the start, by `likely_dags`; None if it is not enumerated."""
    try:
        space = likely_dags(before_settings(task))
    except BudgetSpent:
        return None
    return space if space.count else None


def decided_equation(task: Task) -> Regression | None:
    """Return an equation with the prediction that most members share; None if the space is not enumerated."""
    space = space_before_settings(task)
    if space is None:
        return None
    try:
        row = frequency_equation(space)
    except BudgetSpent:
        return None
    return _regression(space.evidence, row.astype(float))


def least_norm_equation(task: Task) -> Regression:
    """Fit the least-norm linear equation that explains the records and the starting crystal."""
    evidence = before_settings(task)
    properties = list(map(exact_readings, evidence.table[:, :-1].tolist()))
    *solution, base = least_norm_fit(
        [[*row, Fraction(1)] for row in properties], exact_readings(evidence.table[:, -1].tolist())
    )
    seen_values = [value for row in properties for value in row]
    mean = sum(seen_values, start=Fraction(0)) / len(seen_values)
    crystal = [mean if isnan(value) else exact_reading(value) for value in evidence.reactor[:-1].tolist()]
    predicted = sum((weight * value for weight, value in zip(solution, crystal, strict=True)), start=base)
    displayed = ((node, float(weight)) for node, weight in zip(evidence.nodes, solution, strict=False))
    weights = {node: weight for node, weight in displayed if abs(weight) > DISPLAY_STEP}
    return Regression(weights, float(base), float(predicted))


def _regression(evidence: Evidence, row: np.ndarray[Any, np.dtype[np.float64]]) -> Regression:
    first = evidence.table[0]
    base = float(np.round(first[-1] - first @ row, 2))
    crystal = np.nan_to_num(evidence.reactor[:-1], nan=50.0)  # hidden values are taken as 50
    weights = {evidence.nodes[i]: float(row[i]) for i in np.flatnonzero(row)}
    return Regression(weights, base, float(np.round(base + crystal @ row[:-1], 2)))


@dataclass(frozen=True, slots=True)
class Submission:
    """A hypothesis as JSON, and the frequency to dial; None dials nothing."""

    hypothesis: Mapping[str, Any]
    frequency: float | None


# (episode, seed) -> answer; only `random_mechanism` uses the seed
Row: TypeAlias = Callable[[LabEpisode, int], Outcome[Submission]]
"""Plays an episode; the number is a seed, which only rows that draw look at."""

NO_EQUATION = "the frequency's equation is only found from the start in linear laboratories with weights 1, 2, 3"


def exact(episode: LabEpisode, seed: int) -> Outcome[Submission]:
    """Set every property, and state the mechanism that the reference replays."""
    return _submission(solve(episode))


def exact_weights(episode: LabEpisode, seed: int) -> Outcome[Submission]:
    """Answer as `exact`; in quadratic laboratories further settings give the frequency's weights to six decimals."""
    # needs settings beyond those of `exact`, and readings without noise: a weight follows from one large value
    quadratic = episode.task.family is Family.QUADRATIC and not episode.task.noise and episode.task.allowance > 0
    return _submission(solve_to_six_decimals(episode) if quadratic else solve(episode))


def greedy(episode: LabEpisode, seed: int) -> Outcome[Submission]:
    """Choose settings by expected gain until graph and frequency are decided.

    Bases are assumed to lie in the generator's range, as long as some mechanism that fits has such bases.
    """
    task = episode.task
    noisy = task.noise and task.family is Family.LINEAR and task.weights is Weights.SMALL
    return _submission(solve_noisy_by_experiments(episode) if noisy else solve_by_experiments(episode))


def posterior(episode: LabEpisode, seed: int) -> Outcome[Submission]:
    """Answer without settings: the edges of more than half of the members, and their most frequent prediction."""
    space, equation = space_before_settings(episode.task), decided_equation(episode.task)
    if space is None or equation is None:
        return OutOfBudget(NO_EQUATION)
    edges = [edge for edge, weight in sorted(space.edge_counts.items()) if 2 * weight > space.count]
    return Found(Submission(_with_edges(equation.hypothesis, edges), equation.predicted))


def abstain(episode: LabEpisode, seed: int) -> Outcome[Submission]:
    """Answer without settings: the frequency's equation whose prediction most members share, without edges."""
    equation = decided_equation(episode.task)
    return OutOfBudget(NO_EQUATION) if equation is None else Found(Submission(equation.hypothesis, equation.predicted))


def total_effects(episode: LabEpisode, seed: int) -> Outcome[Submission]:
    """Set each property once and take every node that changes for its child; the equation is fitted before any setting.

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
    return Found(Submission(_with_edges(equation.hypothesis, edges), equation.predicted))


def least_norm(episode: LabEpisode, seed: int) -> Outcome[Submission]:
    """Answer without settings: least-norm regression of the frequency on all properties over the readings shown."""
    equation = least_norm_equation(episode.task)
    return Found(Submission(equation.hypothesis, equation.predicted))


NUM_IGNORED = 2  # settings that a hasty answer ignores


def hasty(episode: LabEpisode, seed: int) -> Outcome[Submission]:
    """Make two settings, ignore them, and answer the least-norm equation of the values shown before."""
    _set_first(episode)
    return least_norm(episode, seed)


def hasty_verified(episode: LabEpisode, seed: int) -> Outcome[Submission]:
    """Answer as `hasty`, unless its readings contradict the equation: then make further settings and fit again.

    The difference to `hasty` is what returning the answer once can gain (arXiv 2605.26029, section 5.5).
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


def mean(episode: LabEpisode, seed: int) -> Outcome[Submission]:
    """Answer the mean of the frequencies shown, and no hypothesis."""
    return Found(Submission({}, float(np.mean(evidence_of(episode.task).table[:, -1]))))


def random_mechanism(episode: LabEpisode, seed: int) -> Outcome[Submission]:
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
    mechanism = mechanism_of(nodes, weights, float(rng.randint(*FREQUENCY_BASE)))
    return Found(Submission(state_mechanism(mechanism), predict_frequency(mechanism, evidence_of(task))))


def prior(episode: LabEpisode, seed: int) -> Outcome[Submission]:
    """Answer nothing: the empty hypothesis, and no frequency dialled."""
    return Found(Submission({}, None))


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


def play(row: Row, episode: LabEpisode, seed: int) -> Outcome[Submission]:
    """Play an open episode to its end by a method; without an answer, the empty hypothesis is submitted."""
    outcome = row(episode, seed)
    if isinstance(outcome, Found):
        if outcome.value.frequency is not None:
            episode.act({"reactor": outcome.value.frequency})
        episode.act({"submit": {"hypothesis": dict(outcome.value.hypothesis)}})
    else:
        episode.act({"submit": {"hypothesis": {}}})
    return outcome


def _submission(outcome: Outcome[Answer]) -> Outcome[Submission]:
    if isinstance(outcome, Found):
        return Found(Submission(state_mechanism(outcome.value.mechanism), outcome.value.frequency))
    return outcome


def _with_edges(hypothesis: Mapping[str, Any], edges: list[Edge]) -> dict[str, Any]:
    """Return the hypothesis with further edges; one that is there already is not repeated."""
    present = {(edge["from"], edge["to"]) for edge in hypothesis["edges"]}
    further = [{"from": parent, "to": child} for parent, child in edges if (parent, child) not in present]
    return {**hypothesis, "edges": [*hypothesis["edges"], *further]}


# --- Averages of methods over items, each with its denominator --------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Figures:
    """Statistics of a method's runs.

    items: number of items; answered: number of items that the method itself answered
    means: flat name of a statistic -> its mean over all items
    """

    items: int
    answered: int
    means: Mapping[str, float]


class Run(NamedTuple):
    """A method's run on an item; answered: whether the method itself had an answer."""

    score: RunScore
    answered: bool
    steps: Sequence[LabStep]


def run(row: Row, item: LabItem, seed: int = 0) -> Run:
    """Play an episode by a method from its beginning to its end."""
    episode = LabEpisode(item)
    outcome = play(row, episode, seed)
    return Run(run_score(item, episode.steps), isinstance(outcome, Found), episode.steps)


def figures(row: Row, items: Iterable[LabItem], seed: int = 0) -> Figures:
    """Return the mean scores of a baseline; an item without an answer counts with the empty hypothesis."""
    played = [run(row, item, seed) for item in items]
    scores = [result.score.flat() for result in played]
    names = scores[0] if scores else {}
    means = {name: fsum(score[name] for score in scores) / len(scores) for name in names}
    return Figures(len(scores), sum(result.answered for result in played), means)


def table(items: Sequence[LabItem], seed: int = 0, rows: Mapping[str, Row] = ROWS) -> dict[tuple[str, str], Figures]:
    """Return the statistics by (method, suite), suites in order of first appearance."""
    suites: dict[str, list[LabItem]] = {}
    for item in items:
        suites.setdefault(item.suite, []).append(item)
    return {
        (name, suite): figures(row, suite_items, seed)
        for name, row in rows.items()
        for suite, suite_items in suites.items()
    }
