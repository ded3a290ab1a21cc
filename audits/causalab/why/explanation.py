"""Why the readings of a laboratory leave its graph or frequency open, and which setting leaves least."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import isnan

from calibrant.audits.causalab.spaces import LabSpace, space_of
from calibrant.audits.causalab.why.members import (
    experiments,
    jointly_deciding,
    member_record,
    nearest_pair,
    witness,
)
from calibrant.audits.causalab.why.parts import EdgeCount, LabReading, LabWhy, RuledOut
from calibrant.audits.causalab.why.sentences import UNKNOWN, facts, reason, uncounted_reason
from calibrant.audits.why import AnswerShare, Count, Fact, State, number_text
from calibrant.dsl.causalab.episode import LabStep
from calibrant.dsl.causalab.item import Family, LabItem, Task
from calibrant.dsl.causalab.mechanism import FREQUENCY, Edge
from calibrant.dsl.causalab.run import last_edges
from calibrant.solvers.budget import BudgetSpent
from calibrant.solvers.causalab.evidence import Evidence, evidence_of
from calibrant.solvers.causalab.noisy import NoisyDags
from calibrant.solvers.causalab.space import WeightedDags, weighted_dags

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
    words = {"decided": "decided", "empty": "contradictory"}.get(state, "still open")
    return f"Why is \u201c{item.id}\u201d {words}?"


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
    if pair is None or not isinstance(space, WeightedDags):
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
    fit = "mechanism fits" if space.count == 1 else "mechanisms fit"
    if not any(step.cost for step in steps) or isinstance(space, NoisyDags):
        return f"{number} {fit}"
    return f"{number} of {number_text(space_of(item.task, (), bounded=False).count)} {fit}"


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
