"""Conversion between items and the state and query files of the paper's layout."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from calibrant.dsl.causim.bundle import load_bundle, module_text
from calibrant.dsl.causim.generation import Version
from calibrant.dsl.causim.item import CausimItem, Labels, Task, load_model
from calibrant.dsl.causim.model import ModelError, Symbol, compact, plain, symbols
from calibrant.dsl.causim.question import (
    QuestionRecord,
    canonical_keys,
    canonical_name,
    question_from_record,
    record_of,
    scenario_of,
)
from calibrant.dsl.causim.records import ExpectedOutput, Instance, QueryFile, QueryMeta, Scm, read_queries
from calibrant.dsl.errors import PoolError
from calibrant.solvers.causim.exact import AnswerSet
from calibrant.solvers.causim.generation import Caps, store_answers
from calibrant.solvers.outcome import Found

MAX_STORED = 10_000


def scm_of(scm_id: str, versions: Iterable[Version]) -> Scm:
    """Return a grown program in the layout of a state file."""
    return Scm(scm_id, [version.bundle for version in versions])


def query_files(
    items: Iterable[CausimItem], *, caps: Caps | None = None, limit: int = MAX_STORED
) -> Iterator[QueryFile]:
    """Group items of one program, version, type and scenario, in order of their first item.

    caps: store the answers of a pipeline with these caps; else the first `limit` of the complete set
    """
    groups: dict[QueryMeta, list[CausimItem]] = {}
    for item in items:
        question = item.task.question
        evidence = "full" if len(question.observed) in (0, len(item.task.model)) else "minimal"
        meta = QueryMeta(
            item.scm, item.version, question.type, item.task.scenario, item.topology, evidence, question.with_noise
        )
        groups.setdefault(meta, []).append(item)
    for meta, group in groups.items():
        yield QueryFile(meta, [_instance(number, item, caps, limit) for number, item in enumerate(group)])


def _instance(seed: int, item: CausimItem, caps: Caps | None, limit: int) -> Instance:
    model, question = item.task.model, item.task.question
    record = record_of(question)
    if caps is None:
        answers = [plain(answer) for answer in islice(AnswerSet(model, question).answers(), limit)]
        size, exhausted = item.labels.size, len(answers) == item.labels.size
    else:
        pipeline = store_answers(model, question, caps, seed)
        answers = [plain(answer) for answer in pipeline.answers.values()]
        size, exhausted = len(answers), pipeline.exhausted
    expected = ExpectedOutput(answers, list(question.required_keys(model)), size, exhausted)
    return Instance(
        seed, record.fixed_exogenous, record.unknown_exogenous, record.do, record.observed_endogenous, expected
    )


def items_from_queries(path: Path, scms: Sequence[Scm]) -> Iterator[CausimItem]:
    """Yield the questions of a query file about the programs of a state file, with exact labels.

    `PoolError` names file, instance and field of invalid input, wrong stored answers included.
    """
    queries = read_queries(path)
    meta = queries.meta
    try:
        source, topology = _program(meta, scms)
    except ModelError as error:
        raise PoolError(str(error), file=path.name, field="meta") from None
    for number, instance in enumerate(queries.instances):
        try:
            yield _item(meta, instance, source, topology, number)
        except ModelError as error:
            raise PoolError(str(error), file=path.name, instance=f"instance {number}") from None


def _program(meta: QueryMeta, scms: Sequence[Scm]) -> tuple[str, str]:
    for scm in scms:
        for bundle in scm.history:
            if (scm.scm_id, bundle.v) == (meta.scm_id, meta.v):
                load_bundle(bundle)
                return module_text(bundle, comments=False), meta.topology or bundle.topology
    raise ModelError(f"the state file has no version {meta.v} of {meta.scm_id}")


def _item(meta: QueryMeta, instance: Instance, source: str, topology: str, number: int) -> CausimItem:
    record = QuestionRecord(
        instance.fixed_exogenous, instance.unknown_exogenous, instance.do, instance.observed_endogenous
    )
    question = question_from_record(record, meta.type, load_model(source), with_noise=meta.with_noise)
    task = Task(source, question, meta.scenario)
    members = AnswerSet(task.model, task.question)
    size = members.size()
    if not isinstance(size, Found):
        raise ModelError("its answers could not all be counted")
    expected = instance.expected_output
    if sorted(canonical_name(key, task.model) for key in expected.required_keys) != list(members.keys):
        raise ModelError(f"expected_output.required_keys: {compact(list(members.keys))} are required")
    stored: dict[frozenset[tuple[str, Symbol]], int] = {}
    for index, raw in enumerate(expected.support):
        answer = canonical_keys(symbols(raw), task.model)
        if not members.contains(answer):
            raise ModelError(f"expected_output.support: answer {index} is wrong")
        first = stored.setdefault(frozenset(answer.items()), index)
        if first != index:  # a repeated answer in the place of a missing one would keep the length
            raise ModelError(f"expected_output.support: answers {first} and {index} are equal")
    # a stored list may be a part of the answers unless it claims to be complete
    if expected.exhausted and len(expected.support) != size.value:
        raise ModelError(f"expected_output.support: {size.value} answers are right, {len(expected.support)} are stored")
    effect = members.effect or (None, None)
    labels = Labels(size.value, task.question.is_trivial(task.model), effect[0], effect[1], members.copy)
    return CausimItem(
        f"{meta.scm_id}-v{meta.v:02d}-{meta.type}-{meta.scenario}-{number:03d}",
        Task(source, task.question, scenario_of(size.value)),
        labels,
        scm=meta.scm_id,
        version=meta.v,
        topology=topology,
    )
