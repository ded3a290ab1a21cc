"""Simple methods to answer a causal question, as functions of a task and a seed.

Each makes one shortcut or one error, for comparison with a model's score. A method without an answer of the required
form returns `OutOfBudget`; `Impossible` is only returned after exhaustion.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from calibrant.dsl.causim.generated_functions import Draws
from calibrant.dsl.causim.generation import draw_world
from calibrant.dsl.causim.item import Task
from calibrant.dsl.causim.model import Model, Symbol, assignment_text, run
from calibrant.dsl.causim.question import Answer, Question, copy_evidence, project
from calibrant.solvers.causim.exact import AnswerSet, first_answers
from calibrant.solvers.causim.space import likeliest_answer, likeliest_world
from calibrant.solvers.outcome import Budget, BudgetSpent, Found, Impossible, Outcome, OutOfBudget

Row: TypeAlias = Callable[[Task, int], Outcome[Answer]]


def _draws(task: Task, seed: int, row: str) -> Draws:
    """Return a random source that depends on the question, the seed and the method."""
    question = task.question
    givens = (question.type, *map(assignment_text, (question.fixed, question.do, question.observed)))
    return Draws(row, seed, *givens)


def _forward(task: Task, noise: Mapping[str, Symbol]) -> Outcome[Answer]:
    """Run the model on this noise, with fixed noise as given, and return the answer."""
    question = task.question
    noise = {**noise, **question.fixed}
    values = run(task.model, noise, question.do) if _is_possible(task) else {}
    if not values:
        return OutOfBudget("a fixed value is never drawn")
    return Found(project(question, task.model, noise, values))


def _is_possible(task: Task) -> bool:
    support = {node.noise: node.support for node in task.model.nodes}
    return all(value in support[name] for name, value in task.question.fixed.items())


def exact(task: Task, seed: int) -> Outcome[Answer]:
    """Return a member of the answer set."""
    return AnswerSet(task.model, task.question).pick()


def run_once(task: Task, seed: int) -> Outcome[Answer]:
    """Answer by one forward sample: unknown noise from its distribution, the evidence ignored.

    Scores test membership in the answer set, not distributions, so this is right on every deduction and intervention.
    On the other types its only error is the lack of abduction.
    """
    return _forward(task, draw_world(_draws(task, seed, "run once"), task.model))


def copy(task: Task, seed: int) -> Outcome[Answer]:
    """Return the observed values, overwritten by those of `do`."""
    answer = copy_evidence(task.question)
    if set(answer) != set(task.question.required_keys(task.model)):
        return OutOfBudget("the question does not show a value for every key")
    return Found(answer)


def graph_only(task: Task, seed: int) -> Outcome[Answer]:
    """Answer without mechanisms: observed values of nodes that `do` does not reach, else the first value by text."""
    model, question = task.model, task.question
    answer = {}
    reached = _descendants_of_do(model, question)
    for key in question.required_keys(model):
        i = model.position.get(key)
        if i is None:
            answer[key] = model.nodes[model.of_noise[key]].support[0]
        elif key in question.do:
            answer[key] = question.do[key]
        elif key in question.observed and key not in reached:
            answer[key] = question.observed[key]
        else:
            answer[key] = model.system[i].domain[0]
    return Found(answer)


def _descendants_of_do(model: Model, question: Question) -> set[str]:
    reached = set(question.do)
    for node in model.nodes:
        if any(parent in reached for parent in node.parents):
            reached.add(node.name)
    return reached


def no_do(task: Task, seed: int) -> Outcome[Answer]:
    """Answer the question without its intervention."""
    question = task.question
    factual = Question(question.type, question.fixed, question.unknown, {}, question.observed, question.with_noise)
    return AnswerSet(task.model, factual).pick()


def resampled_noise(task: Task, seed: int) -> Outcome[Answer]:
    """Answer in a fitting world, with the noise of `do`'s targets and their descendants drawn again."""
    world = _fitting_world(task)
    if world is None:
        return OutOfBudget("no fitting world")
    fresh = draw_world(_draws(task, seed, "resampled"), task.model)
    reached = _descendants_of_do(task.model, task.question)
    noise = {node.noise: (fresh if node.name in reached else world)[node.noise] for node in task.model.nodes}
    return Found(project(task.question, task.model, noise, run(task.model, noise, task.question.do)))


def _fitting_world(task: Task) -> dict[str, Symbol] | None:
    try:
        world = next(AnswerSet(task.model, task.question).fitting_worlds(Budget(20_000)), None)
    except BudgetSpent:
        return None
    if world is None:
        return None
    return {node.noise: node.support[k] for node, k in zip(task.model.nodes, world, strict=True)}


def most_probable_noise(task: Task, seed: int) -> Outcome[Answer]:
    """Answer with the most probable fitting world."""
    likeliest = likeliest_world(task.model, task.question)
    if not isinstance(likeliest, Found):
        return likeliest
    return Found(
        project(task.question, task.model, likeliest.value, run(task.model, likeliest.value, task.question.do))
    )


def most_probable_answer(task: Task, seed: int) -> Outcome[Answer]:
    """Return the most probable answer, given fixed noise and evidence."""
    return likeliest_answer(task.model, task.question)


def take_first_worlds(max_worlds: int) -> Row:
    """Return a method that answers from the first `max_worlds` worlds, in the order of their noise."""

    def row(task: Task, seed: int) -> Outcome[Answer]:
        answers = first_answers(task.model, task.question, max_worlds)
        if answers:
            return Found(next(iter(answers.values())))
        if AnswerSet(task.model, task.question).worlds <= max_worlds:
            return Impossible("all worlds that agree with the fixed noise")
        return OutOfBudget(f"the first {max_worlds} worlds")

    return row


def random_symbols(task: Task, seed: int) -> Outcome[Answer]:
    """Answer each key independently with a uniformly random value of its domain."""
    model, draws = task.model, _draws(task, seed, "random")
    answer = {}
    for key in task.question.required_keys(model):
        i = model.position.get(key)
        options = model.system[i].domain if i is not None else model.nodes[model.of_noise[key]].support
        answer[key] = draws.choice(options)
    return Found(answer)


ROWS: Final[dict[str, Row]] = {
    "exact": exact,
    "most_probable_noise": most_probable_noise,
    "most_probable_answer": most_probable_answer,
    "run_once": run_once,
    "resampled_noise": resampled_noise,
    "no_do": no_do,
    "graph_only": graph_only,
    "copy": copy,
    "truncated_100": take_first_worlds(100),
    "truncated_10000": take_first_worlds(10_000),
    "random_symbols": random_symbols,
}


def recall(task: Task, max_worlds: int) -> tuple[int, int] | None:
    """Count the answers of the first worlds and of all worlds; None if the latter are too many to count."""
    size = AnswerSet(task.model, task.question).size()
    if not isinstance(size, Found):
        return None
    return len(first_answers(task.model, task.question, max_worlds)), size.value
