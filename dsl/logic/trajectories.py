"""Items of trajectories: successive states of the genes of a sealed network, and a question about further states.

dsl.networks.network defines the semantics. An answer states the next states, the attractor that is reached, or a
network of the class, whose states are then the answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, TypeGuard

import msgspec
from msgspec import UNSET, Meta, UnsetType

from calibrant.dsl.errors import CalibrantError, PoolError, in_one_line, short_repr
from calibrant.dsl.lenient_json import Shape, Shaped, StatedLines, shaped_keys
from calibrant.dsl.logic.item import is_node_name
from calibrant.dsl.logic.score import AnswerError, Verdict
from calibrant.dsl.networks.formulas import NetworkError, Nodes
from calibrant.dsl.networks.network import (
    FunctionClass,
    Network,
    Question,
    Trajectory,
    TrajectoryTask,
    answer_question,
    class_violation,
    derive_fields,
    fits,
    rotate_cycle,
)
from calibrant.dsl.networks.text_formats import read_bnet
from calibrant.dsl.text import Phrases, Wording, reword

MAX_GENES, MAX_STATES = 200, 10_000  # of an item
MAX_MODEL_CHARS = 200_000  # of an answer's bnet text
_SIGNS = {"+": 1, "-": -1, "both": 0}

# --- Items ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TrajectorySealed:
    """The part of an item that is hidden from the solver; answer: the network's states in answer to the question."""

    network: Network
    answer: tuple[str, ...]

    def __repr__(self) -> str:
        return "<TrajectorySealed: the network behind the states>"


@dataclass(frozen=True)
class TrajectoryItem:
    """One item. labels: stratum, seed, network and difficulty."""

    id: str
    task: TrajectoryTask
    sealed: TrajectorySealed
    labels: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<TrajectoryItem {in_one_line(self.id)[:60]}: {len(self.task.genes)} genes>"

    @property
    def benchmark(self) -> str:
        return "logic"

    @property
    def setting(self) -> str:
        return "series"

    @property
    def stratum(self) -> str:
        return self.labels.get("stratum", "")


def is_trajectory_item(item: object) -> TypeGuard[TrajectoryItem]:
    """Return whether an item of logic models asks about trajectories."""
    return isinstance(item, TrajectoryItem)


def is_trajectory_task(task: object) -> TypeGuard[TrajectoryTask]:
    """Return whether a task of logic models asks about trajectories."""
    return isinstance(task, TrajectoryTask)


def parse_model(text: str) -> Network:
    """Return the network of a bnet text; `NetworkError` also for a function of too many inputs for a table."""
    if len(text) > MAX_MODEL_CHARS:
        raise NetworkError(f"a model of over {MAX_MODEL_CHARS:,} characters", reason="too-large")
    return Network(**derive_fields(read_bnet(text, MAX_GENES), _refuse_wide))


def _refuse_wide(nodes: Nodes, names: Sequence[str]) -> Mapping[str, str]:
    raise NetworkError(f"a function names {len(names)} genes; fewer are candidates", reason="wide")


# --- Records ----------------------------------------------------------------------------------------------------------


class TrajectoryRecord(msgspec.Struct, forbid_unknown_fields=True):
    """States under some held genes."""

    held: Annotated[dict[str, int], Meta(description="genes that are held, with their values")]
    states: Annotated[list[str], Meta(description="states in the order of time, a digit a gene")]


class QuestionRecord(msgspec.Struct, forbid_unknown_fields=True):
    """Question of an item."""

    held: Annotated[dict[str, int], Meta(description="genes that are held, with their values")]
    start: Annotated[str, Meta(description="state that the question begins at")]
    steps: Annotated[int | None, Meta(description="how many states are asked for; null: the attractor that is reached")]


class SealedNetworkRecord(msgspec.Struct, forbid_unknown_fields=True):
    """Hidden part of an item."""

    network: Annotated[str, Meta(description="the network behind the states, as bnet")]
    answer: Annotated[list[str], Meta(description="its answer: states, of an attractor from the least one on")]


