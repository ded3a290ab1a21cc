"""Forgers of claims about CauSim programs and questions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations, islice
from random import Random

from calibrant.audits.causim.training import harden_item
from calibrant.audits.causim.verify import (
    answer_count,
    copyable,
    trivial,
    unique_answer,
    vacuous_edge,
    vacuous_intervention,
)
from calibrant.audits.claims import Certificate
from calibrant.dsl.causim.generated_functions import TOPOLOGIES, vacuity
from calibrant.dsl.causim.item import CausimItem, Sealed, Task
from calibrant.dsl.causim.model import assignment_text, plain, run, symbols
from calibrant.dsl.causim.question import Question, copy_evidence, project
from calibrant.dsl.causim.reference import work_out, worlds
from calibrant.solvers.causim.exact import AnswerSet
from calibrant.solvers.causim.generation import generated_items
from calibrant.solvers.outcome import Found
from tests.support.forgery.forger import Data, Forger, Genuine, has_shape, is_same, nothing_forged

WORLDS = "all worlds that agree with noise and evidence"
TABLE = "all values of the child's parents and noise in their domains"
SOME = 10  # genuine certificates of a kind


@cache
def items() -> tuple[CausimItem, ...]:
    """Four-node questions of every type on every topology, small enough for all worlds; and idle edges."""
    drawn = [item for topology in TOPOLOGIES for item in generated_items(3, topology, 2, nodes=4, num_questions=2)]
    return (*drawn, *(_with_idle_edge(drawn[0], number) for number in range(4)))


def _with_idle_edge(item: CausimItem, number: int) -> CausimItem:
    """Return a chain of three whose last node, and for odd numbers the second one, ignores the node before it."""
    second = f"'x' if (a == 'x' {'or a !=' if number % 2 else 'and a =='} 'x') and u_b == 0 else 'y'"
    source = PROGRAM.format(second=second, values=2 + number)
    question = Question("intervention", {}, ("U_A", "U_B", "U_C"), {"A": '"x"'})
    return replace(item, id=f"idle-{number}", task=Task(source, question, "stochastic"), sealed=Sealed())


PROGRAM = """import random


def U_A():
    return random.choice(['x', 'y'])


def U_B():
    return random.randint(0, {values})


def U_C():
    return random.choice([0, 1])


def f_A(u_a):
    return u_a


def f_B(a, u_b):
    return {second}


def f_C(b, u_c):
    return 'x' if (b == 'x' or b != 'x') and u_c == 0 else 'y'


def run_once(seed=None):
    if seed is not None:
        random.seed(seed)
    u_a = U_A()
    u_b = U_B()
    u_c = U_C()
    a = f_A(u_a)
    b = f_B(a, u_b)
    c = f_C(b, u_c)
    return {{'A': a, 'B': b, 'C': c}}
