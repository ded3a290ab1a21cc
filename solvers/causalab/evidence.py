"""Measurements of a laboratory as arrays, replay of a mechanism against them, and the noise-free linear solver.

A crystal is one unit of the laboratory: properties and a frequency. The base of a node is its exogenous value. A
stretch is a sequence of readings of one crystal in which the base of a node is constant.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from calibrant.dsl.causalab.episode import LabEpisode, LabStep
from calibrant.dsl.causalab.item import Task, Weights
from calibrant.dsl.causalab.mechanism import FREQUENCY, Equation, Mechanism, Term, Values, state_mechanism
from calibrant.dsl.causalab.reference import NO_SHIFT, SettingMeaning, bases_after, bases_of, round_value, values
from calibrant.dsl.errors import CalibrantError, CycleError
from calibrant.solvers.outcome import Found, Impossible, Outcome, OutOfBudget

# --- Measurements of a laboratory as arrays, and the replay of a mechanism against them -------------------------------
Floats: TypeAlias = npt.NDArray[np.float64]

MAX_EXACT_READING = 1e10  # larger readings are left out of equations: sums of doubles would lose hundredths


@dataclass(frozen=True, slots=True)
class Observation:
    """One reading: the values of the nodes of a crystal.

    crystal: index of the crystal: records first, then those of the static trace, last the manipulator crystal
    changed: property (index) set since the crystal's previous reading, None for none; setting: value of the setting
    noisy: whether the reading has hidden noise
    """

    values: tuple[float, ...]
    crystal: int
    changed: int | None = None
    setting: float = 0.0
    noisy: bool = False


@dataclass(frozen=True)
class Evidence:
    """Readings of a laboratory; nodes are indices: the properties, sorted, then the frequency.

    observations: readings; those of a crystal in order of time
    fresh: crystals whose first reading is before any setting, with sampled bases: records and the manipulator
    """

    task: Task
    observations: tuple[Observation, ...]
    fresh: frozenset[int]

    @property
    def nodes(self) -> tuple[str, ...]:
        return self.task.nodes

    @property
    def frequency(self) -> int:
        return len(self.task.properties)

    @cached_property
    def table(self) -> Floats:
        """Values of all readings; shape (readings, nodes)."""
        return np.array([observation.values for observation in self.observations], dtype=np.float64).reshape(
            -1, len(self.nodes)
        )

    @cached_property
    def reactor(self) -> Floats:
        """Shown values of the reactor crystal, NaN elsewhere; shape (nodes,)."""
        return np.array([self.task.reactor.get(node, np.nan) for node in self.nodes])

    def stretches(self, node: int) -> list[list[int]]:
        """Return the stretches of a node, as indices of readings; a single one for the frequency."""
        if node == self.frequency:
            return [list(range(len(self.observations)))]
        stretches: list[list[int]] = []
        last: dict[int, list[int]] = {}
        for i, observation in enumerate(self.observations):
            # a setting changes only the base of its own property: the stretches of other nodes continue
            if observation.crystal not in last or observation.changed == node:
                last[observation.crystal] = []
                stretches.append(last[observation.crystal])
            last[observation.crystal].append(i)
        return stretches

    def differences(self, node: int) -> Floats:
        """Return the differences of successive exact readings of a stretch; shape (equations, nodes)."""
        pairs = [pair for stretch in self.stretches(node) for pair in pairwise(stretch)]
        if not pairs:
            return np.empty((0, len(self.nodes)))
        before, after = np.array(pairs).T
        exact = np.all(np.abs(self.table) <= MAX_EXACT_READING, axis=1)
        usable = exact[before] & exact[after]
        return np.asarray(self.table[after[usable]] - self.table[before[usable]])

    @property
    def last_difference(self) -> Floats:
        """Last reading minus the one before it; shape (1, nodes), or (0, nodes) where one of them is not exact."""
        last = self.table[-2:]
        return np.diff(last, axis=0) if np.abs(last).max() <= MAX_EXACT_READING else np.empty((0, len(self.nodes)))

    def after(self, changed: str, setting: float, reading: Values) -> Evidence:
        """Return the evidence with one more reading of the manipulator crystal."""
        node = self.task.properties.index(changed) if changed in self.task.properties else None
        observation = Observation(_row(self.nodes, reading), self.manipulator, node, setting, self.task.noise)
        return replace(self, observations=(*self.observations, observation))

    @property
    def manipulator(self) -> int:
        """Index of the manipulator crystal."""
        return max(observation.crystal for observation in self.observations)


def evidence_of(task: Task, steps: Iterable[LabStep] = ()) -> Evidence:
    """Collect the readings of a task and of later steps; answers of the reactor are left out."""
    observations = [Observation(_row(task.nodes, record), i) for i, record in enumerate(task.records)]
    observations += _trace(task, len(observations))
    manipulator = max((observation.crystal for observation in observations), default=-1) + 1
    observations.append(Observation(_row(task.nodes, task.baseline), manipulator))
    evidence = Evidence(task, tuple(observations), frozenset({*range(len(task.records)), manipulator}))
    for step in steps:
        if "set" in step.action and step.reading is not None:
            evidence = evidence.after(str(step.action["set"]), float(step.action["value"]), step.reading)
    return evidence


def _trace(task: Task, first: int) -> list[Observation]:
    """Convert the static trace: entries without a setting are crystals of their own, settings are of the first one.

    first: index of its first crystal
    """
    trace: list[Observation] = []
    crystals = 0
    for entry in task.trace:
        row = _row(task.nodes, entry.values)
        if entry.property is None:
            trace.append(Observation(row, first + crystals))
            crystals += 1
        else:
            trace.append(Observation(row, first, task.properties.index(entry.property), entry.value or 0.0))
    return trace


def _row(nodes: Sequence[str], reading: Mapping[str, float]) -> tuple[float, ...]:
    return tuple(float(reading[node]) for node in nodes)


# --- Replay of a mechanism by the reference: whether it reproduces every reading, setting by setting ------------------
EXACT = 1e-6  # tolerance of readings, which are multiples of 0.01
SAME_BASE = 0.005  # tolerance of bases, which are multiples of 0.01
MIDDLE_BASE = 50.0  # assumed base of a reactor property whose value is not shown


def mechanism_of(
    nodes: Sequence[str], linear: Sequence[Mapping[int, float]], base: float, square: Sequence[Mapping[int, float]] = ()
) -> Mechanism:
    """Build a mechanism; `CycleError` if it has a cycle.

    nodes: names, the frequency last; linear, square: for each node the weights of its terms by parent (index)
    base: base of the frequency
    """
    equations = {}
    for i, node in enumerate(nodes):
        squares = square[i] if square else {}
        terms = [Term(nodes[p], 2, squares[p]) for p in sorted(squares)]
        terms += [Term(nodes[p], 1, linear[i][p]) for p in sorted(linear[i])]
        equations[node] = Equation(tuple(terms), base if node == FREQUENCY else None)
    return Mechanism(equations)


def linear_matrix(mechanism: Mechanism, evidence: Evidence) -> Floats | None:
    """Return the weights, row = child; None if nodes differ, a term is a square, or the base of the frequency is wrong.

    The right base follows from the weights of the frequency and the first reading, which has no noise.
    """
    nodes, first = evidence.nodes, evidence.table[0]
    if set(mechanism.equations) != set(nodes) or any(mechanism.weights(node, 2) for node in nodes):
        return None
    matrix = np.array([[mechanism.weights(child).get(parent, 0.0) for parent in nodes] for child in nodes])
    base = np.round(first[-1] - first @ matrix[-1], 2)
    return matrix if abs(base - mechanism.frequency_base) < SAME_BASE else None


def misfit(
    mechanism: Mechanism, evidence: Evidence, *, reading: SettingMeaning, shifts: Sequence[Mapping[str, float]]
) -> float:
    """Return the largest difference between a reading and the reference; infinite if the reference fails.

    The bases of a crystal follow from its first reading, which must have no noise; every further reading follows from
    its setting.

    reading: whether a setting of the manipulator states value or base; those of static traces state the value
    shifts: possible shifts of a noisy reading by noise, node -> shift
    """
    nodes, worst = evidence.nodes, 0.0
    bases: dict[int, dict[str, float]] = {}
    try:
        for observation in evidence.observations:
            row = dict(zip(nodes, observation.values, strict=True))
            if observation.crystal not in bases:
                bases[observation.crystal] = bases_of(mechanism, row)
            elif observation.changed is not None:
                node, crystal_bases = nodes[observation.changed], bases[observation.crystal]
                meaning = reading if observation.crystal == evidence.manipulator else SettingMeaning.VALUE
                bases[observation.crystal] = bases_after(mechanism, crystal_bases, node, observation.setting, meaning)
            possible = shifts if observation.noisy else (NO_SHIFT,)
            predictions = [values(mechanism, bases[observation.crystal], shift) for shift in possible]
            # every noisy reading has a draw of its own: take the shift that fits best
            worst = max(worst, min(max(abs(p[node] - row[node]) for node in nodes) for p in predictions))
    except CalibrantError:
        return float("inf")
    return worst


def predict_frequency(mechanism: Mechanism, evidence: Evidence) -> float:
    """Predict the reactor crystal's frequency from its shown values; hidden properties have base MIDDLE_BASE."""
    reactor = evidence.task.reactor
    reading: dict[str, float] = {}
    for node in mechanism.order:
        if node in reactor:
            reading[node] = reactor[node]
            continue
        equation = mechanism.equations[node]
        total = MIDDLE_BASE if equation.base is None else equation.base
        for term in equation.terms:  # from the left, base first, as the reference adds
            total += term.weight * reading[term.parent] ** term.power
        reading[node] = round_value(total)
    return reading[FREQUENCY]


