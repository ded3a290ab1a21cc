"""Why a question about a program has several right answers: which noise is not given, and what its values give."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations, islice
from math import prod
from typing import TypeAlias

from calibrant.audits.causim.why.branching import find_branch
from calibrant.audits.causim.why.parts import AnswerGroup, Branch, QuestionNode, QuestionWhy, SealedWorld
from calibrant.audits.causim.why.sentences import facts, reason, title
from calibrant.audits.why import (
    Count,
    Experiment,
    Fact,
    Outcome,
    State,
    experiment,
)
from calibrant.dsl.causim.item import CausimItem
from calibrant.dsl.causim.model import run, shown_value
from calibrant.solvers.budget import Budget, BudgetSpent
from calibrant.solvers.causim.exact import AnswerSet
from calibrant.solvers.outcome import Found

MAX_WORLDS = 2_000  # worlds that are listed and grouped by their answers
MAX_PAIRED = 400  # worlds among which the pair is chosen
MAX_REVEALED = 3  # values that are revealed together
STATES = 200_000

World: TypeAlias = Mapping[str, str]


def explain(item: CausimItem, *, reveal_sealed: bool = False) -> QuestionWhy:
    """Return the reason for a question; what is sealed is read with `reveal_sealed` alone.

    `BudgetSpent` where worlds are not counted.
    """
    model, question = item.task.model, item.task.question
    members = AnswerSet(model, question)
    size = members.size(Budget(STATES))
    number = size.value if isinstance(size, Found) else None
    worlds = list(_worlds(members)) if members.fitting <= MAX_WORLDS else []
    groups = _groups(members, worlds)
    state: State = "uncounted" if number is None else "empty" if not number else "decided" if number == 1 else "open"
    keys = members.keys
    open_keys = tuple(k for k in keys if len({group.answer[k] for group in groups}) > 1)
    unknown = tuple(u for u in question.unknown if len({world[u] for world in worlds}) > 1)
    true_noise = item.sealed.world if reveal_sealed else {}
    experiments = tuple(
        sorted((_revealed(members, worlds, u, true_noise.get(u)) for u in unknown), key=lambda entry: entry.rank)
    )
    reveal = _fewest(members, worlds, unknown) if state == "open" and worlds else ()
    counted = Count(lower=str(number or 0), upper=str(members.fitting if number is None else number))
    nodes = tuple(_nodes(item, members, worlds))
    branch = _branch(item, worlds) if state == "open" else None
    return QuestionWhy(
        benchmark="causim",
        item=item.id,
        title=title(state, number),
        state=state,
        reason=reason(state, number, members, unknown, open_keys, reveal, branch),
        facts=facts(state, number, members, open_keys, keys, reveal),
        open=open_keys,
        decided=tuple(k for k in keys if worlds and k not in open_keys),
        count=counted,
        class_in_words="worlds that agree with the given noise and with what was observed",
        num_worlds=str(members.fitting),
        unknown=unknown,
        groups=tuple(groups),
        experiments=experiments,
        reveal=reveal,
        prompt=item.task.prompt,
        nodes=nodes,
        branch=branch,
        pair=_pair(members, worlds) if state == "open" else None,
        true_world=_true_world(item) if reveal_sealed else None,
        sealed=(Fact(f"true answer: {_answer_words(members, item, open_keys)}", "gold"),) if true_noise else (),
    )


def _answer_words(members: AnswerSet, item: CausimItem, open_keys: Sequence[str]) -> str:
    answer = members.answer_of(item.sealed.world)
    return ", ".join(f"{key} = {shown_value(answer[key])}" for key in open_keys or members.keys[:3])


def _true_world(item: CausimItem) -> SealedWorld | None:
    model, world = item.task.model, item.sealed.world
    if not world:
        return None
    before, after = run(model, world, {}), run(model, world, item.task.question.do)
    return SealedWorld(
        *({name: shown_value(value) for name, value in values.items()} for values in (world, before, after))
    )


def _nodes(item: CausimItem, members: AnswerSet, worlds: Sequence[World]) -> Iterator[QuestionNode]:
    """Yield the variables with what is given of them, and their values over the listed worlds."""
    question = item.task.question
    values: dict[str, dict[str, None]] = {node.name: {} for node in members.model.nodes}
    for world in worlds:
        for name, value in run(members.model, world, question.do).items():
            values[name][shown_value(value)] = None
    for node in members.model.nodes:
        noise_value, do, observed = (
            None if value is None else shown_value(value)
            for value in (question.fixed.get(node.noise), question.do.get(node.name), question.observed.get(node.name))
        )
        yield QuestionNode(
            node.name, node.parents, node.noise, noise_value, len(node.support), do, observed, tuple(values[node.name])
        )


def _branch(item: CausimItem, worlds: Sequence[World]) -> Branch | None:
    """Return the line at which worlds part first: in the first variable whose values differ, if its parents' do not."""
    model, do = item.task.model, item.task.question.do
    runs = [run(model, world, do) for world in worlds]
    node = next((n for n in model.nodes if len({values[n.name] for values in runs}) > 1), None)
    if node is None or item.task.view != "code":
        return None
    parents = {parent: runs[0][parent] for parent in node.parents}
    noise = list(dict.fromkeys(world[node.noise] for world in worlds))
    return find_branch(item.task.source, node, parents, noise)