class TrajectoryItemRecord(msgspec.Struct, forbid_unknown_fields=True):
    """One item of trajectories."""

    id: Annotated[str, Meta(description="unique in the pool")]
    genes: Annotated[list[str], Meta(description="names, in the order of the digits of states")]
    candidates: Annotated[
        dict[str, list[tuple[str, str]]], Meta(description="of each gene what it may depend on, with sign: +, -, both")
    ]
    trajectories: Annotated[list[TrajectoryRecord], Meta(description="states that the network went through")]
    question: Annotated[QuestionRecord, Meta(description="what is asked for")]
    sealed: Annotated[SealedNetworkRecord, Meta(description="the truth")]
    functions: Annotated[
        FunctionClass, Meta(description="functions that are monotone as the signs say, or any of the candidates")
    ] = "signed"
    labels: Annotated[
        dict[str, str], Meta(description="stratum, network, and what describes how hard the item is")
    ] = {}
    wording: Annotated[
        Wording | UnsetType, Meta(description="whether the prompt has the standard sentences; absent where it has")
    ] = UNSET


def item_from_trajectories(record: TrajectoryItemRecord) -> TrajectoryItem:
    """Return the item of a record; `PoolError` names an invalid field."""
    genes = tuple(record.genes)
    strange = next((name for name in genes if not is_node_name(name)), None)
    if strange is not None or not 1 <= len(genes) <= MAX_GENES or len(set(genes)) < len(genes):
        problem = f"{short_repr(strange)} is no name of a gene" if strange is not None else "1 to 200 different names"
        raise PoolError(problem, field="genes")
    _check_candidates(record, genes)
    if sum(len(trajectory.states) for trajectory in record.trajectories) > MAX_STATES:
        raise PoolError(f"more than {MAX_STATES:,} states", field="trajectories")
    for trajectory in record.trajectories:
        _check_states(trajectory.states, trajectory.held, genes, "trajectories")
    question = record.question
    _check_states([question.start], question.held, genes, "question", is_start=True)
    if question.steps is not None and not 1 <= question.steps <= 1_000:
        raise PoolError("steps: 1 to 1,000, or null for the attractor", field="question")
    task = TrajectoryTask(
        genes,
        {gene: tuple(sorted((name, sign) for name, sign in record.candidates[gene])) for gene in genes},
        tuple(Trajectory(trajectory.held, tuple(trajectory.states)) for trajectory in record.trajectories),
        Question(question.held, question.start, question.steps),
        record.functions,
        "standard" if isinstance(record.wording, UnsetType) else record.wording,
    )
    return TrajectoryItem(record.id, task, _sealed_network(record.sealed, task), record.labels)


def _check_candidates(record: TrajectoryItemRecord, genes: Sequence[str]) -> None:
    if record.candidates.keys() != {*genes}:
        raise PoolError("an entry for each gene, and for no other name", field="candidates")
    for gene, signed_candidates in record.candidates.items():
        names = [name for name, _ in signed_candidates]
        if (
            not {*names} <= {*genes}
            or len({*names}) < len(names)
            or any(sign not in _SIGNS for _, sign in signed_candidates)
        ):
            problem = f"{short_repr(gene)}: different genes, each with one of {', '.join(_SIGNS)}"
            raise PoolError(problem, field="candidates")


def _check_states(
    states: Sequence[str], held: Mapping[str, int], genes: Sequence[str], where: str, *, is_start: bool = False
) -> None:
    """Raise `PoolError` for an invalid state, or unless is_start, one in which a held gene has another value."""
    if not states or not held.keys() <= {*genes} or any(value not in (0, 1) for value in held.values()):
        raise PoolError("one state or more, and held genes with 0 or 1", field=where)
    for state in states:
        if len(state) != len(genes) or not {*state} <= {"0", "1"}:
            raise PoolError(f"{short_repr(state)}; a state has a 0 or 1 for each of {len(genes)} genes", field=where)
        values = dict(zip(genes, state, strict=True))
        if not is_start and any(values[gene] != str(value) for gene, value in held.items()):
            raise PoolError(f"{short_repr(state)}; a held gene has another value", field=where)


def _sealed_network(record: SealedNetworkRecord, task: TrajectoryTask) -> TrajectorySealed:
    try:
        network = parse_model(record.network)
    except CalibrantError as error:
        raise PoolError(str(error), field="sealed.network") from None
    if problem := class_violation(network, task):
        raise PoolError(f"no network of the class: {problem}", field="sealed.network")
    if not fits(network, task):
        raise PoolError("it does not give the states of the trajectories", field="sealed.network")
    answer = answer_question(network, task)
    if list(answer) != record.answer:
        raise PoolError("not the answer of the network", field="sealed.answer")
    return TrajectorySealed(network, answer)


