"""CauSim: programs, answers, answer sets and questions a second on one core; right answers against nodes.

What depends on a question alone is compiled anew for a count, and once for all answers that are judged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace as copied
from functools import partial

from msgspec.structs import replace

from calibrant.bench.lab.limits.sweep import Ask, Curve, Sweep
from calibrant.bench.lab.speed.report import Comparison, Options, Rival, Row, measure
from calibrant.dsl.causim.bundle import load_source
from calibrant.dsl.causim.generated_functions import TOPOLOGIES
from calibrant.dsl.causim.generation import grow
from calibrant.dsl.causim.item import CausimItem
from calibrant.dsl.causim.model import ModelError
from calibrant.dsl.causim.question import TYPES, Answer
from calibrant.solvers.causim.exact import AnswerSet
from calibrant.solvers.causim.generation import generated_items, items_of_version
from calibrant.solvers.outcome import Found, OutOfBudget

# --- Programs loaded, answers judged, answer sets counted and questions made a second on one core, at ten nodes -------
TOPIC = "causim"
NODES, SEED, EACH = 10, 1, 20
REPEATS = 500  # answers judged on each question
LOADED_A_SECOND = 1 / 0.020
JUDGED_A_SECOND = 1 / 0.0003
COUNTED_A_SECOND = 1 / 0.001
MADE_A_SECOND = 60_000 / (5 * 60 * 2)  # five minutes on two cores
SPARSE = tuple(name for name in TOPOLOGIES if name != "inverted_star")  # one table of which is exponential in its nodes


def rows(options: Options) -> Iterator[Row]:
    num_questions = max(1, round(EACH * options.scale))
    items = [item for topology in SPARSE for item in _questions(topology, num_questions)]
    sources = sorted({item.task.source for item in items})
    load = partial(_call_each, load_source, sources)
    yield from _rate(options, "loading", "program", LOADED_A_SECOND, load, len(sources))
    repeats = max(1, round(REPEATS * options.scale))
    judged = [(AnswerSet(item.task.model, item.task.question), _right(item)) for item in items]
    judge = partial(_judge, judged, repeats)
    yield from _rate(options, "membership", "answer", JUDGED_A_SECOND, judge, len(judged) * repeats)
    yield from _rate(
        options, "answers counted", "question", COUNTED_A_SECOND, partial(_call_each, _count, items), len(items)
    )
    number = len(TYPES) * NODES * len(TOPOLOGIES)
    yield from _rate(options, "items made with labels", "question", MADE_A_SECOND, _generate, number)


def _rate(
    options: Options, case: str, item: str, target: float, work: Callable[[], object], number: int
) -> Iterator[Row]:
    comparison = Comparison(TOPIC, f"{case}, {NODES} nodes", item, [Rival("calibrant", work, number)])
    for row in measure(comparison, options.discipline):
        reached = row.per_second is not None and row.per_second >= target
        yield replace(row, met=reached, note=f"at least {target:,.0f} a second")


def _questions(topology: str, num_questions: int) -> Iterator[CausimItem]:
    version = grow(SEED, f"{topology}-0000", topology, NODES)[-1]
    yield from items_of_version(version, f"{topology}-0000", num_questions=num_questions, seed=SEED)


def _right(item: CausimItem) -> Answer:
    answer = AnswerSet(item.task.model, item.task.question).pick()
    assert isinstance(answer, Found)
    return answer.value


def _call_each(work: Callable[..., object], values: Iterable[object]) -> None:
    for value in values:
        work(value)


def _judge(judged: Iterable[tuple[AnswerSet, Answer]], repeats: int) -> None:
    for members, answer in judged:
        for _ in range(repeats):
            assert members.contains(answer)


def _count(item: CausimItem) -> object:
    return AnswerSet(item.task.model, item.task.question).size()


def _generate() -> None:
    """Generate programs of 1 to NODES nodes for each topology, and a question of each type about each program."""
    for topology in TOPOLOGIES:
        items = list(generated_items(SEED, topology, 1, nodes=NODES, num_questions=1))
        assert len(items) == len(TYPES) * NODES


# --- CauSim: the right answers of a question, and of one whose evidence is half seen, against the number of nodes -----
LIMIT_NODES = (3, 5, 8, 10, 15, 20, 25, 30)


def sweeps() -> tuple[Sweep, ...]:
    names = list(TOPOLOGIES)
    return (
        Sweep(
            "causim-answers",
            "right answers counted, evidence complete",
            "nodes",
            [Curve(name.replace("_", " "), LIMIT_NODES, partial(_answers, name, 1)) for name in names],
        ),
        Sweep(
            "causim-half-seen",
            "right answers counted, every other node seen",
            "nodes",
            [Curve(name.replace("_", " "), LIMIT_NODES, partial(_answers, name, 2)) for name in names],
        ),
    )


def _answers(topology: str, stride: int, nodes: int, seed: int) -> Ask:
    """Return a call that counts the answers to a counterfactual; it returns why it failed, or None.

    stride: 1 if the evidence shows all nodes, 2 if it shows every other node
    """
    try:
        item = _counterfactual(topology, nodes, seed)
    except ModelError as error:
        why = str(error)
        return lambda: why
    question = item.task.question
    if stride > 1:
        observed = {name: question.observed[name] for name in item.task.model.names[::stride]}
        question = copied(question, observed=observed)

    def ask() -> str | None:
        size = AnswerSet(item.task.model, question).size()
        return size.reached if isinstance(size, OutOfBudget) else None

    return ask


def _counterfactual(topology: str, nodes: int, seed: int) -> CausimItem:
    version = grow(seed, f"{topology}-limits", topology, nodes)[-1]
    items = items_of_version(version, f"{topology}-limits", num_questions=1, seed=seed)
    return next(item for item in items if item.task.question.type == "counterfactual")
