"""Why the readings of a laboratory leave its graph or frequency open, in parts and in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import isnan

import msgspec
import numpy as np

from calibrant.audits.causalab.attribution import LabSpace, space_of
from calibrant.audits.why import (
    AnswerShare,
    Count,
    Experiment,
    Fact,
    Outcome,
    Span,
    State,
    Why,
    experiment,
    listed,
    number_text,
    spans,
)
from calibrant.dsl.causalab.episode import LabStep, last_edges
from calibrant.dsl.causalab.item import Family, LabItem, Task
from calibrant.dsl.causalab.mechanism import FREQUENCY, Edge, Mechanism
from calibrant.dsl.text import plural
from calibrant.solvers.causalab.evidence import Evidence, Floats, evidence_of, linear_matrix, predict_frequency
from calibrant.solvers.causalab.experiments import candidates
from calibrant.solvers.causalab.noisy import NoisyDags
from calibrant.solvers.causalab.space import (
    MAX_LISTED,
    Integers,
    Local,
    Setting,
    WeightedDags,
    predict_frequencies,
    readings_of,
    weighted_dags,
)
from calibrant.solvers.outcome import BudgetSpent

# --- The parts of the reason for a laboratory -------------------------------------------------------------------------


class EdgeCount(msgspec.Struct, frozen=True):
    """In how many of the mechanisms that fit an edge occurs."""

    cause: str
    effect: str
    number: str


class RuledOut(msgspec.Struct, frozen=True):
    """An edge of no mechanism that fits.

    reading: number of the first reading, from 1, after which none has it; 0: the class has no such edge
    """

    cause: str
    effect: str
    reading: int


class LabReading(msgspec.Struct, frozen=True):
    """A row of the records or a reading of the manipulator; changed: the property that was set, empty for none."""

    changed: str
    values: dict[str, float]


class LabMember(msgspec.Struct, frozen=True):
    """A mechanism that fits.

    equations: of each node in words; prediction: frequency of the reactor
    """

    equations: dict[str, str]
    prediction: str


class LabWitness(msgspec.Struct, frozen=True):
    """A setting that tells the pair apart, and what each of the two then reads, node by node."""

    in_words: str
    first: dict[str, float]
    second: dict[str, float]


class LabWhy(Why, frozen=True, kw_only=True):
    """The reason for a laboratory after some settings; experiments: every property that may be set, best first.

    edges: that some mechanism has; ruled_out: the others; never_set: causes in open edges that were not set
    weighted: whether counts are weights of a posterior, because readings are noisy
    pair, witness: two mechanisms that fit, and a setting that tells them apart, where mechanisms are listed
    model: the only mechanism that fits
    jointly: two settings that together decide, whatever they read; () where one does, or none was proven to
    contradicted: stated edges that no mechanism has; true_edges: of the sealed mechanism, where that is revealed
    """

    nodes: tuple[str, ...]
    readings: tuple[LabReading, ...]
    edges: tuple[EdgeCount, ...]
    ruled_out: tuple[RuledOut, ...]
    frequencies: tuple[AnswerShare, ...]
    never_set: tuple[str, ...]
    experiments: tuple[Experiment, ...]
    weighted: bool = False
    pair: tuple[LabMember, LabMember] | None = None
    witness: LabWitness | None = None
    model: LabMember | None = None
    jointly: tuple[str, ...] = ()
    contradicted: tuple[tuple[str, str], ...] = ()
    true_edges: tuple[tuple[str, str], ...] | None = None


# --- Two mechanisms that fit, side by side, and what settings would read under listed mechanisms ----------------------
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
        weights = sorted(member.weights(node).items())
        terms = [cause if weight == 1 else f"{weight:g} * {cause}" for cause, weight in weights]
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


# --- Reason and facts of a laboratory in words; frequency and graph in separate sentences -----------------------------
UNKNOWN = "not shown"  # the frequency, where the reactor hides a cause of it


def reason(
    state: State, frequencies: Sequence[AnswerShare], open_edges: int, certain_edges: int, never_set: Sequence[str]
) -> tuple[Span, ...]:
    """Return two sentences: the frequency, then the graph."""
    if state == "empty":
        return spans("No mechanism of the class gives these readings.")
    values = [share.answer for share in frequencies if share.answer != UNKNOWN]
    if len(frequencies) == 1 and values:
        first = spans("The frequency is decided: ", (values[0],), ". ")
    elif not values:
        first = spans("The frequency is open: ", ("the reactor does not show what causes it",), ". ")
    else:
        hidden = ", and in some the reactor hides what causes it" if len(values) < len(frequencies) else ""
        first = spans("The frequency is open: ", (f"{_numbered(values, 'value fits', 'values fit')}{hidden}",), ". ")
    if not open_edges:
        return (*first, *spans(f"The graph is decided: {plural(certain_edges, 'edges')}."))
    stay = f"The graph is not: {_in_words(open_edges)} edge{'s stay' if open_edges > 1 else ' stays'} open"
    if len(values) != 1 or len(frequencies) != 1:
        stay = stay.replace("The graph is not", "The graph is open too", 1)
    if not never_set:
        return (*first, *spans(f"{stay} though each of their causes was set."))
    if len(never_set) == 1:
        return (*first, *spans(f"{stay}, because ", (never_set[0],), " was not set."))
    if len(never_set) == 2:
        return (*first, *spans(f"{stay}, because neither ", (never_set[0],), " nor ", (never_set[1],), " was set."))
    return (*first, *spans(f"{stay}, because ", (listed(list(never_set)),), " were not set."))


def uncounted_reason(cause: str) -> tuple[Span, ...]:
    return spans("The mechanisms that fit are not counted: ", (cause,), ".")


def facts(
    state: State,
    count_words: str,
    frequencies: Sequence[AnswerShare],
    numbers: tuple[int, int, int],
    class_words: str,
    experiments: Sequence[Experiment],
    *,
    weighted: bool,
) -> tuple[Fact, ...]:
    """Return the facts; numbers: of edges that are proven, open and ruled out; count_words: how many mechanisms fit."""
    proven, num_open, num_ruled_out = numbers
    if len(frequencies) == 1 and frequencies[0].answer != UNKNOWN:
        listed_facts = [Fact(f"frequency decided: {frequencies[0].answer}", "good")]
    else:
        listed_facts = [Fact(f"{len(frequencies)} frequencies", "warn")]
    words = "mechanisms weighted by their noise" if weighted else count_words
    listed_facts.append(Fact(words, "good" if state == "decided" else "warn"))
    listed_facts.append(Fact(f"{plural(proven, 'edges')} proven", "good" if proven else ""))
    if num_open:
        listed_facts.append(Fact(f"{num_open} open, {num_ruled_out} ruled out", "warn"))
    listed_facts.append(Fact(class_words))
    if experiments:
        listed_facts.append(
            Fact("one setting decides" if experiments[0].decides else "no single setting is sure to decide")
        )
    return tuple(listed_facts)


def share_text(number: int, total: int, *, weighted: bool) -> str:
    """Return how many of all mechanisms; as percent where they are weighted, never 0 or 100 of what is open."""
    if not weighted:
        return f"{number_text(number)} of {number_text(total)}"
    percent = 100 * number / total
    if 0 < percent < 1:
        return "below 1 %"
    return "above 99 %" if 99 < percent < 100 else f"{percent:.0f} %"


def _numbered(entries: Sequence[str], singular: str, plural: str) -> str:
    return f"{len(entries)} {singular if len(entries) == 1 else plural}"


def _in_words(number: int) -> str:
    names = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
    return names[number] if number < len(names) else str(number)


# --- Why the readings of a laboratory leave its graph or frequency open, and which setting leaves least ---------------
MAX_PREFIXES = 40  # readings after each of which edges are counted


def explain(item: LabItem, steps: Sequence[LabStep], *, reveal_sealed: bool = False) -> LabWhy:
    """Return the reason after these settings; what is sealed is read with `reveal_sealed` alone.

    Bases may have any value, as in the attribution of runs.
    """
    evidence = evidence_of(item.task, steps)
    try:
        space = space_of(item.task, steps, bounded=False)
        why = _explained(item, steps, evidence, space, reveal_sealed=reveal_sealed)
    except BudgetSpent as spent:
        why = _uncounted(item, evidence, str(spent))
    if not reveal_sealed:
        return why
    edges = tuple(sorted(item.sealed.mechanism.edges))
    frequency = Fact(f"true frequency: {item.sealed.target:g}", "gold")
    return _replaced(why, true_edges=edges, sealed=(frequency, Fact(f"{len(edges)} true edges", "gold")))


def _replaced(why: LabWhy, **changes: object) -> LabWhy:
    import msgspec

    changed: LabWhy = msgspec.structs.replace(why, **changes)
    return changed


def _title(item: LabItem, state: State) -> str:
    if state == "decided":
        return f"Which mechanism does \u201c{item.id}\u201d have?"
    return f"Why is \u201c{item.id}\u201d {'contradictory' if state == 'empty' else 'still open'}?"


def _explained(
    item: LabItem, steps: Sequence[LabStep], evidence: Evidence, space: LabSpace, *, reveal_sealed: bool
) -> LabWhy:
    frequencies = _frequencies(space)
    weighted = isinstance(space, NoisyDags)
    state: State = "open"
    if not space.count:
        state = "empty"
    elif len(frequencies) == 1 and frequencies[0].answer != UNKNOWN and space.graph_decided:
        state = "decided"
    open_edges = sorted(space.possible_edges - space.certain_edges)
    causes = {cause for cause, _ in open_edges}
    moved = {evidence.nodes[row.changed] for row in evidence.observations if row.changed is not None}
    never_set = tuple(name for name in item.task.settable if name not in moved and name in causes)
    truth = item.sealed.mechanism if reveal_sealed else None
    listed = isinstance(space, WeightedDags) and state == "open" and not item.task.noise
    entries = experiments(space, truth) if listed and isinstance(space, WeightedDags) else ()
    pair = nearest_pair(space) if listed and isinstance(space, WeightedDags) else None
    ruled_out = tuple(_ruled_out(item.task, steps, evidence, space)) if space.count else ()
    counted = Count(lower=str(space.count), upper=str(space.count))
    numbers = len(space.certain_edges), len(open_edges), len(ruled_out)
    why = LabWhy(
        benchmark="causalab",
        item=item.id,
        title=_title(item, state),
        state=state,
        reason=reason(state, frequencies, len(open_edges), len(space.certain_edges), never_set),
        facts=facts(
            state,
            _count_words(item, steps, space),
            frequencies,
            numbers,
            _class_words(space),
            entries,
            weighted=weighted,
        ),
        open=tuple(f"{cause} to {effect}" for cause, effect in open_edges),
        decided=tuple(f"{cause} to {effect}" for cause, effect in sorted(space.certain_edges)),
        count=counted,
        class_in_words=space.in_words,
        nodes=evidence.nodes,
        readings=tuple(_readings(evidence)),
        edges=tuple(EdgeCount(c, e, str(n)) for (c, e), n in sorted(space.edge_counts.items())),
        ruled_out=ruled_out,
        frequencies=frequencies,
        never_set=never_set,
        experiments=entries,
        weighted=weighted,
        contradicted=tuple(sorted(last_edges(steps) - space.possible_edges)) if space.count else (),
    )
    if not isinstance(space, WeightedDags):
        return why
    if space.count == 1:
        return _replaced(why, model=member_record(space, space.matrices[0]))
    if pair is None:
        return why
    first, second = pair
    return _replaced(
        why,
        pair=(member_record(space, first), member_record(space, second)),
        witness=witness(space, first, second, entries),
        jointly=jointly_deciding(space, entries),
    )


def _count_words(item: LabItem, steps: Sequence[LabStep], space: LabSpace) -> str:
    """Return how many mechanisms fit, and of how many before the first setting."""
    number = number_text(space.count)
    fits = "fits" if space.count == 1 else "fit"
    if not any(step.cost for step in steps) or isinstance(space, NoisyDags):
        return f"{number} {'mechanism' if space.count == 1 else 'mechanisms'} {fits}"
    total = space_of(item.task, (), bounded=False).count
    return f"{number} of {number_text(total)} {'mechanism' if total == 1 else 'mechanisms'} {fits}"


def _uncounted(item: LabItem, evidence: Evidence, cause: str) -> LabWhy:
    return LabWhy(
        benchmark="causalab",
        item=item.id,
        title=_title(item, "uncounted"),
        state="uncounted",
        reason=uncounted_reason(cause),
        facts=(Fact("not counted", "warn"), Fact(f"{len(evidence.observations)} readings")),
        open=(),
        decided=(),
        count=Count(lower="0", upper=None),
        class_in_words=cause,
        nodes=evidence.nodes,
        readings=tuple(_readings(evidence)),
        edges=(),
        ruled_out=(),
        frequencies=(),
        never_set=(),
        experiments=(),
    )


def _frequencies(space: LabSpace) -> tuple[AnswerShare, ...]:
    """Return the frequencies that some mechanism predicts; last that the reactor does not show it."""
    numbers = dict(space.verdicts())
    shown_values = sorted((value, number) for value, number in numbers.items() if not isnan(value))
    unknown = sum(number for value, number in numbers.items() if isnan(value))
    shares = [AnswerShare(f"{value:g}", str(number)) for value, number in shown_values]
    return (*shares, *([AnswerShare(UNKNOWN, str(unknown))] if unknown else []))


def _readings(evidence: Evidence) -> Iterator[LabReading]:
    for row in evidence.observations:
        changed = "" if row.changed is None else evidence.nodes[row.changed]
        yield LabReading(changed, dict(zip(evidence.nodes, row.values, strict=True)))


def _class_words(space: LabSpace) -> str:
    if isinstance(space, WeightedDags):
        return "linear, weights 1, 2, 3, no noise"
    return "linear, weights 1, 2, 3, with noise" if isinstance(space, NoisyDags) else "quadratic, no noise"


@dataclass(frozen=True)
class _Prefixes:
    """Edges that are possible after the first readings, by their number.

    Readings are added to the evidence alone, so an edge that is ruled out stays ruled out, but for mean residuals of
    quadratic laboratories: there steps are added to the task.
    """

    task: Task
    steps: Sequence[LabStep]
    evidence: Evidence

    def possible(self) -> Iterator[tuple[int, frozenset[Edge]]]:
        """Yield numbers of readings, ascending, with the edges that some mechanism then has."""
        number = len(self.evidence.observations)
        if self.task.family is Family.LINEAR and not self.task.noise and number <= MAX_PREFIXES:
            for k in range(1, number):
                first = self.evidence.observations[:k]
                fresh = self.evidence.fresh & {observation.crystal for observation in first}
                part = replace(self.evidence, observations=first, fresh=fresh)
                yield k, weighted_dags(part, bounded=False).possible_edges
            return
        settings = [k for k, step in enumerate(self.steps) if "set" in step.action and step.reading is not None]
        start = number - len(settings)
        for done, k in enumerate(settings[:MAX_PREFIXES]):
            yield start + done, space_of(self.task, self.steps[:k], bounded=False).possible_edges


def _ruled_out(task: Task, steps: Sequence[LabStep], evidence: Evidence, space: LabSpace) -> Iterator[RuledOut]:
    """Yield the edges that no mechanism has, in the order of nodes, each with the reading that did it."""
    possible_after = [*_Prefixes(task, steps, evidence).possible()]
    possible_after.append((len(evidence.observations), space.possible_edges))
    for cause in evidence.nodes:
        for effect in evidence.nodes:
            if cause == effect or (cause, effect) in space.possible_edges:
                continue
            if cause == FREQUENCY and not task.freq_parent:
                yield RuledOut(cause, effect, 0)
                continue
            first = next(k for k, edges in reversed(_absent_to_end(possible_after, (cause, effect))))
            yield RuledOut(cause, effect, first)


def _absent_to_end(
    possible_after: Sequence[tuple[int, frozenset[Edge]]], edge: Edge
) -> list[tuple[int, frozenset[Edge]]]:
    """Return the last numbers of readings, latest first, from which on an edge is never possible."""
    absent = []
    for entry in reversed(possible_after):
        if edge in entry[1]:
            break
        absent.append(entry)
    return absent
