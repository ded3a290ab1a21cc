"""Two mechanisms that fit, side by side, and what settings would read under listed mechanisms."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from calibrant.audits.causalab.why.parts import LabMember, LabWitness
from calibrant.audits.why import Experiment, Outcome, experiment
from calibrant.dsl.causalab.mechanism import FREQUENCY, Mechanism
from calibrant.solvers.causalab.evidence import Floats, linear_matrix, predict_frequency
from calibrant.solvers.causalab.experiments import candidates
from calibrant.solvers.causalab.space import (
    MAX_LISTED,
    Integers,
    Local,
    Setting,
    WeightedDags,
    predict_frequencies,
    readings_of,
)

MAX_JOINT = 2_000  # mechanisms of which pairs of settings are compared


def setting_words(setting: Setting) -> str:
    return f"set {setting[0]} to {setting[1]:g}"


def experiments(space: WeightedDags, truth: Mechanism | None) -> tuple[Experiment, ...]:
    """Return every property that may be set with the readings that it may give, best first.

    truth: the sealed mechanism, where it is revealed
    """
    if space.count > MAX_LISTED:
        return ()
    answers, entries = _answers(space), []
    for setting in candidates(space):
        readings = space.readings(setting)
        values, rows, numbers = np.unique(readings, axis=0, return_inverse=True, return_counts=True)
        pairs = np.unique(np.column_stack([rows.ravel(), answers]), axis=0)
        num_frequencies = _distinct(pairs[:, (0, 1)], len(values))
        num_graphs = _distinct(pairs[:, (0, 2)], len(values))
        num_answers = np.where(num_graphs > 1, np.maximum(2, num_frequencies), num_frequencies)
        words = [", ".join(f"{value:g}" for value in reading) for reading in values.tolist()]
        outcomes = [
            Outcome(*entry) for entry in zip(words, map(str, numbers.tolist()), num_answers.tolist(), strict=True)
        ]
        true_reading = None if truth is None else reading_of(space, truth, setting)
        places = {tuple(reading): k for k, reading in enumerate(values.tolist())}
        remaining = str(numbers[places[true_reading]]) if true_reading in places else None
        entries.append(experiment(setting_words(setting), outcomes, remaining))
    return tuple(sorted(entries, key=lambda entry: (entry.rank[0] > 1, entry.expected)))


def _distinct(pairs: Integers, number: int) -> Integers:
    """Count the distinct second numbers of pairs by their first, which is below `number`."""
    return np.asarray(np.bincount(np.unique(pairs, axis=0)[:, 0], minlength=number))


def _answers(space: WeightedDags) -> Integers:
    """Return numbers of the predicted frequency and of the graph of each listed mechanism; shape (mechanisms, 2)."""
    if space.predicts:
        frequency = Local(space.evidence.frequency, space.matrices[:, -1].astype(np.int64))
        predictions = predict_frequencies(frequency, space.evidence)
    else:
        predictions = np.array([predict_frequency(member, space.evidence) for member in space.members()])
    graphs = (space.matrices > 0).reshape(space.count, -1)
    numbers = [np.unique(values, axis=0, return_inverse=True)[1].ravel() for values in (predictions[:, None], graphs)]
    return np.column_stack(numbers)


def reading_of(space: WeightedDags, member: Mechanism, setting: Setting) -> tuple[float, ...] | None:
    """Return the reading of a mechanism after a setting; None if it does not fit."""
    matrix = linear_matrix(member, space.evidence)
    if matrix is None:
        return None
    totals = np.rint(np.linalg.inv(np.eye(len(matrix)) - matrix))
    reading: list[float] = readings_of(matrix[None], totals[None], space.evidence, setting)[0].tolist()
    return tuple(reading)


def jointly_deciding(space: WeightedDags, best: Sequence[Experiment]) -> tuple[str, ...]:
    """Return the first two settings that together decide graph and frequency, whatever they read; () for none."""
    if space.count > MAX_JOINT or (best and best[0].decides):
        return ()
    settings = {setting_words(setting): setting for setting in candidates(space)}
    answers = _answers(space)
    ranked = [entry.in_words for entry in best if len(entry.outcomes) > 1]
    for first, second in combinations(ranked, 2):
        readings = _joint(space, settings[first], settings[second])
        rows = np.unique(readings, axis=0, return_inverse=True)[1].ravel()
        if len(np.unique(np.column_stack([rows, answers]), axis=0)) == rows.max() + 1:
            return first, second
    return ()


def _joint(space: WeightedDags, first: Setting, second: Setting) -> Floats:
    """Return what each mechanism reads after both settings one after the other; shape (members, 2 * nodes)."""
    readings = space.readings(first)
    later = np.empty_like(readings)
    for reading in np.unique(readings, axis=0):
        rows = np.flatnonzero(np.all(readings == reading, axis=1))
        values = dict(zip(space.evidence.nodes, reading.tolist(), strict=True))
        evidence = space.evidence.after(*first, values)
        later[rows] = readings_of(space.matrices[rows], space.totals[rows], evidence, second)
    return np.hstack([readings, later])


def nearest_pair(space: WeightedDags) -> tuple[Floats, Floats] | None:
    """Return a mechanism with the fewest edges and the one that differs from it in fewest; None for one mechanism."""
    if not 1 < space.count <= MAX_LISTED:
        return None
    edges = (space.matrices > 0).reshape(space.count, -1)
    first = int(np.lexsort((*space.matrices.reshape(space.count, -1).T, edges.sum(axis=1)))[0])
    others = np.flatnonzero(np.arange(space.count) != first)
    distance = (edges[others] != edges[first]).sum(axis=1)
    weight_distance = np.abs(space.matrices[others] - space.matrices[first]).sum(axis=(1, 2))
    graphs_differ = distance > 0
    second = int(others[np.lexsort((weight_distance, distance, ~graphs_differ))[0]])
    return space.matrices[first], space.matrices[second]


def member_record(space: WeightedDags, matrix: Floats) -> LabMember:
    """Return a mechanism in words."""
    member = space.member(matrix)
    equations = {}
    for node in space.evidence.nodes:
        terms = [f"{weight:g} {cause}" for cause, weight in sorted(member.weights(node).items())]
        base = f"{member.frequency_base:g}" if node == FREQUENCY else "its base"
        equations[node] = " + ".join([*terms, base])
    return LabMember(equations, f"{predict_frequency(member, space.evidence):g}")


def witness(space: WeightedDags, first: Floats, second: Floats, best: Sequence[Experiment]) -> LabWitness | None:
    """Return the best setting under which two mechanisms read differently; None where none does."""
    settings = {setting_words(setting): setting for setting in candidates(space)}
    nodes = space.evidence.nodes
    for entry in best:
        readings = [reading_of(space, space.member(matrix), settings[entry.in_words]) for matrix in (first, second)]
        if None not in readings and readings[0] != readings[1]:
            values = [dict(zip(nodes, reading or (), strict=True)) for reading in readings]
            return LabWitness(entry.in_words, *values)
    return None
