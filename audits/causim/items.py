"""Findings about questions and their programs, and the soundness of an item."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import Final

import msgspec

from calibrant.audits.attribution import Attribution
from calibrant.audits.causim import verify as causim_verify
from calibrant.audits.claims import Certificate, ClaimStatus, Finding, ItemIdentity, Soundness, verify
from calibrant.dsl.causim.generated_functions import TOPOLOGIES, graph_of, satisfies, vacuity
from calibrant.dsl.causim.item import CausimItem, load_model
from calibrant.dsl.causim.model import Model, ModelError
from calibrant.dsl.causim.prompt import ProseStyle, prose, read_prose, read_uniform_prose, same_model, uniform_prose
from calibrant.dsl.causim.question import scenario_of
from calibrant.dsl.errors import short_repr
from calibrant.solvers.causim.canonical import model_keys
from calibrant.solvers.causim.exact import MAX_STATES, AnswerSet
from calibrant.solvers.causim.generation import BUILT_IN
from calibrant.solvers.causim.space import WorldSpace
from calibrant.solvers.outcome import Budget, BudgetSpent, Found

# --- Summary of an item's answer set, computed once and within a limit of work ----------------------------------------
MAX_WORK: Final = 300_000_000  # table entries, and a charge of some thousands for each product: a few seconds
UNCOUNTED: Final = f"its answers could not all be counted within {MAX_STATES} beginnings and {MAX_WORK} table entries"


@dataclass(frozen=True)
class AnswerSummary:
    """Size and properties of an answer set.

    size: number of right answers, None if they could not all be counted; min_size: a lower bound of it
    effect: as `AnswerSet.effect`; copy: as `AnswerSet.copy`; None if out of budget
    not_checked: names of the fields that ran out of budget
    """

    size: int | None
    min_size: int
    effect: tuple[bool, bool] | None
    copy: bool | None
    not_checked: tuple[str, ...]


_last: list[tuple[CausimItem, AnswerSummary]] = []


def summarize_answers(item: CausimItem) -> AnswerSummary:
    """Summarize an item's answers; the last summary is cached, as checks and findings of an item both need it."""
    if not _last or _last[0][0] is not item:
        _last[:] = [(item, _summarize(item))]
    return _last[0][1]


