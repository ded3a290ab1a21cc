"""Claims about logic models, checked by exhaustion with the reference interpreter, without a solver.

Nodes are placed one after another: every formula of a node is tried in every state. A state has the values of the
placed nodes that later ones may read, and counts the partial models by (misfit, size). A cell is the value of a readout
in an experiment. A readout that is not placed costs at least the cheaper answer of each of its cells. Strongly
connected components are placed by levels: a node's level is one more than the highest level of its sources in the
component. So each acyclic model is counted once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import msgspec

from calibrant.audits.claims import Certificate, ClaimKind, Verifier, checkpoint
from calibrant.dsl.logic import item, reference
from calibrant.dsl.logic.reference import clauses_into, formulas_over
from calibrant.dsl.text import plural

# --- Evidence of claims about logic models: prior, setup, experiments, discretised values, options --------------------


class ExperimentRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Clamps by name, sorted."""

    stimuli: list[str]
    inhibited: list[str]


class Evidence(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Visible task.

    values: discretised, None if not measured; fit, size: tolerances, size None for no limit
    """

    prior: list[tuple[str, int, str]]
    stimuli: list[str]
    inhibitors: list[str]
    readouts: list[str]
    experiments: list[ExperimentRecord]
    values: list[list[int | None]]
    factor: int
    compress: bool
    max_clause: int
    fit: str
    size: int | None


def evidence_of(task: item.Task) -> dict[str, Any]:
    """Return the evidence of a task as JSON."""
    setup = task.setup
    evidence = Evidence(
        [(edge.source, edge.sign, edge.target) for edge in sorted(set(task.prior))],
        list(setup.stimuli),
        list(setup.inhibitors),
        list(setup.readouts),
        [ExperimentRecord(sorted(x.on), sorted(x.inhibited)) for x in task.experiments],
        [list(row) for row in task.discretised],
        task.options.factor,
        task.options.compress,
        task.options.max_clause,
        task.tolerance.fit,
        task.tolerance.size,
    )
    content: dict[str, Any] = msgspec.to_builtins(evidence)
    return content


class Case:
    """Parsed evidence of a claim: the class, and misfits as the reference computes them."""

    def __init__(self, content: Any) -> None:
        """Parse evidence from JSON; msgspec's errors, `LogicError` or ValueError for another shape."""
        evidence = msgspec.convert(content, Evidence, strict=True)
        self.factor, self.values = evidence.factor, evidence.values
        self.experiments = [item.Experiment(frozenset(x.stimuli), frozenset(x.inhibited)) for x in evidence.experiments]
        self.setup = item.Setup(tuple(evidence.stimuli), tuple(evidence.inhibitors), tuple(evidence.readouts))
        options = item.Options(evidence.factor, "round", evidence.compress, evidence.max_clause)
        tolerance = item.Tolerance(evidence.fit, evidence.size)
        self.task = item.Task(
            tuple(item.Edge(*edge) for edge in evidence.prior), self.setup, (), (), options, tolerance
        )
        if len(self.values) != len(self.experiments) or any(len(r) != len(self.setup.readouts) for r in self.values):
            raise ValueError("values do not fit experiments and readouts")

    def misfit(self, model: Iterable[item.Clause]) -> int:
        """Return the misfit of an acyclic model."""
        clauses = list(model)
        total = 0
        for index, (experiment, row) in enumerate(zip(self.experiments, self.values, strict=True)):
            checkpoint("misfits by experiment", index, len(self.experiments))
            answers = reference.predict(clauses, self.setup, experiment)
            total += sum((self.factor * int(a) - d) ** 2 for a, d in zip(answers, row, strict=True) if d is not None)
        return total


def model_from_texts(texts: Iterable[str]) -> item.Model:
    """Return the model of clause texts; `ClauseError` for a text that is no clause."""
    clauses = []
    for index, text in enumerate(texts):
        checkpoint("clauses", index, index)
        clauses.append(item.parse_clause(text))
    return frozenset(clauses)


# --- Counting of members by a plain elimination that shares nothing with the solvers ----------------------------------
Points: TypeAlias = Counter[tuple[int, int]]  # (misfit, size) -> number of (partial) models


class Value(NamedTuple):
    """Value of a placed node.

    response: bit j is its value in experiment j; has_formula: its formula is not empty
    is_read: it is a readout with a formula, or the formula of a placed node mentions it
    """

    response: int
    has_formula: bool
    is_read: bool


Values: TypeAlias = tuple[tuple[str, Value], ...]  # of live nodes, by name
LevelState: TypeAlias = tuple[Values, frozenset[str], frozenset[str]]  # values, names of previous level, of this level


class Outcome(NamedTuple):
    """Outcome of a formula of a node.

    cost: misfit that the node adds if it is a readout; sources: nodes that the formula mentions, without stimuli
    """

    value: Value
    cost: int
    size: int
    sources: frozenset[str]


class Recount:
    """Counter of the models of one case."""

    def __init__(self, case: Case) -> None:
        setup, edges = case.setup, case.task.edges
        self.stimuli = set(setup.stimuli)
        useful = item.reachable(setup.stimuli, item.successors(edges)) & item.reachable(
            setup.readouts, item.predecessors(edges)
        )
        self.edges = [edge for edge in edges if {edge.source, edge.target} <= useful]
        self.nodes = sorted(useful - self.stimuli)
        self.readouts = set(setup.readouts) & set(self.nodes)
        self.children = item.successors(self.edges)
        self.parents = {v: sorted(item.predecessors(self.edges).get(v, set()) - self.stimuli) for v in self.nodes}
        grouped = item.edges_by_target(self.edges)
        self.formulas = {
            v: [tuple(sorted(f)) for f in formulas_over(clauses_into(grouped.get(v, []), case.task.options.max_clause))]
            for v in self.nodes
        }
        experiments = case.experiments
        self.full = (1 << len(experiments)) - 1
        self.on = {s: sum(1 << j for j, x in enumerate(experiments) if s in x.on) for s in setup.stimuli}
        self.active = {v: sum(1 << j for j, x in enumerate(experiments) if v not in x.inhibited) for v in self.nodes}
        self.constant = 0
        self.cells: dict[str, list[tuple[int, int]]] = {v: [(0, 0)] * len(experiments) for v in self.readouts}
        for j, row in enumerate(case.values):
            for name, value in zip(setup.readouts, row, strict=True):
                if value is not None:
                    # values are integers in units of 1 / factor
                    costs = value**2, (case.factor - value) ** 2
                    if name in self.readouts:
                        self.cells[name][j] = costs
                    else:
                        is_clamped_on = name in experiments[j].on and name in self.stimuli
                        self.constant += costs[is_clamped_on]
        self.bound = {v: sum(map(min, cells)) for v, cells in self.cells.items()}
        # an int, as misfits may exceed the range of floats
        self.greatest = sum(sum(map(max, cells)) for cells in self.cells.values())
        self._memo: dict[tuple[str, item.Clause | None, tuple[tuple[str, int], ...]], Counter[Outcome]] = {}

    def points(self, limit: int | None, without: item.Clause | None = None) -> Points:
        """Count the models by (misfit, size).

        limit: greatest misfit, None for any; without: count only models that lack this clause
        """
        max_misfit = self.greatest if limit is None else limit - self.constant
        states: dict[Values, Points] = {(): Counter({(0, 0): 1})}
        order = self._order()
        placed: set[str] = set()
        cost_of_rest = sum(self.bound.values())  # at least: misfit of the readouts that are not placed
        for index, unit in enumerate(order):
            checkpoint("members", index, len(order))
            placed.update(unit)
            cost_of_rest -= sum(self.bound.get(v, 0) for v in unit)
            following: dict[Values, Points] = {}
            for values, points in states.items():
                slack = max_misfit - cost_of_rest - min(misfit for misfit, _ in points)
                for after, extra, ways in self._placements(unit, dict(values), without, slack):
                    remaining = self._leave(after, placed)
                    if remaining is None:
                        continue
                    sums = following.setdefault(remaining, Counter())
                    for (misfit, size), paths in points.items():
                        if misfit + extra[0] + cost_of_rest <= max_misfit:
                            sums[misfit + extra[0], size + extra[1]] += paths * ways
            states = {values: points for values, points in following.items() if points}
        self._memo.clear()
        total: Points = Counter()
        for points in states.values():
            for (misfit, size), paths in points.items():
                total[misfit + self.constant, size] += paths
        return total

    def _leave(self, values: Mapping[str, Value], placed: set[str]) -> Values | None:
        """Return the values of nodes with a child that is not placed.

        None if another node has a formula and nothing reads it: such models are outside the class.
        """
        remaining = []
        for name, value in values.items():
            if self.children.get(name, set()) - self.stimuli <= placed:
                if value.has_formula and not value.is_read:
                    return None
            else:
                remaining.append((name, value))
        return tuple(sorted(remaining))

    def _order(self) -> list[tuple[str, ...]]:
        """Return the strongly connected components, parents first; of those possible, the one of the least frontier."""
        reach = {v: item.reachable([v], self.children) for v in self.nodes}
        units = sorted({tuple(sorted(u for u in reach[v] if u in reach and v in reach[u])) for v in self.nodes})
        order: list[tuple[str, ...]] = []
        placed: set[str] = set()
        while units:
            ready = [u for u in units if all(p in placed or p in u for v in u for p in self.parents[v])]
            best = min(ready, key=lambda u: (self._width(placed | set(u)), u))
            order.append(best)
            placed.update(best)
            units.remove(best)
        return order

    def _width(self, placed: set[str]) -> int:
        """Return the size of the frontier: nodes with a child that is not placed."""
        return sum(not self.children.get(v, set()) <= placed for v in placed)

    def _placements(
        self, unit: Sequence[str], values: dict[str, Value], without: item.Clause | None, max_misfit: int
    ) -> Iterator[tuple[dict[str, Value], tuple[int, int], int]]:
        """Yield the placements of a component of at most `max_misfit`: values, (misfit, size) added, number of ways."""
        if len(unit) == 1:
            (name,) = unit
            for outcome, ways in self._outcomes(name, values, without).items():
                if outcome.cost <= max_misfit:
                    yield self._placed(name, values, outcome), (outcome.cost, outcome.size), ways
            return
        yield from self._place_by_levels(unit, values, without, max_misfit)

    def _place_by_levels(
        self, unit: Sequence[str], values: dict[str, Value], without: item.Clause | None, max_misfit: int
    ) -> Iterator[tuple[dict[str, Value], tuple[int, int], int]]:
        """Yield as `_placements` does; each node is placed at its level or skipped at a level."""
        states: dict[LevelState, Points] = {
            (tuple(sorted(values.items())), frozenset(), frozenset()): Counter({(0, 0): 1})
        }
        for level in range(len(unit)):
            for name in unit:
                following: dict[LevelState, Points] = {}
                for (items, previous_level, this_level), points in states.items():
                    following.setdefault((items, previous_level, this_level), Counter()).update(points)
                    present = dict(items)
                    if name in present:
                        continue
                    available = {u: v for u, v in present.items() if u not in this_level}
                    for outcome, ways in self._outcomes(name, available, without).items():
                        if level and not outcome.sources & previous_level:
                            continue
                        after = self._placed(name, present, outcome)
                        cost = outcome.cost
                        sums = following.setdefault(
                            (tuple(sorted(after.items())), previous_level, this_level | {name}), Counter()
                        )
                        for (misfit, size), paths in points.items():
                            if misfit + cost <= max_misfit:
                                sums[misfit + cost, size + outcome.size] += paths * ways
                states = following
            next_states: dict[LevelState, Points] = {}
            for (items, _, this_level), points in states.items():
                if set(unit) <= dict(items).keys():
                    for point, paths in points.items():
                        yield dict(items), point, paths
                elif this_level:
                    next_states.setdefault((items, this_level, frozenset()), Counter()).update(points)
            states = next_states

    def _placed(self, name: str, values: Mapping[str, Value], outcome: Outcome) -> dict[str, Value]:
        after = {u: v._replace(is_read=True) if u in outcome.sources else v for u, v in values.items()}
        after[name] = outcome.value
        return after

    def _outcomes(self, name: str, values: Mapping[str, Value], without: item.Clause | None) -> Counter[Outcome]:
        """Count the outcomes of the formulas of a node, over sources that are stimuli or placed with a formula."""
        parents = [(u, values[u].response) for u in self.parents[name] if u in values and values[u].has_formula]
        key = (name, without, tuple(parents))
        if key not in self._memo:
            self._memo[key] = self._evaluate(name, {**self.on, **dict(parents)}, without)
        return self._memo[key]

    def _evaluate(self, name: str, responses: Mapping[str, int], without: item.Clause | None) -> Counter[Outcome]:
        outcomes: Counter[Outcome] = Counter()
        for formula in self.formulas[name]:
            if without in formula or any(source not in responses for clause in formula for source in clause.sources):
                continue
            response, size = 0, 0
            for clause in formula:
                true = self.active[name]
                for source, sign in clause.literals:
                    true &= responses[source] if sign == 1 else ~responses[source]
                response |= true
                size += len(clause.literals)
            sources = frozenset(source for clause in formula for source in clause.sources) - self.stimuli
            value = Value(response, bool(formula), name in self.readouts and bool(formula))
            outcomes[Outcome(value, self._cost(name, value), size, sources)] += 1
        return outcomes

    def _cost(self, name: str, value: Value) -> int:
        return sum(cell[value.response >> j & 1] for j, cell in enumerate(self.cells.get(name, ())))


# --- Checks of certificates about logic models by replay and by the count above ---------------------------------------


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Tolerances, and the optimum that they are relative to.

    fit: decimal text or "any"; size: None for no limit
    """

    fit: str
    size: int | None
    least_misfit: int
    least_size: int

    @property
    def misfit_limit(self) -> int | None:
        """The greatest misfit of members."""
        return item.fit_limit(self.least_misfit, self.fit)

    @property
    def size_limit(self) -> int | None:
        """The greatest size of members."""
        return None if self.size is None else self.least_size + self.size


class CountData(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Data of a count; numbers of members are texts, as they exceed 64 bits.

    spectrum: (misfit, size, members); clauses: clause -> members that have it
    """

    limits: Limits
    count: str
    spectrum: list[tuple[int, int, str]]
    clauses: dict[str, str]


class OpenData(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Two members, as clause texts.

    part: a clause, or an edge as `source sign target`, that `having` has and `lacking` lacks
    """

    limits: Limits
    part: str
    having: list[str]
    lacking: list[str]


class BetterData(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Two models, as clause texts: the first one, and a model of the class with less misfit."""

    model: list[str]
    better: list[str]


class MissingData(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A list of models and a member that is not in it, as clause texts."""

    limits: Limits
    member: list[str]
    listed: list[list[str]]


def _count(evidence: Any, certificate: Certificate) -> str:
    data = msgspec.convert(certificate.data, CountData, strict=True)
    case, limits = Case(evidence), data.limits
    if reason := _other_tolerances(case, limits):
        return reason
    recount = Recount(case)
    points = recount.points(limits.misfit_limit)
    if not points:
        return f"no model has misfit {limits.misfit_limit} or less"
    least = min(points)
    if least != (limits.least_misfit, limits.least_size):
        return f"the optimum is misfit {least[0]}, size {least[1]}"
    members = _within_size(points, limits)
    spectrum = [(misfit, size, str(number)) for (misfit, size), number in sorted(members.items())]
    if spectrum != data.spectrum:
        return "the spectrum is another one"
    if str(members.total()) != data.count:
        return f"there are {members.total()} members"
    for text, number in data.clauses.items():
        clause = item.parse_clause(text)
        if str(clause) != text:
            return f"clause {text} is written {clause}"
        lacking = _within_size(recount.points(limits.misfit_limit, without=clause), limits).total()
        if str(members.total() - lacking) != number:
            return f"{members.total() - lacking} members have {text}"
    return ""


def _other_tolerances(case: Case, limits: Limits) -> str:
    """Return why the tolerances of a certificate are not those of the item, "" if they are."""
    tolerance = case.task.tolerance
    if (limits.fit, limits.size) == (tolerance.fit, tolerance.size):
        return ""
    stated, actual = (
        f"fit {fit} and size {'none' if size is None else size}"
        for fit, size in ((limits.fit, limits.size), (tolerance.fit, tolerance.size))
    )
    return f"it states {stated}; the item has {actual}"


def _within_size(points: Points, limits: Limits) -> Points:
    """Return the points of at most the size limit."""
    size_limit = limits.size_limit
    return Counter({point: n for point, n in points.items() if n and (size_limit is None or point[1] <= size_limit)})


def _open(evidence: Any, certificate: Certificate) -> str:
    data = msgspec.convert(certificate.data, OpenData, strict=True)
    case = Case(evidence)
    having, lacking = model_from_texts(data.having), model_from_texts(data.lacking)
    for model in (having, lacking):
        reason = _not_member(model, case, data.limits)
        if reason:
            return reason
    if not _has(having, data.part):
        return f"the first member has no {data.part}"
    return f"the second member has {data.part}" if _has(lacking, data.part) else ""


def _has(model: item.Model, part: str) -> bool:
    parts = {str(clause) for clause in model} | {str(edge) for clause in model for edge in clause.edges}
    return part in parts


def _not_member(model: item.Model, case: Case, limits: Limits) -> str:
    """Return why a model is no member of the item's family with the stated optimum, "" if it is one."""
    if reason := _other_tolerances(case, limits):
        return reason
    rule = reference.class_violation(model, case.task)
    if rule:
        return f"a model outside the class: {rule}"
    misfit, size = case.misfit(model), item.model_size(model)
    if limits.misfit_limit is not None and misfit > limits.misfit_limit:
        return f"a model of misfit {misfit}, above the limit {limits.misfit_limit}"
    if limits.size_limit is not None and size > limits.size_limit:
        return f"a model of size {size}, above the limit {limits.size_limit}"
    if (misfit, size) < (limits.least_misfit, limits.least_size):
        return f"a model of misfit {misfit} and size {size}, below the stated optimum"
    return ""


def _better(evidence: Any, certificate: Certificate) -> str:
    data = msgspec.convert(certificate.data, BetterData, strict=True)
    case = Case(evidence)
    model, better = model_from_texts(data.model), model_from_texts(data.better)
    rule = reference.class_violation(better, case.task)
    if rule:
        return f"the better model is outside the class: {rule}"
    if not reference.is_acyclic(model):
        return "the given model has a cycle"
    misfits = case.misfit(model), case.misfit(better)
    return "" if misfits[1] < misfits[0] else f"misfit {misfits[1]} is not less than {misfits[0]}"


def _missing(evidence: Any, certificate: Certificate) -> str:
    data = msgspec.convert(certificate.data, MissingData, strict=True)
    member = model_from_texts(data.member)
    reason = _not_member(member, Case(evidence), data.limits)
    if reason:
        return reason
    return "the list has the member" if member in map(model_from_texts, data.listed) else ""


def class_words(evidence: Any) -> str:
    """Return the class of the evidence in words."""
    case = Case(evidence)
    longest = case.task.options.max_clause
    merged = "merged " if case.task.options.compress else ""
    clauses = f"clauses of at most {longest} literals" if longest else "clauses of any length"
    return f"acyclic logic models over {plural(len(case.task.edges), f'{merged}edges')}, {clauses}"


def family_words(evidence: Any, limits: Limits) -> str:
    """Return a family (class and limits of misfit and size) in words."""
    misfit = "any misfit" if limits.misfit_limit is None else f"misfit at most {limits.misfit_limit}"
    size = "any size" if limits.size_limit is None else f"size at most {limits.size_limit}"
    return f"{class_words(evidence)}, {misfit}, {size}"


def conditional_words(evidence: Any, limits: Limits) -> str:
    """Return in words a family whose optimum is stated and not verified."""
    return (
        f"{family_words(evidence, limits)}, if the least misfit is {limits.least_misfit} "
        f"and the least size at it {limits.least_size}"
    )


def _count_words(evidence: Any, certificate: Certificate) -> str:
    return family_words(evidence, msgspec.convert(certificate.data, CountData, strict=True).limits)


def _open_words(evidence: Any, certificate: Certificate) -> str:
    return conditional_words(evidence, msgspec.convert(certificate.data, OpenData, strict=True).limits)


def _missing_words(evidence: Any, certificate: Certificate) -> str:
    return conditional_words(evidence, msgspec.convert(certificate.data, MissingData, strict=True).limits)


def _count_statement(certificate: Certificate) -> str:
    count = int(msgspec.convert(certificate.data, CountData, strict=True).count)
    return f"{count:,} {'model fits' if count == 1 else 'models fit'}, counted again"


def _open_statement(certificate: Certificate) -> str:
    return (
        f"{msgspec.convert(certificate.data, OpenData, strict=True).part} is in a model that fits, and not in another"
    )


VERIFIERS: Mapping[str, Verifier] = MappingProxyType(
    {
        "logic-count": ClaimKind(CountData, _count_words, _count, _count_statement),
        "logic-open": ClaimKind(OpenData, _open_words, _open, _open_statement),
        "logic-better": ClaimKind(
            BetterData,
            lambda evidence, certificate: class_words(evidence),
            _better,
            lambda certificate: "a model of the class has less misfit than the one given",
        ),
        "logic-missing": ClaimKind(
            MissingData, _missing_words, _missing, lambda certificate: "a model that fits is not in the list"
        ),
    }
)
