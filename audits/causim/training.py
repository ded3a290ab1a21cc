"""Training data: prompts with worked solutions, complete answer sets and levels, in the order of a curriculum.

One JSON object a line; `TrainingRecord` is the schema. A reward is membership in the answer set: an answer is looked up
in `answers` where these are `exhausted`, else the scorer checks it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Meta

from calibrant.dsl.atomic_write import whole_file
from calibrant.dsl.causim.item import BENCHMARK, CausimItem
from calibrant.dsl.causim.model import ModelError, plain
from calibrant.dsl.causim.question import QuestionType, Scenario
from calibrant.dsl.causim.topology import TOPOLOGIES
from calibrant.solvers.budget import BudgetSpent
from calibrant.solvers.causim.elimination import treewidth
from calibrant.solvers.causim.exact import AnswerSet
from calibrant.solvers.causim.solution import work_solution
from calibrant.solvers.outcome import Found

FORMAT: Final = "calibrant-training"
VERSION: Final = 1
BLOCKS: Final = (2, 4, 6, 8, 10)  # each block has the versions (numbers of nodes) up to its own, above the one before
MAX_ANSWERS: Final = 1_000
Order: TypeAlias = Literal["version", "topology", "scenario"]
ORDERS: Final[tuple[Order, ...]] = ("version", "topology", "scenario")


class StepRecord(msgspec.Struct, frozen=True):
    """One line of a solution."""

    stage: Annotated[Literal["abduction", "action", "prediction"], Meta(description="which part it belongs to")]
    name: Annotated[str, Meta(description="of the variable it is about")]
    text: Annotated[str, Meta(description="the line")]


class Level(msgspec.Struct, frozen=True):
    """Difficulty of an example, for a curriculum."""

    version: Annotated[int, Meta(description="number of nodes")]
    block: Annotated[int, Meta(description="the least of 2, 4, 6, 8, 10 that is not below it, else the version")]
    topology: Annotated[str, Meta(description="of the program")]
    scenario: Annotated[Scenario, Meta(description="whether one answer is right or several")]
    treewidth: Annotated[int, Meta(description="of the min-fill order, an upper bound")]
    size: Annotated[
        int, Meta(description="number of right answers; as the item is labelled where they were not counted")
    ]
    moved: Annotated[int, Meta(description="nodes outside `do` that have an intervened ancestor")]


class TrainingHeader(msgspec.Struct, frozen=True):
    """The first line."""

    format: Annotated[str, Meta(description="calibrant-training")]
    version: Annotated[int, Meta(description="of the format, 1")]
    benchmark: Annotated[str, Meta(description="causim")]
    order: Annotated[Order, Meta(description="of the curriculum")]


class TrainingRecord(msgspec.Struct, frozen=True):
    """One example."""

    id: Annotated[str, Meta(description="of the question")]
    benchmark: Annotated[str, Meta(description="causim")]
    type: Annotated[QuestionType, Meta(description="of the question")]
    prompt: Annotated[str, Meta(description="as a system under test is shown it")]
    steps: Annotated[list[StepRecord], Meta(description="of the solution, in order")]
    solution: Annotated[str, Meta(description="their text, and the answer as the last thing")]
    answer: Annotated[dict[str, Any], Meta(description="that answer")]
    answers: Annotated[list[dict[str, Any]], Meta(description="right ones, the first thousand")]
    exhausted: Annotated[bool, Meta(description="whether these are all")]
    required_keys: Annotated[list[str], Meta(description="of an answer")]
    level: Annotated[Level, Meta(description="what a curriculum can go by")]


def level_of(item: CausimItem) -> Level:
    """Return the level of an item, its size as the item is labelled."""
    model, question = item.task.model, item.task.question
    # nodes are listed parents first, so that one pass reaches every descendant of `do`
    reached = set(question.do)
    for node in model.nodes:
        if any(parent in reached for parent in node.parents):
            reached.add(node.name)
    block = next((block for block in BLOCKS if item.version <= block), item.version)
    return Level(
        item.version,
        block,
        item.topology,
        item.task.scenario,
        treewidth(model.system),
        item.labels.size,
        len(reached - set(question.do)),
    )


def training_record(item: CausimItem, max_answers: int = MAX_ANSWERS) -> TrainingRecord:
    """Return an item's record; `ModelError` if no answer is right or the answers are out of reach."""
    model, question = item.task.model, item.task.question
    worked = work_solution(model, question)
    if not isinstance(worked, Found):
        raise ModelError(f"{item.id}: no solution can be shown")
    members = AnswerSet(model, question)
    answers = [plain(answer) for answer in islice(members.answers(), max_answers)]
    size, level = members.size(), level_of(item)
    return TrainingRecord(
        item.id,
        BENCHMARK,
        question.type,
        item.task.prompt,
        [StepRecord(step.stage, step.name, step.text) for step in worked.value.steps],
        worked.value.text,
        plain(worked.value.answer),
        answers,
        size == Found(len(answers)),
        list(members.keys),
        msgspec.structs.replace(level, size=size.value) if isinstance(size, Found) else level,
    )


def curriculum(items: Iterable[CausimItem], order: Order) -> list[CausimItem]:
    """Return the items from easy to hard: by version; by topology, then version; or by scenario, then version.

    Items of one level keep their order.
    """
    topologies = {name: k for k, name in enumerate(TOPOLOGIES)}
    scenarios = {"deterministic": 0, "stochastic": 1, "impossible": 2}

    def key(item: CausimItem) -> tuple[int, int]:
        if order == "topology":
            return topologies.get(item.topology, len(topologies)), item.version
        if order == "scenario":
            return scenarios[item.task.scenario], item.version
        return item.version, 0

    return sorted(items, key=key)


def training_lines(items: Iterable[CausimItem], order: Order, max_answers: int = MAX_ANSWERS) -> Iterator[bytes]:
    """Yield a header and a line for each item; skip items without a right answer or beyond the budget."""
    encode = msgspec.json.Encoder(order="deterministic").encode
    yield encode(TrainingHeader(FORMAT, VERSION, BENCHMARK, order)) + b"\n"
    for item in curriculum(items, order):
        try:
            record = training_record(item, max_answers)
        except (ModelError, BudgetSpent):
            continue
        yield encode(record) + b"\n"


def write_training(
    path: Path, items: Sequence[CausimItem], order: Order = "version", max_answers: int = MAX_ANSWERS
) -> tuple[int, int]:
    """Write training data, whole or not at all; return the number of examples and that of skipped items."""
    num_written = -1  # the header
    with whole_file(path) as file:
        for line in training_lines(items, order, max_answers):
            file.write(line)
            num_written += 1
    return num_written, len(items) - num_written
