"""Items for training: hardened questions, curricula with worked solutions, and statistics of a generator.

One JSON object a line; `TrainingRecord` is the schema. A reward is membership in the answer set: an answer is looked up
in `answers` if these are `exhausted`, else the scorer checks it.

A version is the number of nodes of a program. Block l (2, 4, 6, 8) has the versions up to l that no earlier block has.
The curriculum `block` trains block by block and samples completions of a block from the checkpoint of the block before.
`at-once` samples all completions from the base model and trains in the order of blocks; `easy` and `hard` train on the
first and on the last block alone.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Meta

from calibrant.audits.causim.verify import minimal_evidence_claim
from calibrant.audits.claims import Certificate
from calibrant.dsl.atomic_write import open_atomically
from calibrant.dsl.causim.generated_functions import TOPOLOGIES
from calibrant.dsl.causim.item import BENCHMARK, CausimItem, Labels, Task
from calibrant.dsl.causim.model import ModelError, plain, run
from calibrant.dsl.causim.question import Question, QuestionType, Scenario
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.text import plural
from calibrant.solvers.causim.elimination import treewidth
from calibrant.solvers.causim.exact import AnswerSet
from calibrant.solvers.causim.experiments import minimal_evidence, observable
from calibrant.solvers.causim.space import work_solution
from calibrant.solvers.outcome import BudgetSpent, Found, Impossible, Outcome, OutOfBudget

# --- Training data: prompts with worked solutions, complete answer sets and levels, in the order of a curriculum ------
FORMAT: Final = "calibrant-training"
VERSION: Final = 1
BLOCKS: Final = (2, 4, 6, 8, 10)  # each block has the versions up to its own, above the one before
MAX_ANSWERS: Final = 1_000  # right answers in a record, at most
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
    """Return the level of an item, with the number of right answers of its label."""
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
    """Return an item's record; `ModelError` if no answer is right or no solution can be derived."""
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
    """Yield a header and a line for each item; skip items without a right answer or out of budget."""
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
    """Write training data, whole or not at all; return the numbers of examples and of skipped items."""
    num_written = -1  # the header
    with open_atomically(path) as file:
        for line in training_lines(items, order, max_answers):
            file.write(line)
            num_written += 1
    return num_written, len(items) - num_written


# --- Curricula of the paper (arXiv 2605.09079, 5.2), and selection of completions (K.1) -------------------------------
Curriculum: TypeAlias = Literal["block", "at-once", "easy", "hard"]
CURRICULA: Final[tuple[Curriculum, ...]] = ("block", "at-once", "easy", "hard")
CURRICULUM_BLOCKS: Final = (2, 4, 6, 8)
BASE: Final = "base"
MANIFEST: Final = "manifest.json"


def block_of(version: int) -> int | None:
    """Return the block of a version; None for one beyond the last block, on which the paper does not train."""
    return next((block for block in CURRICULUM_BLOCKS if version <= block), None)


def blocks_of(items: Sequence[CausimItem]) -> dict[int, list[CausimItem]]:
    """Return the items by block, in the order of blocks; blocks without items are left out."""
    blocks: dict[int, list[CausimItem]] = {block: [] for block in CURRICULUM_BLOCKS}
    for item in sorted(items, key=lambda item: item.version):
        if (block := block_of(item.version)) is not None:
            blocks[block].append(item)
    return {block: group for block, group in blocks.items() if group}


