"""Predictions of a family of models, and the experiment that tells most of them apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from calibrant.dsl.logic.item import Experiment, Task
from calibrant.solvers.logic.elimination.lattice import Lattice, LatticeLimitError
from calibrant.solvers.logic.network import Columns
from calibrant.solvers.logic.sums import Keys, PathSums, Restriction

# --- Predictions: how many members give each answer of all readouts, by refining the states with candidate columns ----
MAX_REFINED_STATES = 100_000  # states of a layer; with more the list of candidates is halved

Table: TypeAlias = tuple[str, ...]


@dataclass(frozen=True)
class Predictions:
    """Answers of all readouts, a text of 0 and 1 in their order, by experiment.

    outcomes: of each experiment answers -> number of members
    count: number of members; tables: table of answers -> number of members, None if there are too many to tell
    """

    experiments: tuple[Experiment, ...]
    outcomes: tuple[Mapping[str, int], ...]
    count: int
    tables: Mapping[Table, int] | None

    @property
    def behaviours(self) -> int | None:
        """The number of different tables; None if it is not cached."""
        return None if self.tables is None else len(self.tables)

    def shares(self, number: int) -> tuple[Fraction, ...]:
        """Return of each readout the share of members that answer 1 in an experiment; `ValueError` without members."""
        outcomes = self.outcomes[number]
        if not outcomes:
            raise ValueError("no member predicts anything")
        width = len(next(iter(outcomes)))
        return tuple(
            Fraction(sum(n for text, n in outcomes.items() if text[r] == "1"), self.count) for r in range(width)
        )

    def sum_of_squared_counts(self, number: int) -> int:
        """Return the sum of squares of the outcome numbers of an experiment."""
        return sum(n * n for n in self.outcomes[number].values())


def predict_outcomes(
    task: Task, lattice: Lattice, sums: PathSums, restriction: Restriction, experiments: Sequence[Experiment]
) -> Predictions:
    """Return the predictions of all members; `LatticeLimitError` if one experiment alone has too many."""
    chunks = list(_chunks(task, lattice, sums, restriction, list(experiments)))
    outcomes: list[Mapping[str, int]] = []
    for size, tables in chunks:
        outcomes += _by_experiment(tables, size)
    return Predictions(tuple(experiments), tuple(outcomes), sums.count, chunks[0][1] if len(chunks) == 1 else None)


def _chunks(
    task: Task, lattice: Lattice, sums: PathSums, restriction: Restriction, experiments: list[Experiment]
) -> Iterator[tuple[int, Mapping[Table, int]]]:
    columns = Columns(lattice.network, experiments)
    try:
        answers = _Refinement(lattice, columns, sums, restriction).tables()
    except _TooManyError:
        if len(experiments) < 2:
            raise LatticeLimitError(f"over {MAX_REFINED_STATES:,} combinations of states and answers") from None
        # joint answers grow with the number of candidates, states do not: halves fit where the whole list does not
        half = len(experiments) // 2
        yield from _chunks(task, lattice, sums, restriction, experiments[:half])
        yield from _chunks(task, lattice, sums, restriction, experiments[half:])
        return
    yield len(experiments), _texts(task, lattice, columns, experiments, answers)


class _TooManyError(Exception):
    pass


class _Refinement:
    """A pass over the kept transitions with responses on further columns in each state."""

    def __init__(self, lattice: Lattice, columns: Columns, sums: PathSums, restriction: Restriction) -> None:
        self.lattice, self.columns, self.sums, self.restriction = lattice, columns, sums, restriction
        self.readout_position = {v: i for i, v in enumerate(sorted(lattice.network.readouts))}
        self._formulas: dict[int, list[tuple[int, ...]]] = {}
        self._memo: dict[tuple[int, tuple[int, ...]], list[tuple[int, int]]] = {}
        self._answers: list[tuple[int, ...]] = [(0,) * len(self.readout_position)]
        self._answer_number = {self._answers[0]: 0}

    def tables(self) -> Mapping[tuple[int, ...], int]:
        """Return responses of the readouts -> number of members."""
        lattice = self.lattice
        # state -> (responses of its slots, number of the answers so far) -> paths by key
        refined: dict[int, dict[tuple[tuple[int, ...], int], Keys]] = {0: {((), 0): {0: 1}}} if self.sums.count else {}
        for number in range(1, len(lattice.layers)):
            refined = self._advance(number, refined)
            if sum(map(len, refined.values())) > MAX_REFINED_STATES:
                raise _TooManyError
        return {
            self._answers[answer]: sum(keys.values())
            for states in refined.values()
            for (_, answer), keys in states.items()
        }

    def _advance(
        self, number: int, refined: Mapping[int, Mapping[tuple[tuple[int, ...], int], Keys]]
    ) -> dict[int, dict[tuple[tuple[int, ...], int], Keys]]:
        lattice = self.lattice
        stage, layer, earlier = lattice.stages[number - 1], lattice.layers[number], lattice.layers[number - 1]
        completions, multiplicities, deltas = self.sums.completions[number], self.sums.multiplicities, self.sums.deltas
        slot_of = {v: i for i, v in enumerate(stage.slots)}
        following: dict[int, dict[tuple[tuple[int, ...], int], Keys]] = {}
        size = 0
        for source, states in refined.items():
            base = (*earlier.states[source], *(0,) * stage.extend)
            for at in range(layer.starts[source], layer.starts[source + 1]):
                target, group = layer.targets[at], layer.groups[at]
                ahead = completions[target]
                if not ahead or not multiplicities[group]:
                    continue
                node, delta = lattice.steps.nodes[group], deltas[group]
                slots = [slot_of[p] for p in lattice.network.parents[node]]
                landing = following.setdefault(target, {})
                before = len(landing)
                for (responses, answer), keys in states.items():
                    extended = (*responses, *(0,) * stage.extend)
                    key = tuple([extended[p] << 1 | (base[p] > 0 and base[p] >> 1 & 1) for p in slots])
                    # only keys with a completion: what misses the limits later is dropped here, not refined
                    onward = [(k + delta, n) for k, n in keys.items() if k + delta in ahead]
                    if not onward:
                        continue
                    for response, ways in self._refine(group, key):
                        after = self._after(stage.project, extended, slot_of[node], response, layer.states[target])
                        answered = self._answer(answer, node, response)
                        sums = landing.setdefault((after, answered), {})
                        for k, n in onward:
                            sums[k] = sums.get(k, 0) + n * ways
                size += len(landing) - before
                if size > MAX_REFINED_STATES:
                    raise _TooManyError
        return following

    @staticmethod
    def _after(
        project: tuple[int, ...] | None, extended: tuple[int, ...], slot: int, response: int, state: tuple[int, ...]
    ) -> tuple[int, ...]:
        if project is not None:
            return tuple([response if p == slot else extended[p] for p in project])
        changed = (*extended[:slot], response, *extended[slot + 1 :])
        return tuple([r if value > 0 else 0 for r, value in zip(changed, state, strict=True)])

    def _answer(self, answer: int, node: int, response: int) -> int:
        position = self.readout_position.get(node)
        if position is None or not response:
            return answer
        before = self._answers[answer]
        table = (*before[:position], response, *before[position + 1 :])
        number = self._answer_number.get(table)
        if number is None:
            number = self._answer_number[table] = len(self._answers)
            self._answers.append(table)
        return number

    def _refine(self, group: int, key: tuple[int, ...]) -> list[tuple[int, int]]:
        """Return the responses of a group's formulas on the further columns, with their numbers."""
        cached = self._memo.get((group, key))
        if cached is not None:
            return cached
        steps = self.lattice.steps
        node = steps.nodes[group]
        formulas = self._formulas.get(group)
        if formulas is None:
            formulas = self._formulas[group] = self.restriction.formulas(self.lattice, group)
        literals, clauses = steps.literal_responses(node, key, self.columns), steps.clauses(node)
        active = self.columns.active[node]
        by_clause: dict[int, int] = {}
        counts: dict[int, int] = {}
        for formula in formulas:
            response = 0
            for c in formula:
                value = by_clause.get(c)
                if value is None:
                    value, rest = active, clauses.literals[c]
                    while rest:
                        low = rest & -rest
                        value &= literals[low.bit_length() - 1]
                        rest ^= low
                    by_clause[c] = value
                response |= value
            counts[response] = counts.get(response, 0) + 1
        cached = self._memo[group, key] = list(counts.items())
        return cached


