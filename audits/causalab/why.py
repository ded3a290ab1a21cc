"""Why the readings of a laboratory leave its graph or frequency open: the data of a page, and sentences.

Properties and the frequency are nodes of a graph; a setting intervenes on one property of the manipulator crystal.
"""

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
    """An edge; `number`: how many of the mechanisms that fit have it, a decimal string."""

    cause: str
    effect: str
    number: str


class RuledOut(msgspec.Struct, frozen=True):
    """An edge of no mechanism that fits.

    reading: position, from 1, of the first reading after which no mechanism has it; 0: the class has no such edge
    """

    cause: str
    effect: str
    reading: int


class LabReading(msgspec.Struct, frozen=True):
    """A row of the records or a reading of the manipulator; `changed`: the property that was set, "" for none."""

    changed: str
    values: dict[str, float]


class LabMember(msgspec.Struct, frozen=True):
    """A mechanism that fits.

    equations: node -> its equation as text; prediction: predicted frequency of the reactor
    """

    equations: dict[str, str]
    prediction: str


class LabWitness(msgspec.Struct, frozen=True):
    """A setting that separates the pair, and the reading of each of the two after it, by node."""

    in_words: str
    first: dict[str, float]
    second: dict[str, float]


class LabWhy(Why, frozen=True, kw_only=True):
    """The reason for a laboratory after some settings. "Mechanisms" are those that fit the readings.

    edges: edges of at least one mechanism; ruled_out: all other edges
    never_set: properties that are causes in open edges and were not set
    experiments: a setting of every property that may be set, best first
    weighted: whether counts are weights of a posterior, because readings are noisy
    pair, witness: two mechanisms and a setting that separates them; None if mechanisms are not listed
    model: the mechanism, if there is only one
    jointly: two settings that decide together, whatever the readings; () if one setting does or no pair is proven to
    contradicted: stated edges that no mechanism has; true_edges: None unless gold is revealed
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


# --- Two mechanisms that fit, side by side, and the readings of settings under listed mechanisms ----------------------
MAX_JOINT = 2_000  # mechanisms, at most, for which pairs of settings are compared


def setting_words(setting: Setting) -> str:
    return f"set {setting[0]} to {setting[1]:g}"


def experiments(space: WeightedDags, truth: Mechanism | None) -> tuple[Experiment, ...]:
    """Return a setting of every property that may be set, with its possible readings, best first.

    () if mechanisms are too many to list; truth: the sealed mechanism, None unless it is revealed
    """
    if space.count > MAX_LISTED:
        return ()
    answers, entries = _answers(space), []
    for setting in candidates(space):
        readings = space.readings(setting)
        values, rows, counts = np.unique(readings, axis=0, return_inverse=True, return_counts=True)
        pairs = np.unique(np.column_stack([rows.ravel(), answers]), axis=0)
        num_frequencies = _distinct(pairs[:, (0, 1)], len(values))
        num_graphs = _distinct(pairs[:, (0, 2)], len(values))
        num_answers = np.where(num_graphs > 1, np.maximum(2, num_frequencies), num_frequencies)
        words = [", ".join(f"{value:g}" for value in reading) for reading in values.tolist()]
        outcomes = [
            Outcome(*entry) for entry in zip(words, map(str, counts.tolist()), num_answers.tolist(), strict=True)
        ]
        true_reading = None if truth is None else reading_of(space, truth, setting)
        row_of_reading = {tuple(reading): k for k, reading in enumerate(values.tolist())}
        remaining = str(counts[row_of_reading[true_reading]]) if true_reading in row_of_reading else None
        entries.append(experiment(setting_words(setting), outcomes, remaining))
    return tuple(sorted(entries, key=lambda entry: (entry.rank[0] > 1, entry.expected)))


def _distinct(pairs: Integers, num_groups: int) -> Integers:
    """Count the distinct second entries of pairs by their first, a group from 0 to `num_groups` - 1."""
    return np.asarray(np.bincount(np.unique(pairs, axis=0)[:, 0], minlength=num_groups))


def _answers(space: WeightedDags) -> Integers:
    """Return, for each listed mechanism, an index of its predicted frequency and of its graph; shape (mechanisms, 2).

    Equal frequencies have equal indices, and so have equal graphs.
    """
    if space.predicts:
        frequency = Local(space.evidence.frequency, space.matrices[:, -1].astype(np.int64))
        predictions = predict_frequencies(frequency, space.evidence)
    else:
        predictions = np.array([predict_frequency(member, space.evidence) for member in space.members()])
    graphs = (space.matrices > 0).reshape(space.count, -1)
    indices = [np.unique(values, axis=0, return_inverse=True)[1].ravel() for values in (predictions[:, None], graphs)]
    return np.column_stack(indices)


def reading_of(space: WeightedDags, member: Mechanism, setting: Setting) -> tuple[float, ...] | None:
    """Return the reading of a mechanism after a setting; None if it does not fit."""
    matrix = linear_matrix(member, space.evidence)
    if matrix is None:
        return None
    totals = np.rint(np.linalg.inv(np.eye(len(matrix)) - matrix))
    reading: list[float] = readings_of(matrix[None], totals[None], space.evidence, setting)[0].tolist()
    return tuple(reading)


def jointly_deciding(space: WeightedDags, best: Sequence[Experiment]) -> tuple[str, ...]:
    """Return the first two settings that together decide graph and frequency, whatever the readings.

    () if one setting decides, no pair does, or mechanisms are too many to compare pairs.
    """
    if space.count > MAX_JOINT or (best and best[0].decides):
        return ()
    settings = {setting_words(setting): setting for setting in candidates(space)}
    answers = _answers(space)
    ranked = [entry.in_words for entry in best if len(entry.outcomes) > 1]
    for first, second in combinations(ranked, 2):
        readings = _joint_readings(space, settings[first], settings[second])
        rows = np.unique(readings, axis=0, return_inverse=True)[1].ravel()
        if len(np.unique(np.column_stack([rows, answers]), axis=0)) == rows.max() + 1:
            return first, second
    return ()


def _joint_readings(space: WeightedDags, first: Setting, second: Setting) -> Floats:
    """Return the readings of each mechanism after the first and after both settings; shape (members, 2 * nodes)."""
    readings = space.readings(first)
    later = np.empty_like(readings)
    for reading in np.unique(readings, axis=0):
        rows = np.flatnonzero(np.all(readings == reading, axis=1))
        values = dict(zip(space.evidence.nodes, reading.tolist(), strict=True))
        evidence = space.evidence.after(*first, values)
        later[rows] = readings_of(space.matrices[rows], space.totals[rows], evidence, second)
    return np.hstack([readings, later])


def nearest_pair(space: WeightedDags) -> tuple[Floats, Floats] | None:
    """Return a mechanism with the fewest edges, and the nearest other one: by edges, then by sum of weights.

    Graphs that differ come first. None for one mechanism, and for too many to list.
    """
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
    """Return the first of the `best` settings under which two mechanisms read differently; None without one."""
    settings = {setting_words(setting): setting for setting in candidates(space)}
    nodes = space.evidence.nodes
    for entry in best:
        readings = [reading_of(space, space.member(matrix), settings[entry.in_words]) for matrix in (first, second)]
        if None not in readings and readings[0] != readings[1]:
            values = [dict(zip(nodes, reading or (), strict=True)) for reading in readings]
            return LabWitness(entry.in_words, *values)
    return None


# --- Reason and facts of a laboratory in words; frequency and graph in separate sentences -----------------------------
UNKNOWN = "not shown"  # predicted frequency if the reactor hides a cause of it


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
    num_edges: tuple[int, int, int],
    class_words: str,
    experiments: Sequence[Experiment],
    *,
    weighted: bool,
) -> tuple[Fact, ...]:
    """Return the facts; `num_edges`: proven, open and ruled out; `count_words`: how many mechanisms fit, as text."""
    proven, num_open, num_ruled_out = num_edges
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
    """Return a part of all mechanisms as "n of total"; as percent if they are weighted, never 0 % or 100 % of some."""
    if not weighted:
        return f"{number_text(number)} of {number_text(total)}"
    percent = 100 * number / total
    if 0 < percent < 1:
        return "below 1 %"
    return "above 99 %" if 99 < percent < 100 else f"{percent:.0f} %"


def _numbered(entries: Sequence[str], singular: str, plural: str) -> str:
    return f"{len(entries)} {singular if len(entries) == 1 else plural}"


def _in_words(count: int) -> str:
    names = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
    return names[count] if count < len(names) else str(count)


# --- Why the readings of a laboratory leave its graph or frequency open, and which setting leaves fewest mechanisms ---
MAX_PREFIXES = 40  # readings, at most, after each of which the possible edges are computed


def explain(item: LabItem, steps: Sequence[LabStep], *, reveal_sealed: bool = False) -> LabWhy:
    """Return the reason after these settings; the sealed mechanism is read only with `reveal_sealed`.

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
    has_listed_members = isinstance(space, WeightedDags) and state == "open" and not item.task.noise
    entries = experiments(space, truth) if has_listed_members and isinstance(space, WeightedDags) else ()
    pair = nearest_pair(space) if has_listed_members and isinstance(space, WeightedDags) else None
    ruled_out = tuple(_ruled_out(item.task, steps, evidence, space)) if space.count else ()
    counted = Count(lower=str(space.count), upper=str(space.count))
    num_edges = len(space.certain_edges), len(open_edges), len(ruled_out)
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
            num_edges,
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
    """Return how many mechanisms fit, and how many did before the first setting."""
    count = number_text(space.count)
    fits = "fits" if space.count == 1 else "fit"
    if not any(step.cost for step in steps) or isinstance(space, NoisyDags):
        return f"{count} {'mechanism' if space.count == 1 else 'mechanisms'} {fits}"
    total = space_of(item.task, (), bounded=False).count
    return f"{count} of {number_text(total)} {'mechanism' if total == 1 else 'mechanisms'} {fits}"


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
    """Return the predicted frequencies, each with its number of mechanisms; last UNKNOWN, if any cannot predict."""
    counts = dict(space.verdicts())
    predicted = sorted((value, count) for value, count in counts.items() if not isnan(value))
    unknown = sum(count for value, count in counts.items() if isnan(value))
    shares = [AnswerShare(f"{value:g}", str(count)) for value, count in predicted]
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
    """Edges that are possible after the first k readings, for each k.

    For linear laboratories without noise the evidence is cut after k readings. For others the space after the first
    steps is computed anew: mean residuals of quadratic laboratories may admit an edge again.
    """

    task: Task
    steps: Sequence[LabStep]
    evidence: Evidence

    def possible_edges(self) -> Iterator[tuple[int, frozenset[Edge]]]:
        """Yield (number of readings, edges of at least one mechanism after them), ascending."""
        num_readings = len(self.evidence.observations)
        if self.task.family is Family.LINEAR and not self.task.noise and num_readings <= MAX_PREFIXES:
            for k in range(1, num_readings):
                first = self.evidence.observations[:k]
                fresh = self.evidence.fresh & {observation.crystal for observation in first}
                part = replace(self.evidence, observations=first, fresh=fresh)
                yield k, weighted_dags(part, bounded=False).possible_edges
            return
        settings = [k for k, step in enumerate(self.steps) if "set" in step.action and step.reading is not None]
        start = num_readings - len(settings)
        for done, k in enumerate(settings[:MAX_PREFIXES]):
            yield start + done, space_of(self.task, self.steps[:k], bounded=False).possible_edges


def _ruled_out(task: Task, steps: Sequence[LabStep], evidence: Evidence, space: LabSpace) -> Iterator[RuledOut]:
    """Yield the edges that no mechanism has, in the order of nodes, each with the reading that ruled it out."""
    possible_after = [*_Prefixes(task, steps, evidence).possible_edges()]
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
    """Return the entries, latest first, after which the edge is never possible again."""
    absent = []
    for entry in reversed(possible_after):
        if edge in entry[1]:
            break
        absent.append(entry)
    return absent
