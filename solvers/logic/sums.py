"""Sums over the paths of a lattice: numbers of members, completions, predictions, and the next experiment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias

from calibrant.dsl.logic.item import Clause, Edge, Experiment, Model, Task, node_names
from calibrant.solvers.logic.elimination.lattice import SIZE_BASE, UNREACHABLE, Lattice, LatticeLimitError
from calibrant.solvers.logic.network import Columns

# --- Sums over the paths of a lattice: numbers of members by (misfit, size), completions, and what follows from them --
Keys: TypeAlias = dict[int, int]  # misfit * SIZE_BASE + size -> number of models


class PathSums:
    """Forward and backward sums over the paths of a pruned lattice; a member is a path with a formula of each group.

    A key is misfit * SIZE_BASE + size of a path so far; either component can be left out. Transition t of layer d
    comes from layer d - 1. multiplicities: number of formulas of each group
    """

    def __init__(
        self,
        lattice: Lattice,
        multiplicities: list[int],
        size_limit: int | None,
        *,
        with_misfit: bool = True,
        with_size: bool = True,
        only: int | None = None,
    ) -> None:
        """Prepare sums; with_misfit, with_size: components of keys; only: key at which paths end, None for any."""
        self.lattice = lattice
        self.multiplicities = multiplicities
        self.size_limit = size_limit
        steps = lattice.steps
        misfit, size = SIZE_BASE if with_misfit else 0, int(with_size)
        self.deltas = [c * misfit + s * size for c, s in zip(steps.costs, steps.sizes, strict=True)]
        self._with_misfit = with_misfit and lattice.limit is not None
        self._with_size = with_size and size_limit is not None
        self._only = only

    @cached_property
    def _excluded_from(self) -> list[list[int]]:
        """For each state the least key from which no completion is within the misfit limit."""
        limit = self.lattice.limit
        if not self._with_misfit or limit is None:
            return [[UNREACHABLE] * len(layer.states) for layer in self.lattice.layers]
        return [[(limit + 1 - least // SIZE_BASE) * SIZE_BASE for least in row] for row in self.lattice.least]

    @cached_property
    def _least_sizes(self) -> list[list[int]]:
        """Least number of literals from each state to the end."""
        layers, sizes = self.lattice.layers, self.lattice.steps.sizes
        rows: list[list[int]] = [[0] * len(layers[-1].states)]
        for layer in reversed(layers[1:]):
            next_layer, row = rows[-1], []
            for source in range(len(layer.starts) - 1):
                span = range(layer.starts[source], layer.starts[source + 1])
                row.append(min((sizes[layer.groups[t]] + next_layer[layer.targets[t]] for t in span), default=0))
            rows.append(row)
        return rows[::-1]

    @cached_property
    def forward(self) -> list[list[Keys]]:
        """Number of paths to each state of each layer, by key."""
        layers, multiplicities, deltas = self.lattice.layers, self.multiplicities, self.deltas
        rows: list[list[Keys]] = [[{0: 1} for _ in layers[0].states]]
        limit = self.size_limit if self._with_size else None
        for depth in range(1, len(layers)):
            layer, excluded_from = layers[depth], self._excluded_from[depth]
            next_layer: list[Keys] = [{} for _ in layer.states]
            starts, targets, groups = layer.starts, layer.targets, layer.groups
            max_sizes = [limit - size for size in self._least_sizes[depth]] if limit is not None else []
            for source, keys in enumerate(rows[-1]):
                if not keys:
                    continue
                items = list(keys.items())
                for t in range(starts[source], starts[source + 1]):
                    group = groups[t]
                    factor = multiplicities[group]
                    if not factor:
                        continue
                    target, delta = targets[t], deltas[group]
                    first_excluded, sums = excluded_from[target], next_layer[target]
                    if limit is None:
                        for key, paths in items:
                            key += delta
                            if key < first_excluded:
                                sums[key] = sums.get(key, 0) + paths * factor
                    else:
                        max_size = max_sizes[target]
                        for key, paths in items:
                            key += delta
                            if key < first_excluded and key % SIZE_BASE <= max_size:
                                sums[key] = sums.get(key, 0) + paths * factor
            rows.append(next_layer)
        return rows

    @property
    def ends(self) -> Keys:
        """Number of members by key."""
        rows = self.forward[-1]
        ends = rows[0] if rows else {}
        return ends if self._only is None else {key: n for key, n in ends.items() if key == self._only}

    @cached_property
    def count(self) -> int:
        """Number of members."""
        return sum(self.ends.values())

    @cached_property
    def completions(self) -> list[list[Keys]]:
        """Number of completions of each state and key of `forward`; keys without one are left out."""
        layers, multiplicities, deltas = self.lattice.layers, self.multiplicities, self.deltas
        rows: list[list[Keys]] = [[dict.fromkeys(self.ends, 1)] if layers[-1].states else []]
        for depth in range(len(layers) - 1, 0, -1):
            layer, next_layer = layers[depth], rows[-1]
            starts, targets, groups = layer.starts, layer.targets, layer.groups
            row: list[Keys] = []
            for source, keys in enumerate(self.forward[depth - 1]):
                sums: Keys = {}
                if keys:
                    ways = [
                        (factor, deltas[groups[t]], later)
                        for t in range(starts[source], starts[source + 1])
                        if (factor := multiplicities[groups[t]]) and (later := next_layer[targets[t]])
                    ]
                    # only keys of the forward pass: other keys have no path to complete
                    for key in keys:
                        total = 0
                        for factor, delta, later in ways:
                            paths = later.get(key + delta)
                            if paths:
                                total += factor * paths
                        if total:
                            sums[key] = total
                row.append(sums)
            rows.append(row)
        return rows[::-1]

    def flows(self) -> Mapping[int, int]:
        """Return, for each group, the number of members that have any one given formula of it."""
        flows: dict[int, int] = {}
        deltas = self.deltas
        for depth in range(1, len(self.lattice.layers)):
            layer, next_layer = self.lattice.layers[depth], self.completions[depth]
            starts, targets, groups = layer.starts, layer.targets, layer.groups
            for source, keys in enumerate(self.forward[depth - 1]):
                counts_here = self.completions[depth - 1][source]
                items = [(key, keys[key]) for key in counts_here]
                if not items:
                    continue
                for t in range(starts[source], starts[source + 1]):
                    later, group = next_layer[targets[t]], groups[t]
                    if not later or not self.multiplicities[group]:
                        continue
                    delta, total = deltas[group], 0
                    for key, paths in items:
                        paths_on = later.get(key + delta)
                        if paths_on:
                            total += paths * paths_on
                    if total:
                        flows[group] = flows.get(group, 0) + total
        return flows

    def draw_groups(self, below: Callable[[int], int]) -> list[int]:
        """Draw a path with probability proportional to its members; return its groups.

        below: function of n, a random integer from 0 to n - 1
        """
        state, key, chosen = 0, 0, []
        for depth in range(1, len(self.lattice.layers)):
            layer, next_layer = self.lattice.layers[depth], self.completions[depth]
            point = below(self.completions[depth - 1][state][key])
            for t in range(layer.starts[state], layer.starts[state + 1]):
                group, target = layer.groups[t], layer.targets[t]
                point -= self.multiplicities[group] * next_layer[target].get(key + self.deltas[group], 0)
                if point < 0:
                    chosen.append(group)
                    state, key = target, key + self.deltas[group]
                    break
        return chosen

    def paths(self) -> Iterator[list[int]]:
        """Yield the groups of every path with members, depth first."""
        if not self.completions[0] or not self.completions[0][0]:
            return
        yield from self._paths(1, 0, 0, [])

    def _paths(self, depth: int, state: int, key: int, chosen: list[int]) -> Iterator[list[int]]:
        if depth == len(self.lattice.layers):
            yield chosen
            return
        layer, next_layer = self.lattice.layers[depth], self.completions[depth]
        for t in range(layer.starts[state], layer.starts[state + 1]):
            group, target = layer.groups[t], layer.targets[t]
            next_key = key + self.deltas[group]
            if self.multiplicities[group] and next_key in next_layer[target]:
                yield from self._paths(depth + 1, target, next_key, [*chosen, group])


# --- Conditions on clauses, and the numbers of members by clause and by edge ------------------------------------------


@dataclass(frozen=True, slots=True)
class Marginals:
    """Clause or edge -> number of members that have it, sorted; those of no member are left out."""

    clauses: Mapping[Clause, int]
    edges: Mapping[Edge, int]


@dataclass(frozen=True, slots=True)
class Restriction:
    """Clauses that a member has (`present`) or lacks (`absent`)."""

    present: frozenset[Clause] = frozenset()
    absent: frozenset[Clause] = frozenset()

    def adding(self, clause: Clause, *, present: bool) -> Restriction:
        """Return the restriction with one more condition."""
        if present:
            return Restriction(self.present | {clause}, self.absent)
        return Restriction(self.present, self.absent | {clause})

    def words(self) -> list[str]:
        """Return the conditions in words, sorted."""
        return [*(f"with {c}" for c in sorted(self.present)), *(f"without {c}" for c in sorted(self.absent))]

    def admits(self, model: Model) -> bool:
        """Return whether a model meets the conditions."""
        return self.present <= model and not self.absent & model

    def multiplicities(self, lattice: Lattice) -> list[int]:
        """Return, for each group, the number of formulas that meet the conditions."""
        counts = list(lattice.steps.multiplicities)
        nodes = self._nodes(lattice)
        if None in nodes:
            return [0] * len(counts)
        for group in _groups(lattice):
            if lattice.steps.nodes[group] in nodes:
                counts[group] = len(self.formulas(lattice, group))
        return counts

    def _nodes(self, lattice: Lattice) -> set[int | None]:
        """Return the nodes with conditions; None among them if a node outside the lattice would need a formula."""
        number = lattice.network.number
        nodes: set[int | None] = {number.get(clause.target) for clause in self.present}
        return nodes | {number[clause.target] for clause in self.absent if clause.target in number}

    def formulas(self, lattice: Lattice, group: int) -> list[tuple[int, ...]]:
        """Return the formulas of a group that meet the conditions, as clause numbers."""
        formulas = lattice.steps.formulas(group)
        node = lattice.network.nodes[lattice.steps.nodes[group]]
        present = {clause for clause in self.present if clause.target == node}
        absent = {clause for clause in self.absent if clause.target == node}
        if not present and not absent:
            return formulas
        chosen = []
        for formula in formulas:
            clauses = set(lattice.formula(group, formula))
            if present <= clauses and not absent & clauses:
                chosen.append(formula)
        return chosen

    def marginals(self, lattice: Lattice, sums: PathSums) -> Marginals:
        """Return the numbers of members by clause and edge."""
        by_clause: dict[tuple[int, int], int] = {}
        by_edge: dict[tuple[int, int], int] = {}
        for group, flow in sums.flows().items():
            node = lattice.steps.nodes[group]
            masks = lattice.steps.clauses(node).literals
            for formula in self.formulas(lattice, group):
                literals = 0
                for number in formula:
                    by_clause[node, number] = by_clause.get((node, number), 0) + flow
                    literals |= masks[number]
                while literals:
                    low = literals & -literals
                    literals ^= low
                    edge = (node, low.bit_length() - 1)
                    by_edge[edge] = by_edge.get(edge, 0) + flow
        clauses = {lattice.clause(node, number): count for (node, number), count in by_clause.items()}
        edges = {_edge(lattice, node, literal): count for (node, literal), count in by_edge.items()}
        return Marginals(dict(sorted(clauses.items())), dict(sorted(edges.items())))


NO_RESTRICTION = Restriction()


def _groups(lattice: Lattice) -> Iterable[int]:
    return sorted({group for layer in lattice.layers for group in layer.groups})


def _edge(lattice: Lattice, node: int, literal: int) -> Edge:
    network = lattice.network
    source, sign = network.literals[node][literal]
    return Edge(network.stimuli[~source] if source < 0 else network.nodes[source], sign, network.nodes[node])


# --- Predictions: how many members give each answer of all readouts, by refining the states with candidate columns ----
MAX_REFINED_STATES = 100_000  # states of a layer; with more the list of candidates is halved

Table: TypeAlias = tuple[str, ...]


@dataclass(frozen=True)
class Predictions:
    """Answers of all readouts by experiment; an answer is a text of 0 and 1 in the order of readouts.

    outcomes: for each experiment, answer -> number of members; count: number of members
    tables: table (answers to all experiments) -> number of members, None if there are too many to count
    """

    experiments: tuple[Experiment, ...]
    outcomes: tuple[Mapping[str, int], ...]
    count: int
    tables: Mapping[Table, int] | None

    @property
    def behaviours(self) -> int | None:
        """Number of different tables; None if they were too many to count."""
        return None if self.tables is None else len(self.tables)

    def shares(self, index: int) -> tuple[Fraction, ...]:
        """Return, for each readout, the share of members that answer 1 in an experiment; `ValueError` without any."""
        outcomes = self.outcomes[index]
        if not outcomes:
            raise ValueError("no member predicts anything")
        width = len(next(iter(outcomes)))
        return tuple(
            Fraction(sum(n for text, n in outcomes.items() if text[r] == "1"), self.count) for r in range(width)
        )

    def sum_of_squared_counts(self, index: int) -> int:
        """Return the sum of the squared numbers of members by answer in an experiment."""
        return sum(n * n for n in self.outcomes[index].values())


def predict_outcomes(
    task: Task, lattice: Lattice, sums: PathSums, restriction: Restriction, experiments: Sequence[Experiment]
) -> Predictions:
    """Return the predictions of all members; `LatticeLimitError` if a single experiment has too many states."""
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
    """Pass over the transitions of a lattice that splits states by the responses of their nodes on further columns."""

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
        # state -> (responses of its slots, index of the answers so far) -> paths by key
        refined: dict[int, dict[tuple[tuple[int, ...], int], Keys]] = {0: {((), 0): {0: 1}}} if self.sums.count else {}
        for depth in range(1, len(lattice.layers)):
            refined = self._advance(depth, refined)
            if sum(map(len, refined.values())) > MAX_REFINED_STATES:
                raise _TooManyError
        return {
            self._answers[answer]: sum(keys.values())
            for states in refined.values()
            for (_, answer), keys in states.items()
        }

    def _advance(
        self, depth: int, refined: Mapping[int, Mapping[tuple[tuple[int, ...], int], Keys]]
    ) -> dict[int, dict[tuple[tuple[int, ...], int], Keys]]:
        lattice = self.lattice
        stage, layer, earlier = lattice.stages[depth - 1], lattice.layers[depth], lattice.layers[depth - 1]
        completions, multiplicities, deltas = self.sums.completions[depth], self.sums.multiplicities, self.sums.deltas
        slot_of = {v: i for i, v in enumerate(stage.slots)}
        next_layer: dict[int, dict[tuple[tuple[int, ...], int], Keys]] = {}
        size = 0
        for source, states in refined.items():
            base = (*earlier.states[source], *(0,) * stage.extend)
            for t in range(layer.starts[source], layer.starts[source + 1]):
                target, group = layer.targets[t], layer.groups[t]
                later = completions[target]
                if not later or not multiplicities[group]:
                    continue
                node, delta = lattice.steps.nodes[group], deltas[group]
                slots = [slot_of[p] for p in lattice.network.parents[node]]
                next_states = next_layer.setdefault(target, {})
                size_before = len(next_states)
                for (responses, answer), keys in states.items():
                    extended = (*responses, *(0,) * stage.extend)
                    key = tuple([extended[p] << 1 | (base[p] > 0 and base[p] >> 1 & 1) for p in slots])
                    # only keys with a completion: paths that exceed a limit later are dropped here
                    completable = [(k + delta, n) for k, n in keys.items() if k + delta in later]
                    if not completable:
                        continue
                    for response, ways in self._refine(group, key):
                        next_responses = self._after(
                            stage.project, extended, slot_of[node], response, layer.states[target]
                        )
                        next_answer = self._answer(answer, node, response)
                        sums = next_states.setdefault((next_responses, next_answer), {})
                        for k, n in completable:
                            sums[k] = sums.get(k, 0) + n * ways
                size += len(next_states) - size_before
                if size > MAX_REFINED_STATES:
                    raise _TooManyError
        return next_layer

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
        """Return pairs (response of formulas of a group on the further columns, number of these formulas)."""
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
    """Return the tables as texts, the answers of readouts that no formula changes included."""
    network = lattice.network
    position = {v: i for i, v in enumerate(sorted(network.readouts))}
    where = [columns.index_of(experiment) for experiment in experiments]
    tables: dict[Table, int] = {}
    for responses, count in answers.items():
        rows = []
        for experiment, column in zip(experiments, where, strict=True):
            digits = []
            for name in task.setup.readouts:
                if name in network.number:
                    digits.append("1" if responses[position[network.number[name]]] >> column & 1 else "0")
                else:
                    digits.append("1" if name in task.setup.stimuli and name in experiment.on else "0")
            rows.append("".join(digits))
        tables[tuple(rows)] = count
    return tables


def _by_experiment(tables: Mapping[Table, int], size: int) -> list[Mapping[str, int]]:
    outcomes: list[dict[str, int]] = [{} for _ in range(size)]
    for table, num_members in tables.items():
        for counts, answers in zip(outcomes, table, strict=True):
            counts[answers] = counts.get(answers, 0) + num_members
    return [dict(sorted(counts.items())) for counts in outcomes]


# --- The next experiment: the candidate with the least expected share of the family left ------------------------------


@dataclass(frozen=True)
class NextExperiment:
    """Candidate with the expected share of members left, if a uniformly drawn member is true and read without error.

    number: index of the candidate; squares: sum of the squared numbers of members by answer; share: squares / count**2
    is_done: for each candidate, see `find_done`
    """

    experiment: Experiment
    number: int
    squares: int
    share: Fraction
    predictions: Predictions
    is_done: tuple[bool, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the experiment and the expected share left, ready for JSON."""
        return {
            "stimuli": sorted(self.experiment.on),
            "inhibited": sorted(self.experiment.inhibited),
            "squares": str(self.squares),
            "share": float(self.share),
            "behaviours": self.predictions.behaviours,
        }