# --- Answer of a solver of laboratories, and its submission -----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Answer:
    """Mechanism that reproduces all readings, by the reference, and the frequency that it predicts.

    unique: whether no other mechanism of the class reproduces them; in_words: the class
    """

    mechanism: Mechanism
    frequency: float
    unique: bool
    in_words: str


def submit_hypothesis(episode: LabEpisode, hypothesis: Mapping[str, Any], frequency: float) -> None:
    """Dial the frequency once and submit the hypothesis."""
    episode.act({"reactor": frequency})
    episode.act({"submit": {"hypothesis": dict(hypothesis)}})


def submit_answer(episode: LabEpisode, answer: Answer) -> None:
    submit_hypothesis(episode, state_mechanism(answer.mechanism), answer.frequency)


# --- Linear laboratories without noise: set each property once, and compute direct effects from total effects ---------
# With x = W x + b the total effects are T = inv(I - W), so W = I - inv(T) for the properties, and the frequency's
# weights are c = T_F inv(T). Whether a setting states base or value, T is the same, because changes are measured. One
# setting for each property, O(n**3) arithmetic.
LOW, MIDDLE, HIGH = 0.0, 50.0, 100.0
MARGIN_FOR_HUNDREDTHS = 10_000.0  # weights of two decimals need a step much larger than rounding
DECIMALS = 2
ROUNDING_TOLERANCE = 0.05  # tolerance of replayed values: weights in hundredths multiply the rounding of bases
IN_WORDS = "linear mechanisms with any weights of two decimals"


