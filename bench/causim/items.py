"""Items of CauSim: pool files, records, prompts, pictures, and statistics of a pool."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import msgspec

from calibrant.bench.causim.pictures import LayeredNode, LayeredPicture, Mark, layered_text
from calibrant.bench.core.capabilities import PromptFields
from calibrant.bench.core.items import ItemFormats, PoolStatistic, PoolStatistics, share, span, spread
from calibrant.dsl.causim.item import TEMPLATE_FIELDS, CausimItem, template_fields
from calibrant.dsl.causim.model import ModelError, Node, Symbol, run
from calibrant.dsl.causim.question import Question
from calibrant.dsl.causim.records import ItemRecord, item_from_record, read_pool, record_of_item, write_pool
from calibrant.dsl.errors import PoolError, in_one_line
from calibrant.dsl.item import Pool
from calibrant.dsl.records import Header, convert_object
from calibrant.dsl.text import plural
from calibrant.solvers.causim.exact import AnswerSet
from calibrant.solvers.outcome import Budget, BudgetSpent, Found

# --- Pool files, records and prompts of CauSim ------------------------------------------------------------------------


class CausimItems(ItemFormats[CausimItem]):
    """Implements ItemFormats (bench.core.items)."""

    public_fields = (
        "id",
        "type",
        "scenario",
        "view",
        "program",  # absent if the prompt shows prose
        "fixed_exogenous",
        "unknown_exogenous",
        "do",
        "observed_endogenous",
        "with_noise",
    )

    @property
    def pool_records(self) -> tuple[type[msgspec.Struct], ...]:
        return Header, ItemRecord

    def read_pool(self, path: Path) -> Pool[CausimItem]:
        return read_pool(path)

    def write_pool(self, pool: Pool[CausimItem], path: Path) -> None:
        write_pool(path, pool.items, name=pool.name, metadata=dict(pool.metadata))

    def record(self, item: CausimItem) -> dict[str, Any]:
        """Return the record; `sealed` holds the world and the labels, which the prompt does not show."""
        record = dict(msgspec.to_builtins(record_of_item(item)))
        sealed = {"world": record.pop("world", {}), "labels": record.pop("labels")}
        return record | {"sealed": sealed}

    def item_of_record(self, record: Mapping[str, Any]) -> CausimItem:
        sealed = record.get("sealed")
        if not isinstance(sealed, Mapping) or not sealed.keys() <= {"world", "labels"}:
            raise PoolError("an object with world and labels is needed", field="sealed")
        native = {key: value for key, value in record.items() if key != "sealed"} | dict(sealed)
        try:
            return item_from_record(convert_object(native, ItemRecord))
        except ModelError as error:
            raise PoolError(str(error)) from None

    def shown_record(self, item: CausimItem) -> dict[str, Any]:
        fields = super().shown_record(item)
        if item.task.view != "code":
            del fields["program"]
        return fields

    def prompt(self, item: CausimItem) -> str:
        return item.task.prompt

    def drawing(self, item: CausimItem, *, reveal_sealed: bool) -> str:

        return drawing(item, reveal_sealed=reveal_sealed)


PROMPT_FIELDS = PromptFields(
    TEMPLATE_FIELDS,
    lambda task, phase: template_fields(task),
    Path(__file__).parent / "data" / "prompt.j2",
)

ITEMS = CausimItems()


# --- Statistics of causal questions: programs, worlds, evidence, questions and labels ---------------------------------


def _program(item: CausimItem) -> tuple[bytes]:
    return (sha256(item.task.source.encode("utf-8", "surrogatepass")).digest(),)


COLUMNS: Mapping[str, PoolStatistic[CausimItem]] = {
    "n": PoolStatistic(lambda item: (True,), len),
    "programs": PoolStatistic(_program, lambda programs: len(set(programs))),
    "nodes": PoolStatistic(lambda item: (len(item.task.model),), span),
    "worlds": PoolStatistic(lambda item: (item.task.model.worlds,), spread),
    "unknown_noise": PoolStatistic(lambda item: (len(item.task.question.unknown),), span),
    "intervened": PoolStatistic(lambda item: (len(item.task.question.do),), span),
    "observed": PoolStatistic(lambda item: (len(item.task.question.observed),), span),
    "answers": PoolStatistic(lambda item: (item.labels.size,), spread),
    "trivial": PoolStatistic(lambda item: (item.labels.trivial,), share),
    "effect": PoolStatistic(lambda item: (item.labels.effect_some,), share),
    "copyable": PoolStatistic(lambda item: (item.labels.copy,), share),
}
STATISTICS = PoolStatistics(COLUMNS, lambda item: item.topology)


# --- Picture of a question: the program's graph with noise, `do`, observed values and, if revealed, their changes -----
_BUDGET: Final = 20_000  # steps of a search for a world that fits, and of a count of answers
_MAX_CHARS: Final = 16  # letters of a value in a box


def question_picture(item: CausimItem, *, reveal_sealed: bool) -> LayeredPicture:
    """Return the graph of a question's program.

    reveal_sealed: show also the values of the sealed world (without one, of a world that fits) before and under `do`
    """
    model, question = item.task.model, item.task.question
    revealed = _values_in_world(item) if reveal_sealed else None
    reached = _list_reached(item)
    nodes = []
    for node in model.nodes:
        facts = {"seen": question.observed.get(node.name, "")} if question.observed else {}
        if question.do:
            facts["do"] = f":= {question.do[node.name]}" if node.name in question.do else ""
        marks = {Mark.SET} if node.name in question.do else {Mark.REACHED} if node.name in reached else set()
        value = _describe_given(question, node.name)
        if revealed is not None:
            before, after = revealed[0][node.name], revealed[1][node.name]
            facts["noise was"] = revealed[2][node.noise]
            facts["value"] = before
            if question.do:
                facts["under do"] = after
                facts["changed"] = "yes" if before != after else ""
                marks |= {Mark.CHANGED} if before != after and node.name not in question.do else set()
            value = _short(before) if before == after else f"{_short(before)} \N{RIGHTWARDS ARROW} {_short(after)}"
        nodes.append(LayeredNode(node.name, node.parents, _noise(node, question), value, frozenset(marks), facts))
    return LayeredPicture(in_one_line(item.id), _remark(item, reveal_sealed=reveal_sealed), tuple(nodes))


def _values_in_world(
    item: CausimItem,
) -> tuple[Mapping[str, Symbol], Mapping[str, Symbol], Mapping[str, Symbol]] | None:
    """Return values without and under `do`, and noise, of the sealed world or one that fits; None if none is found."""
    model, question, world = item.task.model, item.task.question, item.sealed.world
    if not world:
        members = AnswerSet(model, question)
        try:
            choices = next(members.fitting_worlds(Budget(_BUDGET)), None)
        except BudgetSpent:
            choices = None
        if choices is None:
            return None
        world = {node.noise: node.support[k] for node, k in zip(model.nodes, choices, strict=True)}
    return run(model, world, {}), run(model, world, question.do), world


def _list_reached(item: CausimItem) -> set[str]:
    """List the nodes outside `do` that descend from a node in it."""
    reached = set(item.task.question.do)
    for node in item.task.model.nodes:
        if node.name not in reached and any(parent in reached for parent in node.parents):
            reached.add(node.name)
    return reached - set(item.task.question.do)


def _describe_given(question: Question, name: str) -> str:
    if name in question.do:
        return f":= {_short(question.do[name])}"
    return _short(question.observed[name]) if name in question.observed else ""


def _noise(node: Node, question: Question) -> str:
    if node.noise in question.fixed:
        return f"{node.noise} = {_short(question.fixed[node.noise])}"
    return f"{node.noise} ? {len(node.support)}"


def _short(value: Symbol) -> str:
    return value if len(value) <= _MAX_CHARS else value[: _MAX_CHARS - 1] + "\N{HORIZONTAL ELLIPSIS}"


def _remark(item: CausimItem, *, reveal_sealed: bool) -> str:
    model = item.task.model
    shape = (item.topology or "program").replace("_", " ")
    summary = f"{item.setting}; {shape} of {plural(len(model), 'nodes')}; U ? n: unknown noise with n values"
    if not reveal_sealed:
        return summary
    members = AnswerSet(model, item.task.question)
    size = members.size(Budget(_BUDGET))
    right = f"{size.value:,} right" if isinstance(size, Found) else "right ones not counted"
    return f"{summary}; {members.worlds:,} worlds agree with the fixed noise, {members.fitting:,} fit; answers: {right}"


def drawing(item: CausimItem, *, reveal_sealed: bool) -> str:
    """Return the graph of the program in text."""
    return layered_text(question_picture(item, reveal_sealed=reveal_sealed))