def choose_next(task: Task, predictions: Predictions, indices: Sequence[int]) -> NextExperiment | None:
    """Return the candidate of least sum of squares, the first in a tie; None without candidates or members.

    indices: indices of the candidates to compare
    """
    if not indices or not predictions.count:
        return None
    squares = {k: predictions.sum_of_squared_counts(k) for k in indices}
    best = min(indices, key=lambda k: (squares[k], k))
    return NextExperiment(
        predictions.experiments[best],
        best,
        squares[best],
        Fraction(squares[best], predictions.count**2),
        predictions,
        find_done(task, predictions.experiments),
    )


def rank_new(task: Task, predictions: Predictions) -> list[int]:
    """Return the indices of experiments that are neither done nor questions, by expected share left, ascending.

    Of experiments that differ only in clamps without effect, the first.
    """
    questions = {*task.questions}
    is_done = find_done(task, predictions.experiments)
    first = {clamps: k for k, clamps in reversed([*enumerate(_effective_clamps(task, predictions.experiments))])}
    indices = [k for k in sorted(first.values()) if not is_done[k] and predictions.experiments[k] not in questions]
    return sorted(indices, key=lambda k: (predictions.sum_of_squared_counts(k), k))


def find_done(task: Task, experiments: Sequence[Experiment]) -> tuple[bool, ...]:
    """Return, for each experiment, whether the task has one with the same clamps, apart from those without effect."""
    done = {*_effective_clamps(task, task.experiments)}
    return tuple(clamps in done for clamps in _effective_clamps(task, experiments))


def _effective_clamps(task: Task, experiments: Sequence[Experiment]) -> list[Experiment]:
    """Return the experiments restricted to nodes of the class and readouts: no model depends on other clamps."""
    effective = node_names(task.edges) | {*task.setup.readouts}
    return [Experiment(entry.on & effective, entry.inhibited & effective) for entry in experiments]
