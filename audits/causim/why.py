"""Why a question about a program has several right answers: the data of a page, and sentences.

To find the line at which two worlds part, the mechanism is instrumented: added statements append the path (lines and
branches taken) to a list, and it returns the value with the path. The interpreter and its limits are the same.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations, islice
from math import prod
from typing import Any, NamedTuple, TypeAlias

import msgspec

from calibrant.audits.why import (
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
from calibrant.dsl.causim.item import CausimItem
from calibrant.dsl.causim.language.driver import parse, read_definitions
from calibrant.dsl.causim.language.randomness import Unsupported
from calibrant.dsl.causim.language.statements import Function, function
from calibrant.dsl.causim.model import ModelError, Node, Symbol, run, shown_value, symbol, value_of
from calibrant.solvers.causim.exact import AnswerSet
from calibrant.solvers.outcome import Budget, BudgetSpent, Found

# --- The parts of the reason for a question about a program -----------------------------------------------------------


class AnswerGroup(msgspec.Struct, frozen=True):
    """Worlds with one answer.

    worlds: their number; noise: by unknown noise variable, its values in these worlds
    probability: of these worlds, given all that fit, as a fraction
    """

    answer: dict[str, str]
    worlds: str
    noise: dict[str, tuple[str, ...]]
    probability: str


class QuestionNode(msgspec.Struct, frozen=True):
    """A variable of the program with its noise.

    noise_value: value that the question gives, or None; num_values: number of values that the noise can have
    do, observed: value that the question sets, and observes, or None
    values: values under `do` in the listed worlds
    """

    name: str
    parents: tuple[str, ...]
    noise: str
    noise_value: str | None
    num_values: int
    do: str | None
    observed: str | None
    values: tuple[str, ...]


class CodeLine(msgspec.Struct, frozen=True):
    """A line of a function; `ends`: noise values whose call returns here; `branches`: whether the calls part here."""

    text: str
    ends: tuple[str, ...]
    branches: bool


class Branch(msgspec.Struct, frozen=True):
    """The line of the program at which two worlds with different answers part.

    node: variable of the function; noise: its noise variable, whose values differ; condition: the deciding code
    """

    node: str
    noise: str
    condition: str
    code: tuple[CodeLine, ...]


class SealedWorld(msgspec.Struct, frozen=True):
    """The world that the question was sampled from: noise, and values of the nodes before and under `do`."""

    noise: dict[str, str]
    before: dict[str, str]
    after: dict[str, str]


class QuestionWhy(Why, frozen=True, kw_only=True):
    """The reason for a question.

    num_worlds: number of worlds that fit; groups: one per answer, () if there are too many worlds to list
    unknown: noise variables that are not given and differ among these worlds
    reveal: the fewest unknown noise variables whose values always leave one answer; () if decided or none suffice
    pair: noise of two worlds with different answers; true_world: None unless gold is revealed
    """

    num_worlds: str
    unknown: tuple[str, ...]
    groups: tuple[AnswerGroup, ...]
    experiments: tuple[Experiment, ...]
    reveal: tuple[str, ...]
    prompt: str
    nodes: tuple[QuestionNode, ...]
    branch: Branch | None = None
    pair: tuple[dict[str, str], dict[str, str]] | None = None
    true_world: SealedWorld | None = None


# --- Title, reason and facts of a question in words -------------------------------------------------------------------


def title(state: State, num_answers: int | None) -> str:
    if state == "decided":
        return "Why is one answer right?"
    if num_answers is None:
        return "Why are several answers right?"
    return f"Why {'is no answer' if not num_answers else f'are {number_text(num_answers)} answers'} right?"


def reason(
    state: State,
    num_answers: int | None,
    members: AnswerSet,
    unknown: Sequence[str],
    open_keys: Sequence[str],
    reveal: Sequence[str],
    branch: Branch | None,
) -> tuple[Span, ...]:
    if state == "empty":
        return spans("No world agrees with what was observed, so nothing is right.")
    if state == "decided":
        return spans("All worlds that fit give the same answer.")
    if state == "uncounted" or num_answers is None:
        return spans(f"{number_text(members.fitting)} worlds fit; their answers were not all listed.")
    if branch is not None and reveal == (branch.noise,):
        test = branch.condition.removeprefix("el").removeprefix("if ")
        kind = "whether" if test != branch.condition else "the line"
        return spans((branch.noise,), f" is not given, and {kind} ", (test,), f" decides {listed(list(open_keys))}.")
    if reveal and set(reveal) == set(open_keys):
        verb = "is" if len(reveal) == 1 else "are"
        return spans(
            (listed(list(reveal)),),
            f" {verb} asked for, and {number_text(num_answers)} answers agree with what is given.",
        )
    if reveal:
        names = listed(list(reveal))
        verb = "is not given, and its value decides" if len(reveal) == 1 else "are not given, and their values decide"
        return spans((names,), f" {verb} {listed(list(open_keys))}.")
    if unknown:
        return spans(
            (listed(list(unknown)),), f" are not given; {number_text(num_answers)} answers follow from their values."
        )
    return spans(f"{number_text(members.fitting)} worlds fit, and {number_text(num_answers)} answers follow from them.")


def facts(
    state: State,
    num_answers: int | None,
    members: AnswerSet,
    open_keys: Sequence[str],
    keys: Sequence[str],
    reveal: Sequence[str],
) -> tuple[Fact, ...]:
    text = (
        "answers not counted"
        if num_answers is None
        else f"{number_text(num_answers)} answer{'s' * (num_answers != 1)} right"
    )
    listed_facts = [Fact(text, "good" if state == "decided" else "warn")]
    listed_facts.append(Fact(f"{number_text(members.fitting)} world{' fits' if members.fitting == 1 else 's fit'}"))
    if open_keys:
        listed_facts.append(Fact(f"open: {listed(list(open_keys))}"))
        decided_keys = [k for k in keys if k not in open_keys]
        if decided_keys:
            listed_facts.append(Fact(f"decided: {listed(decided_keys)}"))
    if reveal:
        amount = "one value" if len(reveal) == 1 else f"{len(reveal)} values"
        listed_facts.append(Fact(f"revealing {amount} leaves one answer, whatever the value"))
    return tuple(listed_facts)


# --- The line of a mechanism at which two calls part, from the path that each takes through its branches --------------
PATH = "path_of_calibrant"  # name of the list in the instrumented mechanism
MAX_CALLS = 200  # noise values, at most, whose calls are traced


class _Step(NamedTuple):
    """A step of a path: line in the function, counted from 0; taken: which branch; -1 for a return."""

    line: int
    taken: int


class _Traced(NamedTuple):
    value: Symbol
    path: tuple[_Step, ...]


def find_branch(source: str, node: Node, parents: Mapping[str, Symbol], values: Sequence[Symbol]) -> Branch | None:
    """Return the line at which calls with different values of the node's noise part; None if there is none.

    parents: values of the node's parents, the same in all calls; values: those of the noise
    """
    try:
        parsed = parse(source)
        call = next(step for step in parsed.steps if parsed.returned.get(step.mechanism) == node.name)
        _, definition = read_definitions(source)[call.mechanism]
        traced = function(_instrumented(definition), random=False)
        names = {step.mechanism: parsed.returned.get(step.mechanism, "") for step in parsed.steps}
        paths = {
            value: _trace(traced, [parents[names[s]] if s in names else value for s in call.sources])
            for value in values[:MAX_CALLS]
        }
    except (Unsupported, ModelError, StopIteration, KeyError, RecursionError):
        return None
    first = next(iter(paths.values()))
    second = next((entry for entry in paths.values() if entry.value != first.value), None)
    if second is None:
        return None
    line = _parting_line(first.path, second.path)
    lines = ast.unparse(definition).split("\n")
    if line is None:
        return None
    ends: dict[int, list[str]] = {}
    for value, entry in paths.items():
        ends.setdefault(entry.path[-1].line if entry.path else 0, []).append(shown_value(value))
    code = tuple(CodeLine(text, tuple(ends.get(index, ())), index == line) for index, text in enumerate(lines))
    return Branch(node.name, node.noise, lines[line].strip().rstrip(":"), code)


def _trace(traced: Function, arguments: Sequence[Symbol]) -> _Traced:
    value, path = traced.call([value_of(argument) for argument in arguments])
    return _Traced(symbol(value), tuple(_Step(line, taken) for line, taken in path))


def _parting_line(first: Sequence[_Step], second: Sequence[_Step]) -> int | None:
    """Return the line of the first step that differs; of equal paths the last, whose expression differs."""
    for step, twin in zip(first, second, strict=False):
        if step != twin:
            return min(step.line, twin.line)
    longer = max(first, second, key=len)
    shorter = min(len(first), len(second))
    if len(longer) > shorter:
        return longer[shorter].line
    return longer[-1].line if longer else None


def _instrumented(definition: ast.FunctionDef) -> ast.FunctionDef:
    """Return the function with its path recorded; lines are those of its unparsed text, counted from 0."""
    numbered = ast.parse(ast.unparse(definition)).body[0]
    assert isinstance(numbered, ast.FunctionDef)
    traced = copy.deepcopy(numbered)
    start = ast.parse(f"{PATH} = []").body
    traced.body = [*start, *_instrument_body(traced.body), *ast.parse(f"return [None, {PATH}]").body]
    return ast.fix_missing_locations(traced)


def _instrument_body(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    statements: list[ast.stmt] = []
    for statement in body:
        line = statement.lineno - 1
        if isinstance(statement, ast.If):
            statement.body = [_append_step(line, 1), *_instrument_body(statement.body)]
            statement.orelse = [_append_step(line, 0), *_instrument_body(statement.orelse)]
        elif isinstance(statement, ast.For | ast.While):
            statement.body = [_append_step(line, 1), *_instrument_body(statement.body)]
        elif isinstance(statement, ast.Return):
            value: Any = statement.value or ast.Constant(None)
            path = ast.parse(f"{PATH} + [[{line}, -1]]", mode="eval").body
            statement.value = ast.List([value, path], ast.Load())
        statements.append(statement)
    return statements


def _append_step(line: int, taken: int) -> ast.stmt:
    return ast.parse(f"{PATH} = {PATH} + [[{line}, {taken}]]").body[0]


# --- Why a question about a program has several right answers: the noise that is not given, the answer of each value --
MAX_WORLDS = 2_000  # worlds that are listed and grouped by their answers
MAX_PAIRED = 400  # worlds among which the pair is chosen
MAX_REVEALED = 3  # values that are revealed together
MAX_STATES = 200_000  # budget of the solver, in states of its search

World: TypeAlias = Mapping[str, str]


def explain(item: CausimItem, *, reveal_sealed: bool = False) -> QuestionWhy:
    """Return the reason for a question; the sealed world is read only with `reveal_sealed`.

    `BudgetSpent` if the worlds cannot be counted.
    """
    model, question = item.task.model, item.task.question
    members = AnswerSet(model, question)
    size = members.size(Budget(MAX_STATES))
    num_answers = size.value if isinstance(size, Found) else None
    worlds = list(_worlds(members)) if members.fitting <= MAX_WORLDS else []
    groups = _groups(members, worlds)
    state: State = (
        "uncounted"
        if num_answers is None
        else "empty"
        if not num_answers
        else "decided"
        if num_answers == 1
        else "open"
    )
    keys = members.keys
    open_keys = tuple(k for k in keys if len({group.answer[k] for group in groups}) > 1)
    unknown = tuple(u for u in question.unknown if len({world[u] for world in worlds}) > 1)
    true_noise = item.sealed.world if reveal_sealed else {}
    experiments = tuple(
        sorted((_revealed(members, worlds, u, true_noise.get(u)) for u in unknown), key=lambda entry: entry.rank)
    )
    reveal = _fewest_deciding(members, worlds, unknown) if state == "open" and worlds else ()
    count = Count(lower=str(num_answers or 0), upper=str(members.fitting if num_answers is None else num_answers))
    nodes = tuple(_nodes(item, members, worlds))
    branch = _branch(item, worlds) if state == "open" else None
    return QuestionWhy(
        benchmark="causim",
        item=item.id,
        title=title(state, num_answers),
        state=state,
        reason=reason(state, num_answers, members, unknown, open_keys, reveal, branch),
        facts=facts(state, num_answers, members, open_keys, keys, reveal),
        open=open_keys,
        decided=tuple(k for k in keys if worlds and k not in open_keys),
        count=count,
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
    """Yield the variables with the values that the question gives, and their values in the listed worlds."""
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
    """Return the line at which worlds part: in the function of the first variable whose values differ.

    Variables are listed parents first, so the values of its parents are the same in all worlds.
    """
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
    """Yield the noise of worlds that fit, up to MAX_WORLDS or the end of the budget."""
    try:
        for positions in islice(members.fitting_worlds(Budget(MAX_STATES)), MAX_WORLDS):
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
    """Count the worlds that each value of a noise variable leaves if it is revealed.

    true_value: value in the true world; None unless gold is revealed
    """
    by_value: dict[str, list[World]] = {}
    for world in worlds:
        by_value.setdefault(world[name], []).append(world)
    outcomes = [
        Outcome(value, str(len(group)), len({_key(members, world) for world in group}))
        for value, group in by_value.items()
    ]
    remaining = str(len(by_value[true_value])) if true_value in by_value else None
    return experiment(f"reveal {name}", outcomes, remaining)


def _fewest_deciding(members: AnswerSet, worlds: Sequence[World], unknown: Sequence[str]) -> tuple[str, ...]:
    """Return the fewest noise variables whose values always leave one answer; () if over MAX_REVEALED are needed."""
    answers = [_key(members, world) for world in worlds]
    for size in range(1, MAX_REVEALED + 1):
        for chosen in combinations(unknown, size):
            answer_by_values: dict[tuple[str, ...], tuple[tuple[str, str], ...]] = {}
            keys = (tuple(world[u] for u in chosen) for world in worlds)
            if all(
                answer_by_values.setdefault(key, answer) == answer for key, answer in zip(keys, answers, strict=True)
            ):
                return chosen
    return ()