def solve_linear(episode: LabEpisode) -> Outcome[Answer]:
    """Find the mechanism from one setting of every property; earlier settings are used too."""
    task = episode.task
    evidence = evidence_of(task, episode.steps)
    for name in task.settable:
        node = task.properties.index(name)
        num_trials = 0
        while _effects_of(evidence, node) is None:
            if episode.left <= 0:
                return OutOfBudget(f"{len(episode.steps)} settings made; {name} was not moved")
            value = far_end(
                evidence.observations[-1].values[node],
                MARGIN_FOR_HUNDREDTHS if task.weights is Weights.HUNDREDTHS else 0.0,
            )
            # + num_trials: if the setting equals the present value or base, nothing moves and another value is tried
            episode.act({"set": name, "value": value + num_trials})
            evidence = evidence_of(task, episode.steps)
            num_trials += 1
    return solve_from_totals(evidence)


def far_end(value: float, margin: float = 0.0) -> float:
    """Return the end of the scale that is farther from a value, moved outwards by a margin."""
    return HIGH + margin if value <= MIDDLE else LOW - margin


def solve_from_totals(evidence: Evidence) -> Outcome[Answer]:
    """Compute the mechanism from evidence in which every property was moved once."""
    totals = total_effects(evidence)
    if totals is None:
        return OutOfBudget("a property was never moved")
    direct = direct_effects(totals)
    frequency = evidence.frequency
    weights = [{p: float(w) for p, w in enumerate(row) if w} for row in direct]
    base = float(np.round(evidence.table[-1, frequency] - evidence.table[-1, :frequency] @ direct[frequency], DECIMALS))
    return certify_answer(evidence, weights, base, unique=True, in_words=IN_WORDS)


def certify_answer(
    evidence: Evidence, weights: list[dict[int, float]], base: float, *, unique: bool, in_words: str
) -> Outcome[Answer]:
    """Return the answer with these weights if the reference reproduces all readings, else `Impossible`."""
    try:
        mechanism = mechanism_of(evidence.nodes, weights, base)
    except CycleError as error:
        return Impossible(f"{in_words}: {error}")
    tolerance = EXACT if evidence.task.weights is Weights.SMALL else ROUNDING_TOLERANCE
    if (distance := misfit(mechanism, evidence, reading=evidence.task.reading, shifts=())) > tolerance:
        return Impossible(f"{in_words}: the only one that explains the changes is {distance:g} away from a reading")
    return Found(Answer(mechanism, predict_frequency(mechanism, evidence), unique, in_words))


def total_effects(evidence: Evidence) -> Floats | None:
    """Return the effect of a unit change of each property on each node; None if one was never moved."""
    columns = [_effects_of(evidence, i) for i in range(evidence.frequency)]
    known_columns = [column for column in columns if column is not None]
    return np.array(known_columns).T if len(known_columns) == len(columns) else None


def _effects_of(evidence: Evidence, node: int) -> Floats | None:
    """Return the effects of a unit change of a property, from the setting that moved it most; None if none did."""
    # the largest change has the smallest relative rounding error
    best: Floats | None = None
    last: dict[int, int] = {}
    for i, observation in enumerate(evidence.observations):
        if observation.changed == node:
            change = evidence.table[i] - evidence.table[last[observation.crystal]]
            if change[node] and (best is None or abs(change[node]) > abs(best[node])):
                best = change
        last[observation.crystal] = i
    return None if best is None else best / best[node]


def direct_effects(totals: Floats) -> Floats:
    """Compute direct effects, to two decimals, from total effects; both of shape (nodes, properties)."""
    m = totals.shape[1]
    # I - W is unit triangular in topological order: determinant 1, so T of an acyclic mechanism is invertible
    inverse = np.linalg.inv(totals[:m])
    direct = np.vstack([np.eye(m) - inverse, totals[m:] @ inverse])
    return np.round(direct, DECIMALS) + 0.0