"""


def _each(claims: Callable[[CausimItem], Iterator[Certificate]]) -> Callable[[], Sequence[Genuine]]:
    """Return the first certificates that these claims of the items make."""

    @cache
    def genuine() -> tuple[Genuine, ...]:
        return tuple(islice((Genuine(item, certificate) for item in items() for certificate in claims(item)), SOME))

    return genuine


def _edges(item: CausimItem) -> Iterator[Certificate]:
    for parent, child in vacuity(item.task.model).edges:
        yield vacuous_edge(item.task.source, parent, child, item.task.question)


def _trivials(item: CausimItem) -> Iterator[Certificate]:
    if item.task.question.is_trivial(item.task.model):
        yield trivial(item.task.source, item.task.question)


def _copies(item: CausimItem) -> Iterator[Certificate]:
    if _is_copyable(item):
        yield copyable(item.task.source, item.task.question)


def _idle(item: CausimItem) -> Iterator[Certificate]:
    if _is_idle(item):
        yield vacuous_intervention(item.task.source, item.task.question)


def _counts(item: CausimItem) -> Iterator[Certificate]:
    yield answer_count(item.task.source, item.task.question, len(_answers(item)))


def _only_answers(item: CausimItem) -> Iterator[Certificate]:
    found = work_out(item.task.model, item.task.question).answers
    if len(found) == 1:
        yield unique_answer(item.task.source, item.task.question, next(iter(found.values())))


def _least(item: CausimItem) -> Iterator[Certificate]:
    outcome = harden_item(item)
    if isinstance(outcome, Found) and outcome.value[1].data["observe"]:
        yield outcome.value[1]


@cache
def _answers_of(item_id: str) -> frozenset[str]:
    item = next(one for one in items() if one.id == item_id)
    return frozenset(map(assignment_text, work_out(item.task.model, item.task.question).answers.values()))


def _answers(item: CausimItem) -> frozenset[str]:
    return _answers_of(item.id)


def _is_copyable(item: CausimItem) -> bool:
    answer = copy_evidence(item.task.question)
    keys = set(item.task.question.required_keys(item.task.model))
    return set(answer) == keys and assignment_text(answer) in _answers(item)


def _is_idle(item: CausimItem) -> bool:
    effect = AnswerSet(item.task.model, item.task.question).effect
    return effect is not None and not effect[1] and bool(item.task.question.do)


def _edge_is_true(item: CausimItem, certificate: Certificate) -> bool:
    data = certificate.data
    vacuous = (data["parent"], data["child"]) in vacuity(item.task.model).edges
    return has_shape(data, parent=str, child=str) and vacuous and certificate.in_words == TABLE


def _trivial_is_true(item: CausimItem, certificate: Certificate) -> bool:
    words = certificate.in_words == "the required keys"
    return not certificate.data and words and item.task.question.is_trivial(item.task.model)


def _copyable_is_true(item: CausimItem, certificate: Certificate) -> bool:
    return not certificate.data and certificate.in_words == WORLDS and _is_copyable(item)


def _idle_is_true(item: CausimItem, certificate: Certificate) -> bool:
    return not certificate.data and certificate.in_words == WORLDS and _is_idle(item)


def _count_is_true(item: CausimItem, certificate: Certificate) -> bool:
    same = has_shape(certificate.data, size=int) and certificate.data["size"] == len(_answers(item))
    return same and certificate.in_words == WORLDS


def _answer_is_true(item: CausimItem, certificate: Certificate) -> bool:
    answer = assignment_text(symbols(certificate.data["answer"]))
    same = has_shape(certificate.data, answer=dict) and _answers(item) == {answer}
    return same and certificate.in_words == WORLDS


def _least_is_true(item: CausimItem, certificate: Certificate) -> bool:
    """By all worlds: the candidates are all there are, so many of them leave one answer, and no fewer do."""
    data, (model, question) = certificate.data, (item.task.model, item.task.question)
    if not has_shape(data, world=dict, observe=list, against=list, candidates=list):
        return False
    seen = [name for name in model.names if question.observed and name not in question.observed]
    candidates = sorted([*question.unknown, *seen])
    truth = dict(item.sealed.world)
    whole = {**truth, **run(model, truth, {})}
    wrong = []
    for noise, _ in worlds(model, question.fixed):
        factual = run(model, noise, {})
        if all(factual[name] == value for name, value in question.observed.items()):
            answer = project(question, model, noise, run(model, noise, question.do))
            if answer != project(question, model, truth, run(model, truth, question.do)):
                wrong.append({**noise, **factual})

    def leaves_one(names: tuple[str, ...]) -> bool:
        return not any(all(other[name] == whole[name] for name in names) for other in wrong)

    for given in map(symbols, data["against"]):
        if not any(all(other.get(key) == value for key, value in given.items()) for other in wrong):
            return False
        if set(given) != set(model.noises):
            return False
    observe = tuple(data["observe"])
    least = next(k for k in range(len(candidates) + 1) if any(map(leaves_one, combinations(candidates, k))))
    stated = is_same(data["world"], plain(truth)) and is_same(data["candidates"], candidates)
    good = set(observe) <= set(candidates) and len(set(observe)) == len(observe) == least and leaves_one(observe)
    return stated and good and certificate.in_words == "all sets of the candidates"


def _all_edges(genuine: Genuine, rng: Random) -> Iterator[Data]:
    names = genuine.item.task.model.names
    for parent in names:
        for child in names:
            yield {"parent": parent, "child": child}


def _sizes(genuine: Genuine, rng: Random) -> Iterator[Data]:
    for size in (*range(-1, 12), 10**40):
        yield {"size": size}


def _other_answers(genuine: Genuine, rng: Random) -> Iterator[Data]:
    model = genuine.item.task.model
    answer = genuine.certificate.data["answer"]
    for noise, _ in islice(worlds(model, {}), 20):
        whole = plain({**noise, **run(model, noise, {})})
        yield {"answer": {key: whole[key] for key in answer}}
    yield {"answer": {**answer, "more": 1}}


def _forged_candidates(genuine: Genuine, rng: Random) -> Iterator[Data]:
    """Fewer candidates, other observations, other worlds, worlds that are left out."""
    data, model = genuine.certificate.data, genuine.item.task.model
    every = [*model.names, *model.noises]
    for size in range(len(data["candidates"]) + 1):
        for chosen in islice(combinations(data["candidates"], size), 6):
            yield {**data, "candidates": list(chosen)}
            yield {**data, "candidates": list(chosen), "observe": list(chosen)}
            yield {**data, "observe": list(chosen)}
    yield {**data, "candidates": data["observe"]}
    yield {**data, "candidates": every}
    for noise, _ in islice(worlds(model, {}), 10):
        yield {**data, "world": plain(noise)}
        yield {**data, "against": [*data["against"], plain(noise)]}
    for index in range(len(data["against"])):
        yield {**data, "against": [*data["against"][:index], *data["against"][index + 1 :]]}


FORGERS = {
    "vacuous_edge": Forger(_each(_edges), _all_edges, _edge_is_true),
    "trivial": Forger(_each(_trivials), nothing_forged, _trivial_is_true),
    "copyable": Forger(_each(_copies), nothing_forged, _copyable_is_true),
    "vacuous_intervention": Forger(_each(_idle), nothing_forged, _idle_is_true),
    "answer_count": Forger(_each(_counts), _sizes, _count_is_true),
    "unique_answer": Forger(_each(_only_answers), _other_answers, _answer_is_true),
    "minimal_evidence": Forger(_each(_least), _forged_candidates, _least_is_true),
}