def record_from_trajectories(item: TrajectoryItem) -> TrajectoryItemRecord:
    """Return the record of an item."""
    task, question = item.task, item.task.question
    return TrajectoryItemRecord(
        item.id,
        list(task.genes),
        {gene: list(task.candidates[gene]) for gene in task.genes},
        [TrajectoryRecord(dict(entry.clamps), list(entry.states)) for entry in task.evidence],
        QuestionRecord(dict(question.clamps), question.start, question.steps),
        SealedNetworkRecord(item.sealed.network.to_bnet(), list(item.sealed.answer)),
        task.function_class,
        dict(item.labels),
        UNSET if task.wording == "standard" else task.wording,
    )


# --- Answers and verdicts ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TrajectoryAnswer:
    """States of a valid answer; model: the stated network, None if the answer states states."""

    states: tuple[str, ...]
    model: Network | None = None


def answer_key(task: TrajectoryTask) -> str:
    """Return the JSON key of an answer in states: `states` or `attractor`."""
    return "states" if task.question.steps is not None else "attractor"


def parse_states(answer: object, task: TrajectoryTask) -> TrajectoryAnswer:
    """Return the answer of a JSON object: `{"states": [...]}` or `{"attractor": [...]}`, or `{"model": bnet text}`.

    `AnswerError` states what is invalid and what is allowed.
    """
    key = answer_key(task)
    if not isinstance(answer, Mapping) or len(answer) != 1 or not answer.keys() <= {key, "model"}:
        raise AnswerError(f"an answer is an object with one key, {key} or model")
    if "model" in answer:
        return _parse_network(answer["model"], task)
    states, steps = answer[key], task.question.steps
    if not isinstance(states, list) or not states or len(states) > MAX_STATES or (steps and len(states) != steps):
        raise AnswerError(f"{key}: a list of {f'{steps} ' if steps else ''}states such as {task.question.start}")
    for state in states:
        if not isinstance(state, str) or len(state) != len(task.genes) or not {*state} <= {"0", "1"}:
            raise AnswerError(f"{key}: {short_repr(state)}; a state has a 0 or 1 for each of {len(task.genes)} genes")
    return TrajectoryAnswer(tuple(states) if steps else rotate_cycle(states))


def _parse_network(text: object, task: TrajectoryTask) -> TrajectoryAnswer:
    if not isinstance(text, str):
        raise AnswerError("model: a text, a line `gene, formula` for each gene")
    try:
        network = parse_model(text)
        problem = class_violation(network, task)
    except CalibrantError as error:
        raise AnswerError(f"model: {error}") from None
    if problem:
        raise AnswerError(f"model: {problem}")
    return TrajectoryAnswer(answer_question(network, task), network)


def states_json(states: Iterable[str], task: TrajectoryTask) -> dict[str, Any]:
    """Return states as the JSON object that `parse_states` reads."""
    return {answer_key(task): list(states)}


def grade_states(item: TrajectoryItem, answer: object) -> Verdict:
    """Return the verdict on a decoded JSON answer: whether all states are right, and the share of right digits."""
    try:
        parsed = parse_states(answer, item.task)
    except AnswerError as error:
        return Verdict(False, 0.0, None, error=str(error))
    is_right = parsed.states == item.sealed.answer
    share = 1.0 if is_right else share_of_digits(parsed.states, item.sealed.answer, item.task)
    return Verdict(is_right, share, None, fits=None if parsed.model is None else fits(parsed.model, item.task))


def share_of_digits(states: Sequence[str], truth: Sequence[str], task: TrajectoryTask) -> float:
    """Return the share of right digits, missing states being wrong; an attractor is rotated for the largest share."""
    turns = range(len(states)) if task.question.steps is None else range(1)
    rotations = ("".join(states[turn:]) + "".join(states[:turn]) for turn in turns)
    num_right = max(sum(a == b for a, b in zip(digits, "".join(truth), strict=False)) for digits in rotations)
    return num_right / (max(len(states), len(truth)) * len(task.genes))


def is_stated_trajectory(answer: Mapping[str, Any], task: TrajectoryTask) -> bool:
    """Return whether an object has the key of an answer alone, with a valid value or not."""
    return len(answer) == 1 and (isinstance(answer.get(answer_key(task)), list) or isinstance(answer.get("model"), str))