def _texts(
    task: Task,
    lattice: Lattice,
    columns: Columns,
    experiments: Sequence[Experiment],
    answers: Mapping[tuple[int, ...], int],
) -> Mapping[Table, int]:
    """Return the tables as texts, with the answers of readouts that no formula changes."""
    network = lattice.network
    position = {v: i for i, v in enumerate(sorted(network.readouts))}
    where = [columns.index_of(experiment) for experiment in experiments]
    tables: dict[Table, int] = {}
    for responses, number in answers.items():
        rows = []
        for experiment, column in zip(experiments, where, strict=True):
            digits = []
            for name in task.setup.readouts:
                if name in network.number:
                    digits.append("1" if responses[position[network.number[name]]] >> column & 1 else "0")
                else:
                    digits.append("1" if name in task.setup.stimuli and name in experiment.on else "0")
            rows.append("".join(digits))
        tables[tuple(rows)] = number
    return tables


def _by_experiment(tables: Mapping[Table, int], size: int) -> list[Mapping[str, int]]:
    outcomes: list[dict[str, int]] = [{} for _ in range(size)]
    for table, number in tables.items():
        for counts, answers in zip(outcomes, table, strict=True):
            counts[answers] = counts.get(answers, 0) + number
    return [dict(sorted(counts.items())) for counts in outcomes]


# --- The next experiment: the candidate that is expected to leave the least share of the family -----------------------


@dataclass(frozen=True)
class NextExperiment:
    """A candidate and what it is expected to leave, with an exact reading and a uniform member as truth.

    number: position among the candidates; squares: sum of squares of its outcome numbers; share: that / count squared
    is_done: of each candidate whether it is among the task's experiments
    """

    experiment: Experiment
    number: int
    squares: int
    share: Fraction
    predictions: Predictions
    is_done: tuple[bool, ...]


def choose_next(task: Task, predictions: Predictions) -> NextExperiment | None:
    """Return the first candidate of the least sum of squares; None without candidates or members."""
    if not predictions.experiments or not predictions.count:
        return None
    squares = [predictions.sum_of_squared_counts(number) for number in range(len(predictions.experiments))]
    number = min(range(len(squares)), key=lambda i: (squares[i], i))
    done = set(task.experiments)
    return NextExperiment(
        predictions.experiments[number],
        number,
        squares[number],
        Fraction(squares[number], predictions.count**2),
        predictions,
        tuple(experiment in done for experiment in predictions.experiments),
    )