def write_curriculum(folder: Path, items: Sequence[CausimItem], curriculum: Curriculum) -> list[str]:
    """Write a file for each block that a curriculum trains on, and a manifest; return a line about each file.

    The manifest lists the files in training order, each with the checkpoint that samples its completions. The file of
    `at-once` is the concatenation of those of `block`, with one header.
    """
    blocks = blocks_of(items)
    if not blocks:
        raise CalibrantError(
            f"no questions about programs of at most {CURRICULUM_BLOCKS[-1]} nodes, on which curricula train"
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise CalibrantError(f"{folder} has files; give a folder that is empty or new")
    folder.mkdir(parents=True, exist_ok=True)
    block_numbers = list(blocks)
    stages: dict[str, list[CausimItem]] = {f"block{block}.jsonl": blocks[block] for block in block_numbers}
    if curriculum == "at-once":
        stages = {"all.jsonl": [item for group in blocks.values() for item in group]}
    elif curriculum == "easy":
        stages = {f"block{block_numbers[0]}.jsonl": blocks[block_numbers[0]]}
    elif curriculum == "hard":
        stages = {f"block{block_numbers[-1]}.jsonl": blocks[block_numbers[-1]]}
    manifest, lines, previous = [], [], BASE
    for name, group in stages.items():
        num_written, num_skipped = write_training(folder / name, group)
        versions = sorted({item.version for item in group})
        manifest.append({"file": name, "versions": versions, "examples": num_written, "sampled_by": previous})
        lines.append(
            f"{plural(num_written, 'examples')} written to {folder / name}; "
            f"{plural(num_skipped, 'instances')} without a solution"
        )
        previous = f"trained on {name}" if curriculum == "block" else BASE
    with open_atomically(folder / MANIFEST) as file:
        file.write(json.dumps({"curriculum": curriculum, "stages": manifest}, indent=1).encode() + b"\n")
    return lines


@dataclass
class SelectionTotals:
    """Totals of a selection.

    selected, dropped: numbers of prompts with a right completion and without; samples: by block and question type
    """

    selected: int = 0
    dropped: int = 0
    samples: Counter[tuple[str, str]] = field(default_factory=Counter)

    def lines(self) -> Iterator[str]:
        """Yield lines for people."""
        yield f"{self.selected} prompts with a right completion, {self.dropped} without one are dropped"
        for (block, kind), num_samples in sorted(self.samples.items()):
            yield f"  {block}, {kind}: {plural(num_samples, 'samples')}"


def select_first_correct(
    items: Sequence[CausimItem], completions: Mapping[str, Sequence[tuple[str, bool]]]
) -> tuple[list[dict[str, Any]], SelectionTotals]:
    """Return, as a chat, the first right completion of each prompt in sample order; drop prompts without one.

    completions: id of an item -> (text, whether it is right) of each
    """
    chats, totals = [], SelectionTotals()
    for item in items:
        judged = completions.get(item.id, ())
        if not judged:
            continue
        block = block_of(item.version)
        totals.samples[f"block {block}" if block else "beyond", item.task.question.type] += len(judged)
        first = next((text for text, is_right in judged if is_right), None)
        if first is None:
            totals.dropped += 1
            continue
        totals.selected += 1
        messages = [{"role": "user", "content": item.task.prompt}, {"role": "assistant", "content": first}]
        chats.append({"id": item.id, "messages": messages})
    return chats, totals


# --- Hardening of questions: the smallest further observation that leaves one answer is revealed ----------------------


def harden_item(item: CausimItem) -> Outcome[tuple[CausimItem, Certificate]]:
    """Return the item with the fewest further observations that leave one answer, and a proof that no fewer do.

    `Impossible` if they reveal the whole answer; `ModelError` for an item without its sealed world.
    """
    model, question, world = item.task.model, item.task.question, item.sealed.world
    if not world:
        raise ModelError(f"{item.id}: the world that the question was drawn from is not known")
    outcome = minimal_evidence(model, question, world)
    if not isinstance(outcome, Found):
        return outcome
    hardened = _reveal(question, {**world, **run(model, world, {})}, outcome.value.observe, set(model.noises))
    if not hardened.required_keys(model):
        return Impossible("all observations but those that tell the whole answer")
    members = AnswerSet(model, hardened)
    if members.size() != Found(1):
        return OutOfBudget("the decided question could not be counted")
    effect = members.effect or (None, None)
    labels = Labels(1, hardened.is_trivial(model), effect[0], effect[1], members.copy)
    task = Task(item.task.source, hardened, "deterministic", item.task.view)
    certificate = minimal_evidence_claim(
        item.task.source, question, world, outcome.value.observe, outcome.value.against, observable(model, question)
    )
    return Found((replace(item, id=f"{item.id}-decided", task=task, labels=labels), certificate))


def _reveal(question: Question, truth: dict[str, str], observe: tuple[str, ...], noises: set[str]) -> Question:
    """Return the question with the true values of `observe` given: noise as fixed, nodes as observed."""
    fixed = {**question.fixed, **{name: truth[name] for name in observe if name in noises}}
    observed = {**question.observed, **{name: truth[name] for name in observe if name not in noises}}
    unknown = tuple(name for name in question.unknown if name not in fixed)
    return replace(question, fixed=fixed, unknown=unknown, observed=observed)


# --- Statistics of a generator: sizes, treewidths, and mechanisms that differ beyond their names ----------------------
