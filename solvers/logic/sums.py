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

# --- Sums over the paths of a lattice: numbers of members by (misfit, size), completions, and what follows from
# both
Keys: TypeAlias = dict[int, int]  # misfit * SIZE_BASE + size -> number


class PathSums:
    """Passes 3 and 4 for multiplicities of the groups.

    A key is misfit * SIZE_BASE + size of a path so far; either component can be left out.
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
        """with_misfit, with_size: components of keys; only: paths that end with this key alone."""
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
    def _tops(self) -> list[list[int]]:
        """First key of each state that no completion brings within the misfit limit."""
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
            following, row = rows[-1], []
            for source in range(len(layer.starts) - 1):
                span = range(layer.starts[source], layer.starts[source + 1])
                row.append(min((sizes[layer.groups[at]] + following[layer.targets[at]] for at in span), default=0))
            rows.append(row)
        return rows[::-1]

    @cached_property
    def forward(self) -> list[list[Keys]]:
        """Number of paths to each state of each layer, by key."""
        layers, multiplicities, deltas = self.lattice.layers, self.multiplicities, self.deltas
        rows: list[list[Keys]] = [[{0: 1} for _ in layers[0].states]]
        limit = self.size_limit if self._with_size else None
        for number in range(1, len(layers)):
            layer, tops = layers[number], self._tops[number]
            following: list[Keys] = [{} for _ in layer.states]
            starts, targets, groups = layer.starts, layer.targets, layer.groups
            most = [limit - size for size in self._least_sizes[number]] if limit is not None else []
            for source, keys in enumerate(rows[-1]):
                if not keys:
                    continue
                items = list(keys.items())
                for at in range(starts[source], starts[source + 1]):
                    group = groups[at]
                    factor = multiplicities[group]
                    if not factor:
                        continue
                    target, delta = targets[at], deltas[group]
                    top, sums = tops[target], following[target]
                    if limit is None:
                        for key, paths in items:
                            key += delta
                            if key < top:
                                sums[key] = sums.get(key, 0) + paths * factor
                    else:
                        room = most[target]
                        for key, paths in items:
                            key += delta
                            if key < top and key % SIZE_BASE <= room:
                                sums[key] = sums.get(key, 0) + paths * factor
            rows.append(following)
        return rows

    @property
    def ends(self) -> Keys:
        """The number of members by key."""
        rows = self.forward[-1]
        ends = rows[0] if rows else {}
        return ends if self._only is None else {key: n for key, n in ends.items() if key == self._only}

    @cached_property
    def count(self) -> int:
        """The number of members."""
        return sum(self.ends.values())

    @cached_property
    def completions(self) -> list[list[Keys]]:
        """Number of completions of each state and key of `forward`; keys without any are left out."""
        layers, multiplicities, deltas = self.lattice.layers, self.multiplicities, self.deltas
        rows: list[list[Keys]] = [[dict.fromkeys(self.ends, 1)] if layers[-1].states else []]
        for number in range(len(layers) - 1, 0, -1):
            layer, following = layers[number], rows[-1]
            starts, targets, groups = layer.starts, layer.targets, layer.groups
            row: list[Keys] = []
            for source, keys in enumerate(self.forward[number - 1]):
                sums: Keys = {}
                if keys:
                    ways = [
                        (factor, deltas[groups[at]], ahead)
                        for at in range(starts[source], starts[source + 1])
                        if (factor := multiplicities[groups[at]]) and (ahead := following[targets[at]])
                    ]
                    # keys of the forward pass alone: completions of keys that no path has are never summed
                    for key in keys:
                        total = 0
                        for factor, delta, ahead in ways:
                            paths = ahead.get(key + delta)
                            if paths:
                                total += factor * paths
                        if total:
                            sums[key] = total
                row.append(sums)
            rows.append(row)
        return rows[::-1]

    def flows(self) -> Mapping[int, int]:
        """Return of each group the number of members with one certain formula of it."""
        flows: dict[int, int] = {}
        deltas = self.deltas
        for number in range(1, len(self.lattice.layers)):
            layer, following = self.lattice.layers[number], self.completions[number]
            starts, targets, groups = layer.starts, layer.targets, layer.groups
            for source, keys in enumerate(self.forward[number - 1]):
                behind = self.completions[number - 1][source]
                items = [(key, keys[key]) for key in behind]
                if not items:
                    continue
                for at in range(starts[source], starts[source + 1]):
                    ahead, group = following[targets[at]], groups[at]
                    if not ahead or not self.multiplicities[group]:
                        continue
                    delta, total = deltas[group], 0
                    for key, paths in items:
                        rest = ahead.get(key + delta)
                        if rest:
                            total += paths * rest
                    if total:
                        flows[group] = flows.get(group, 0) + total
        return flows

    def draw_groups(self, below: Callable[[int], int]) -> list[int]:
        """Return the groups of a path drawn with its share of the members.

        below: an integer from 0 to its argument
        """
        state, key, chosen = 0, 0, []
        for number in range(1, len(self.lattice.layers)):
            layer, following = self.lattice.layers[number], self.completions[number]
            point = below(self.completions[number - 1][state][key])
            for at in range(layer.starts[state], layer.starts[state + 1]):
                group, target = layer.groups[at], layer.targets[at]
                point -= self.multiplicities[group] * following[target].get(key + self.deltas[group], 0)
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

    def _paths(self, number: int, state: int, key: int, chosen: list[int]) -> Iterator[list[int]]:
        if number == len(self.lattice.layers):
            yield chosen
            return
        layer, following = self.lattice.layers[number], self.completions[number]
        for at in range(layer.starts[state], layer.starts[state + 1]):
            group, target = layer.groups[at], layer.targets[at]
            after = key + self.deltas[group]
            if self.multiplicities[group] and after in following[target]:
                yield from self._paths(number + 1, target, after, [*chosen, group])


# --- Conditions on clauses, and the numbers of members by clause and by edge ------------------------------------------


@dataclass(frozen=True, slots=True)
class Marginals:
    """Numbers of members that have a clause or an edge, sorted; those of no member are left out."""

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
        return [f"with {clause}" for clause in sorted(self.present)] + [
            f"without {clause}" for clause in sorted(self.absent)
        ]

    def admits(self, model: Model) -> bool:
        """Return whether a model meets the conditions."""
        return self.present <= model and not self.absent & model

    def multiplicities(self, lattice: Lattice) -> list[int]:
        """Return of each group the number of formulas that meet the conditions."""
        numbers = list(lattice.steps.multiplicities)
        nodes = self._nodes(lattice)
        if None in nodes:
            return [0] * len(numbers)
        for group in _groups(lattice):
            if lattice.steps.nodes[group] in nodes:
                numbers[group] = len(self.formulas(lattice, group))
        return numbers

    def _nodes(self, lattice: Lattice) -> set[int | None]:
        """Return the nodes with conditions; None among them if one of no use would need a formula."""
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
    is_done: of each candidate, see `find_done`
    """

    experiment: Experiment
    number: int
    squares: int
    share: Fraction
    predictions: Predictions
    is_done: tuple[bool, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the experiment and what it is expected to leave, ready for JSON."""
        return {
            "stimuli": sorted(self.experiment.on),
            "inhibited": sorted(self.experiment.inhibited),
            "squares": str(self.squares),
            "share": float(self.share),
            "behaviours": self.predictions.behaviours,
        }


def choose_next(task: Task, predictions: Predictions, numbers: Sequence[int]) -> NextExperiment | None:
    """Return the first of some candidates of the least sum of squares; None without candidates or members.

    numbers: positions of the candidates that are compared
    """
    if not numbers or not predictions.count:
        return None
    squares = {number: predictions.sum_of_squared_counts(number) for number in numbers}
    number = min(numbers, key=lambda k: (squares[k], k))
    return NextExperiment(
        predictions.experiments[number],
        number,
        squares[number],
        Fraction(squares[number], predictions.count**2),
        predictions,
        find_done(task, predictions.experiments),
    )


def rank_new(task: Task, predictions: Predictions) -> list[int]:
    """Return the experiments neither done nor asked for, by the expected share of members left, ascending.

    Of several that differ in clamps without effect alone the first.
    """
    barred = {*task.questions}
    is_done = find_done(task, predictions.experiments)
    first = {clamps: k for k, clamps in reversed([*enumerate(_effective_clamps(task, predictions.experiments))])}
    numbers = [k for k in sorted(first.values()) if not is_done[k] and predictions.experiments[k] not in barred]
    return sorted(numbers, key=lambda k: (predictions.sum_of_squared_counts(k), k))


def find_done(task: Task, experiments: Sequence[Experiment]) -> tuple[bool, ...]:
    """Return of each experiment whether one of the task's has the same clamps, those of nodes without effect apart."""
    done = {*_effective_clamps(task, task.experiments)}
    return tuple(clamps in done for clamps in _effective_clamps(task, experiments))


def _effective_clamps(task: Task, experiments: Sequence[Experiment]) -> list[Experiment]:
    """Return the clamps of nodes that the class or the readouts have: no model depends on others."""
    effective = node_names(task.edges) | {*task.setup.readouts}
    return [Experiment(entry.on & effective, entry.inhibited & effective) for entry in experiments]