def _pair(members: AnswerSet, worlds: Sequence[World]) -> tuple[dict[str, str], dict[str, str]] | None:
    """Return two worlds with different answers that differ in as few noise values as possible; the first of equals."""
    by_answer: dict[tuple[tuple[str, str], ...], list[World]] = {}
    for world in worlds[:MAX_PAIRED]:
        by_answer.setdefault(_key(members, world), []).append(world)
    groups = list(by_answer.values())
    best: tuple[int, World, World] | None = None
    for worlds_a, worlds_b in combinations(groups, 2):
        for first in worlds_a:
            for second in worlds_b:
                distance = sum(first[u] != second[u] for u in first)
                if best is None or distance < best[0]:
                    best = distance, first, second
        if best is not None and best[0] == 1:
            break
    if best is None:
        return None
    return ({u: shown_value(v) for u, v in best[1].items()}, {u: shown_value(v) for u, v in best[2].items()})


def _worlds(members: AnswerSet) -> Iterator[World]:
    try:
        for positions in islice(members.fitting_worlds(Budget(STATES)), MAX_WORLDS):
            yield {node.noise: node.support[k] for node, k in zip(members.model.nodes, positions, strict=True)}
    except BudgetSpent:
        return


def _key(members: AnswerSet, world: World) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(members.answer_of(world).items()))


def _groups(members: AnswerSet, worlds: Sequence[World]) -> list[AnswerGroup]:
    by_answer: dict[tuple[tuple[str, str], ...], list[World]] = {}
    for world in worlds:
        by_answer.setdefault(_key(members, world), []).append(world)
    unknown = members.question.unknown
    weights = {key: sum((_weight(members, world) for world in group), Fraction(0)) for key, group in by_answer.items()}
    total = sum(weights.values(), Fraction(0))
    return [
        AnswerGroup(
            dict(key),
            str(len(group)),
            {u: tuple(sorted({world[u] for world in group})) for u in unknown},
            str(weights[key] / total),
        )
        for key, group in sorted(by_answer.items())
    ]


def _weight(members: AnswerSet, world: World) -> Fraction:
    """Return the probability of a world's noise."""
    nodes = members.model.nodes
    return prod((node.weights[node.support.index(world[node.noise])] for node in nodes), start=Fraction(1))


def _revealed(members: AnswerSet, worlds: Sequence[World], name: str, true_value: str | None) -> Experiment:
    """Count what each value of a noise variable leaves, if it is revealed; true_value: where gold is."""
    by_value: dict[str, list[World]] = {}
    for world in worlds:
        by_value.setdefault(world[name], []).append(world)
    outcomes = [
        Outcome(value, str(len(group)), len({_key(members, world) for world in group}))
        for value, group in by_value.items()
    ]
    remaining = str(len(by_value[true_value])) if true_value in by_value else None
    return experiment(f"reveal {name}", outcomes, remaining)


def _fewest(members: AnswerSet, worlds: Sequence[World], unknown: Sequence[str]) -> tuple[str, ...]:
    """Return the fewest noise variables whose values always leave one answer.

    () if more than MAX_REVEALED are needed.
    """
    answers = [_key(members, world) for world in worlds]
    for number in range(1, MAX_REVEALED + 1):
        for chosen in combinations(unknown, number):
            met: dict[tuple[str, ...], tuple[tuple[str, str], ...]] = {}
            values = (tuple(world[u] for u in chosen) for world in worlds)
            if all(met.setdefault(value, answer) == answer for value, answer in zip(values, answers, strict=True)):
                return chosen
    return ()
