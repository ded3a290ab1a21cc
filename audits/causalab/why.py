"""Why the readings of a laboratory leave its graph or frequency open, and which setting leaves least."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

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
from calibrant.dsl.causalab.episode import LabStep
from calibrant.dsl.causalab.item import LabItem
from calibrant.solvers.causalab.evidence import evidence_of
from calibrant.solvers.causalab.experimenter import candidates
from calibrant.solvers.causalab.space import MAX_LISTED, WeightedDags, weighted_dags


class EdgeCount(msgspec.Struct, frozen=True):
    """In how many of the mechanisms that fit an edge occurs."""

    cause: str
    effect: str
    number: str


class LabReading(msgspec.Struct, frozen=True):
    """A row of the records or a reading: the property that was set, values, mechanisms that fit from then on."""

    changed: str
    values: dict[str, float]


class LabWhy(Why, frozen=True, kw_only=True):
    """The reason for a laboratory after some settings; experiments: every property that may be set, best first.

    edges: that some mechanism has; the others are ruled out; never_set: causes in open edges that were not set
    """

    nodes: tuple[str, ...]
    readings: tuple[LabReading, ...]
    edges: tuple[EdgeCount, ...]
    frequencies: tuple[AnswerShare, ...]
    never_set: tuple[str, ...]
    experiments: tuple[Experiment, ...]


def explain(item: LabItem, steps: Sequence[LabStep]) -> LabWhy:
    """Return the reason after these settings; nothing sealed is read.

    `BudgetSpent` for classes that are not enumerated.
    """
    evidence = evidence_of(item.task, steps)
    space = weighted_dags(evidence, bounded=True)
    nodes = evidence.nodes
    frequencies = space.verdicts()
    state: State = "open"
    if not space.count:
        state = "empty"
    elif len(frequencies) == 1 and space.graph_decided:
        state = "decided"
    moved = {nodes[row.changed] for row in evidence.observations if row.changed is not None}
    open_edges = sorted(space.possible_edges - space.certain_edges)
    causes = {cause for cause, _ in open_edges}
    never_set = tuple(name for name in item.task.settable if name not in moved and name in causes)
    experiments = _experiments(space) if state == "open" and space.count <= MAX_LISTED else ()
    counted = str(space.count)
    return LabWhy(
        benchmark="causalab",
        item=item.id,
        title=f"Why is \u201c{item.id}\u201d {'decided' if state == 'decided' else 'still open'}?",
        state=state,
        reason=_reason(space, state, never_set),
        facts=_facts(space, state, experiments),
        open=tuple(f"{cause} to {effect}" for cause, effect in open_edges),
        decided=tuple(f"{cause} to {effect}" for cause, effect in sorted(space.certain_edges)),
        count=Count(lower=counted, upper=counted),
        class_in_words=space.in_words,
        nodes=nodes,
        readings=tuple(
            LabReading("" if row.changed is None else nodes[row.changed], dict(zip(nodes, row.values, strict=True)))
            for row in evidence.observations
        ),
        edges=tuple(EdgeCount(c, e, str(n)) for (c, e), n in sorted(space.edge_counts.items())),
        frequencies=tuple(AnswerShare(f"{value:g}", str(n)) for value, n in sorted(frequencies.items())),
        never_set=never_set,
        experiments=experiments,
    )


def _experiments(space: WeightedDags) -> tuple[Experiment, ...]:
    """Every property that may be set, with the readings that it may give."""
    experiments = []
    for setting in candidates(space):
        outcomes = []
        for reading, number in space.outcomes(setting).items():
            after = space.after(setting, reading)
            answers = len(after.verdicts()) if after.graph_decided else max(2, len(after.verdicts()))
            outcomes.append(Outcome(", ".join(f"{value:g}" for value in reading), str(number), answers))
        experiments.append(experiment(f"set {setting[0]} to {setting[1]:g}", outcomes))
    return tuple(sorted(experiments, key=lambda entry: (entry.rank[0] > 1, entry.expected)))


def _reason(space: WeightedDags, state: State, never_set: Sequence[str]) -> tuple[Span, ...]:
    if state == "empty":
        return spans("No mechanism of the class gives these readings.")
    frequencies = sorted(space.verdicts())
    values = f"{frequencies[0]:g}" if len(frequencies) == 1 else f"{len(frequencies)} values fit"
    first = "The frequency is decided: " if len(frequencies) == 1 else "The frequency is open: "
    if space.graph_decided:
        number = len(space.certain_edges)
        return (
            spans(first, (values,), f". So is the graph: {number} edge{'s' * (number != 1)}.")
            if len(frequencies) == 1
            else spans(first, (values,), ". The graph is decided.")
        )
    number = len(space.possible_edges - space.certain_edges)
    stay = f"{number} edge stays open" if number == 1 else f"{number} edges stay open"
    if not never_set:
        return spans(first, (values,), f". The graph is not: {stay} though each of their causes was set.")
    names = never_set[0] if len(never_set) == 1 else listed(list(never_set))
    verb = "was not set" if len(never_set) == 1 else "were not set"
    return spans(first, (values,), f". The graph is not: {stay}, because ", (names,), f" {verb}.")


def _facts(space: WeightedDags, state: State, experiments: Sequence[Experiment]) -> tuple[Fact, ...]:
    frequencies = sorted(space.verdicts())
    facts = [
        Fact(f"frequency decided: {frequencies[0]:g}", "good")
        if len(frequencies) == 1
        else Fact(f"{len(frequencies)} frequencies", "warn")
    ]
    number = number_text(space.count)
    facts.append(
        Fact(f"{number} mechanism{' fits' if space.count == 1 else 's fit'}", "good" if state == "decided" else "warn")
    )
    facts.append(Fact(f"{len(space.certain_edges)} edges proven", "good"))
    if open_edges := space.possible_edges - space.certain_edges:
        facts.append(Fact(f"{len(open_edges)} open", "warn"))
    facts.append(Fact("linear, weights 1, 2, 3, no noise"))
    if experiments:
        facts.append(Fact("one setting decides" if experiments[0].decides else "no single setting is sure to decide"))
    return tuple(facts)