def _summarize(item: CausimItem) -> AnswerSummary:
    model, question, work = item.task.model, item.task.question, Budget(MAX_WORK)
    members = AnswerSet(model, question, work)
    effect, copy, not_checked = None, None, []
    try:
        effect = members.effect
    except BudgetSpent:
        not_checked.append("effect")
    try:
        copy = members.copy
    except BudgetSpent:
        not_checked.append("copy")
    size = members.size()
    if isinstance(size, Found):
        return AnswerSummary(size.value, size.value, effect, copy, tuple(not_checked))
    min_size = 0
    try:
        for _ in islice(AnswerSet(model, question, Budget(MAX_WORK // 10)).answers(), item.labels.size + 1):
            min_size += 1
    except BudgetSpent:
        pass
    return AnswerSummary(None, min_size, effect, copy, ("size", *not_checked))


# --- Findings about questions, and the shares of questions that have them, by topology --------------------------------
TRIVIAL, COPYABLE, VACUOUS, CAPPED, LABEL = "trivial", "copyable", "vacuous", "capped", "wrong_label"
MAX_SUPPORT = 10_000  # answers that the paper's pipeline stores at most
MAX_COMBINATIONS = 200_000  # worlds that the paper's pipeline runs at most


def question_findings(item: CausimItem) -> Iterator[Finding]:
    """Yield the defects of one item, found in its answer set, not read from its labels."""
    question, model = item.task.question, item.task.model
    summary = summarize_answers(item)
    if question.is_trivial(model):
        yield Finding(TRIVIAL, ClaimStatus.PROVED, item.id, "the intervention states every required key")
    if summary.copy:
        yield Finding(
            COPYABLE, ClaimStatus.PROVED, item.id, "the evidence with the intervention written over it is right"
        )
    effect = summary.effect
    if effect is not None and not effect[1]:
        yield Finding(VACUOUS, ClaimStatus.PROVED, item.id, "the intervention changes nothing but what it sets")
    size = summary.size
    if size is None:
        yield Finding(CAPPED, ClaimStatus.OPEN, item.id, "the answers could not all be counted")
        return
    if size > MAX_SUPPORT:
        claim = f"{size} answers are right; a list of {MAX_SUPPORT} rejects {size - MAX_SUPPORT} of them"
        worlds = AnswerSet(model, question).worlds
        yield Finding(CAPPED, ClaimStatus.PROVED, item.id, claim, {"size": size, "worlds": worlds})
    if size != item.labels.size:
        claim = f"the label states {item.labels.size} answers; {size} are right"
        yield Finding(LABEL, ClaimStatus.PROVED, item.id, claim, {"size": size, "label": item.labels.size})


@dataclass(frozen=True)
class Share:
    """Share of a group's questions that have a flag."""

    flag: str
    group: str
    count: int
    total: int

    @property
    def share(self) -> float:
        return self.count / self.total


_FLAGS: Mapping[str, Callable[[CausimItem], bool | None]] = {  # None: the flag does not apply to the question
    TRIVIAL: lambda item: item.labels.trivial if item.task.question.do else None,
    COPYABLE: lambda item: item.labels.copy,
    VACUOUS: lambda item: None if item.labels.effect_some is None else not item.labels.effect_some,
    "one_answer": lambda item: item.labels.size == 1,
    "copyable_with_effect": lambda item: item.labels.copy if item.labels.effect_some else None,
}


def shares(items: Iterable[CausimItem]) -> list[Share]:
    """Return the share of every flag by topology and type, among the questions that it applies to."""
    counts: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    for item in items:
        for flag, read_flag in _FLAGS.items():
            has_flag = read_flag(item)
            if has_flag is not None:
                count_and_total = counts[flag, f"{item.topology}/{item.task.question.type}"]
                count_and_total[0] += has_flag
                count_and_total[1] += 1
    return [Share(flag, group, count, total) for (flag, group), (count, total) in sorted(counts.items())]


# --- Findings about programs: edges, noise and nodes that make no difference ---------


def vacuous_parts(model: Model, where: str) -> Iterator[Finding]:
    """Yield a finding for every edge, noise variable and node of a model that makes no difference."""
    vacuous = vacuity(model)
    parts: list[tuple[str, str, str]] = []
    parts += [("edge", f"{a} -> {b}", f"no change of {a} ever changes {b}") for a, b in vacuous.edges]
    parts += [("noise", name, f"the noise of {name} changes nothing") for name in vacuous.noise]
    parts += [("node", name, f"{name} has one value") for name in vacuous.constants]
    for part, name, claim in parts:
        yield Finding(VACUOUS, ClaimStatus.PROVED, where, claim, {"part": part, "name": name})


# --- Findings about one item, with certificates that its record suffices to check, and its attribution ----------------
AMBIGUOUS, UNWINNABLE = "ambiguous", "unwinnable"


def item_findings(item: CausimItem) -> Iterator[Finding]:
    """Yield the defects of an item, its question and its program, and whether an item that claims one answer has one.

    Only certificates that their verifier confirms are attached; it runs a limited number of worlds.
    """
    source, question = item.task.source, item.task.question
    for finding in question_findings(item):
        certificate = None
        if finding.kind == TRIVIAL:
            certificate = causim_verify.trivial(source, question)
        elif finding.kind == COPYABLE:
            certificate = causim_verify.copyable(source, question)
        elif finding.kind == VACUOUS:
            certificate = causim_verify.vacuous_intervention(source, question)
        elif finding.kind == LABEL:
            certificate = causim_verify.answer_count(source, question, int(finding.data["size"]))
        yield _with_certificate(finding, item, certificate)
    yield from _answer_count_findings(item)
    for finding in vacuous_parts(item.task.model, item.id):
        certificate = None
        if finding.data["part"] == "edge":
            parent, child = str(finding.data["name"]).split(" -> ")
            certificate = causim_verify.vacuous_edge(source, parent, child, question)
        yield _with_certificate(finding, item, certificate)


def _answer_count_findings(item: CausimItem) -> Iterator[Finding]:
    source, question, scenario = item.task.source, item.task.question, item.task.scenario
    num_answers = summarize_answers(item).size
    if num_answers is None:
        return
    members = AnswerSet(item.task.model, question)
    certificate = causim_verify.answer_count(source, question, num_answers)
    if num_answers == 0:
        unwinnable = Finding(UNWINNABLE, ClaimStatus.PROVED, item.id, "no answer is right")
        yield _with_certificate(unwinnable, item, certificate)
    elif scenario == "deterministic" and num_answers > 1:
        ambiguous = Finding(AMBIGUOUS, ClaimStatus.PROVED, item.id, f"{num_answers} answers are right, said to be one")
        yield _with_certificate(ambiguous, item, certificate)
    elif scenario == "deterministic":
        unique = Finding(AMBIGUOUS, ClaimStatus.REFUTED, item.id, "one answer is right")
        yield _with_certificate(
            unique, item, causim_verify.unique_answer(source, question, next(iter(members.answers())))
        )
    if scenario != scenario_of(num_answers) and num_answers == item.labels.size:
        claim = f"the question is said to be {scenario}; it is {scenario_of(num_answers)}"
        yield _with_certificate(
            Finding(LABEL, ClaimStatus.PROVED, item.id, claim, {"size": num_answers}), item, certificate
        )


def _with_certificate(finding: Finding, item: CausimItem, certificate: Certificate | None) -> Finding:
    """Attach the certificate to the finding if its verifier confirms it."""
    evidence = causim_verify.evidence_of(item.task.source, item.task.question)
    if certificate is None or not verify(certificate, evidence, causim_verify.VERIFIERS).holds:
        return finding
    return replace(finding, certificate=certificate)


def attribute_item_answer(item: CausimItem, *, fits: bool | None) -> Attribution | None:
    """Return the attribution of an answer to a question that claims one answer; None for others, and out of budget.

    fits: whether the answer is right, that is, whether a fitting world gives it; None if there was no answer
    """
    if item.task.scenario != "deterministic":
        return None
    space = WorldSpace(item.task.model, item.task.question)
    size = AnswerSet(item.task.model, item.task.question).size()
    if not isinstance(size, Found):
        return None
    return Attribution(size.value == 1, fits is True, fits, space.count, space.in_words)


# --- Soundness of a causal question: its record is true of it, and it has an answer -----------------------------------


def world_fits(item: CausimItem) -> str | None:
    """Return why the sealed world does not fit the question; "" if it does, None without one."""
    if not item.sealed.world:
        return None
    fits = WorldSpace(item.task.model, item.task.question).fits(item.sealed.world)
    return "" if fits else "the fixed noise or the evidence is of another world"


def labels_hold(item: CausimItem) -> str | None:
    """Return which labels differ from the answer set, "" if none does; None if none does and some were not computed."""
    labels, summary = item.labels, summarize_answers(item)
    stated = [labels.trivial, labels.effect_all, labels.effect_some, labels.copy]
    computed = [item.task.question.is_trivial(item.task.model), *(summary.effect or (None, None)), summary.copy]
    names = ["trivial", "effect_all", "effect_some", "copy"]
    wrong = [
        f"{name} {label}, found {value}"
        for name, label, value in zip(names, stated, computed, strict=True)
        if label is not None and label != value and name.partition("_")[0] not in summary.not_checked
    ]
    if summary.size is not None and summary.size != labels.size:
        wrong.insert(0, f"size {labels.size}, found {summary.size}")
    elif summary.min_size > labels.size:
        wrong.insert(0, f"size {labels.size}, found at least {summary.min_size}")
    return "; ".join(wrong) if wrong or not summary.not_checked else None


def scenario_holds(item: CausimItem) -> str | None:
    """Return why the scenario (deterministic, stochastic, impossible) does not match the number of answers.

    "" if it is; None if the answers were not counted.
    """
    summary = summarize_answers(item)
    if summary.size is None and summary.min_size < 2:
        return None
    num_answers = summary.min_size if summary.size is None else summary.size
    scenario = scenario_of(num_answers)
    return (
        ""
        if scenario == item.task.scenario
        else f"said to be {item.task.scenario}, with {num_answers} answers {scenario}"
    )


def version_holds(item: CausimItem) -> str:
    """Return why v is not the number of nodes, "" if it is."""
    nodes = len(item.task.model)
    return "" if item.version == nodes else f"v {item.version}, but the program has {nodes} nodes"


def topology_holds(item: CausimItem) -> str | None:
    """Return why the graph does not have the stated topology; None for built-in models and without a topology."""
    if not item.topology or item.topology in BUILT_IN:
        return None
    if item.topology not in TOPOLOGIES:
        return f"unknown topology {short_repr(item.topology)}; known: {', '.join((*TOPOLOGIES, *BUILT_IN))}"
    return "" if satisfies(graph_of(item.task.model), item.topology) else f"the graph is no {item.topology}"


def prose_holds(item: CausimItem) -> str | None:
    """Return why the prose that a prompt shows is not read back as the program; None for prompts with the program."""
    return None if item.task.view == "code" else _prose_fault(item.task.source, item.task.style)


@lru_cache(maxsize=512)  # items about one program follow one another
def _prose_fault(source: str, style: ProseStyle) -> str:
    model = load_model(source)
    try:
        read = read_prose(prose(model)) if style == "sentences" else read_uniform_prose(uniform_prose(model))
    except ModelError as error:
        return str(error)
    return "" if same_model(read, model) else "its prose means another model"


def explain_undecided(item: CausimItem) -> str | None:
    """Return why it is not certain that a right answer exists, "" if it is; several right answers are no obstacle."""
    summary = summarize_answers(item)
    if summary.not_checked:
        return f"{UNCOUNTED}; not checked: {', '.join(summary.not_checked)}"
    return "" if summary.size else "no answer is right"


def duplicate_key(item: CausimItem) -> bytes:
    """Encode program, question, scenario, view and style."""
    return msgspec.json.encode((item.task.source, item.task.question, item.task.scenario, _presentation(item)))


def _presentation(item: CausimItem) -> str:
    return item.task.view if item.task.view == "code" else f"{item.task.view} {item.task.style}"


IDENTITY = ItemIdentity(
    "programs",
    duplicate_key,
    lambda item: model_keys(item.task.model)[:1],
    lambda item: model_keys(item.task.model)[1],
)
SOUNDNESS = Soundness(
    {
        "the sealed world fits the question": world_fits,
        "stated labels are those of the question": labels_hold,
        "the scenario is that of its answers": scenario_holds,
        "v is the number of nodes": version_holds,
        "the topology is that of the graph": topology_holds,
        "prose is read back as the program": prose_holds,
    },
    explain_undecided,
    IDENTITY,
)