def trajectory_shape(task: TrajectoryTask) -> Shape:
    """Return the shape that reads answers with small errors of form."""
    key = answer_key(task)
    names = {key: key, "model": "model"}

    def shaped(stated: Mapping[str, Any]) -> Shaped | None:
        found_keys = shaped_keys(stated, names, drops=True)
        return found_keys if found_keys is not None and is_stated_trajectory(found_keys.answer, task) else None

    def of_lines(lines: StatedLines) -> dict[str, Any] | None:
        answer = lines.values({key: key})
        return answer if answer is not None and is_stated_trajectory(answer, task) else None

    return Shape(shaped, of_lines)


# --- Prompts ----------------------------------------------------------------------------------------------------------
_RULES: Final = (
    "Genes are 0 or 1. All genes change together, step by step: the next value of a gene is a function of the present"
    " values of its candidates. It need not depend on each of them, and may be constant. A gene that is held keeps its"
    " value, whatever its function."
)
_SIGNED: Final = (
    "Candidates have signs: where a candidate with + rises from 0 to 1 the function never falls, where one with - rises"
    " it never rises, and ± may do both."
)
_FREE: Final = "Candidates have signs, + and - for those that raise and lower and ± for both; functions may break them."
TRAJECTORY_PHRASES: Final[Phrases] = (
    (
        _RULES,
        "There are genes with values 0 and 1, and in each step all take their next values at once. What a gene becomes"
        " is a function of what its candidates are. The function may ignore some candidates, or all of them. Whatever"
        " its function, a gene that is held stays as it is.",
    ),
    (
        _SIGNED,
        "By the sign of a candidate, a rise of it from 0 to 1 never lowers the function (+), never raises it (-), or"
        " does either (±).",
    ),
    ("Genes, in the order of the digits of a state: ", "The digits of a state stand for these genes, in order: "),
    ("What the genes were seen to do:\n", "States that followed each other:\n"),
    ("Answer with a JSON object: ", "Your answer is a JSON object: "),
)
_MARKS = {"+": "+", "-": "-", "both": "\N{PLUS-MINUS SIGN}"}


def trajectory_prompt(task: TrajectoryTask) -> str:
    """Return the prompt of a task."""
    return "\n\n".join([*trajectory_facts(task), reword(_form(task), task.wording, TRAJECTORY_PHRASES)])


def trajectory_facts(task: TrajectoryTask) -> tuple[str, ...]:
    """Return the paragraphs of the prompt before the format of an answer."""
    lines = (
        f"{gene}: {', '.join(_MARKS[sign] + name for name, sign in _in_order(task, gene)) or 'none'}"
        for gene in task.genes
    )
    trajectories = (
        f"{number}. {_held(trajectory.clamps, task)}{' -> '.join(trajectory.states)}"
        for number, trajectory in enumerate(task.evidence, 1)
    )
    question = task.question
    question_text = (
        f"What are the next {question.steps} states?"
        if question.steps is not None
        else "Which states does it come to, and then repeat for ever (one state, or a cycle)?"
    )
    parts = (
        _RULES,
        _SIGNED if task.function_class == "signed" else _FREE,
        f"Genes, in the order of the digits of a state: {', '.join(task.genes)}",
        "Candidates of each gene:\n" + "\n".join(lines),
        "What the genes were seen to do:\n" + "\n".join(trajectories),
        f"Question. {_held(question.clamps, task)}from {question.start} on. {question_text}",
    )
    return tuple(reword(part, task.wording, TRAJECTORY_PHRASES) for part in parts)


def _in_order(task: TrajectoryTask, gene: str) -> list[tuple[str, str]]:
    """Return a gene's candidates in the order of the task's genes, which does not depend on names."""
    return sorted(task.candidates[gene], key=lambda candidate: task.genes.index(candidate[0]))


def _held(clamps: Mapping[str, int], task: TrajectoryTask) -> str:
    listed = ", ".join(f"{gene} = {clamps[gene]}" for gene in task.genes if gene in clamps)
    return f"Held: {listed}; " if listed else ""


def _form(task: TrajectoryTask) -> str:
    key, example = answer_key(task), ("01" * len(task.genes))[: len(task.genes)]
    meaning = "the states after the start, in order" if key == "states" else "its states in order, from any of them on"
    return (
        f'Answer with a JSON object: {{"{key}": ["{example}", ...]}}, {meaning}; or {{"model": "..."}}, a network as a'
        " line `gene, formula` for each gene (operators ! & |, constants 0 and 1), whose answer is computed."
    )
