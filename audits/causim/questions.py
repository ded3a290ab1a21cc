"""Findings about questions, and shares of them by topology: the calibration that no published table prints."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from statistics import median

from calibrant.audits.causim.answer_summary import summarize_answers
from calibrant.audits.claims import ClaimStatus, Finding
from calibrant.dsl.causim.item import CausimItem
from calibrant.dsl.causim.reference import work_out
from calibrant.solvers.causim.exact import AnswerSet

TRIVIAL, COPYABLE, VACUOUS, CAPPED, LABEL = "trivial", "copyable", "vacuous", "capped", "wrong_label"
MAX_SUPPORT = 10_000  # answers that the paper's pipeline stores at most
MAX_COMBINATIONS = 200_000  # worlds that it runs at most


def question_findings(item: CausimItem) -> Iterator[Finding]:
    """Yield the defects of one item, from its answer set and independent of its labels."""
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


_FLAGS: Mapping[str, Callable[[CausimItem], bool | None]] = {
    TRIVIAL: lambda item: item.labels.trivial if item.task.question.do else None,
    COPYABLE: lambda item: item.labels.copy,
    VACUOUS: lambda item: None if item.labels.effect_some is None else not item.labels.effect_some,
    "one_answer": lambda item: item.labels.size == 1,
    "copyable_with_effect": lambda item: item.labels.copy if item.labels.effect_some else None,
}


def shares(items: Iterable[CausimItem]) -> list[Share]:
    """Return the share of every flag by topology and type, where it applies to a question at all."""
    counts: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    for item in items:
        for flag, applies in _FLAGS.items():
            holds = applies(item)
            if holds is not None:
                tally = counts[flag, f"{item.topology}/{item.task.question.type}"]
                tally[0] += holds
                tally[1] += 1
    return [Share(flag, group, count, total) for (flag, group), (count, total) in sorted(counts.items())]


def abduction_sizes(items: Iterable[CausimItem]) -> Finding:
    """Return how many abduction items a cap on worlds drops."""
    sizes, dropped = [], 0
    for item in items:
        if item.task.question.type == "abduction":
            sizes.append(item.labels.size)
            dropped += item.task.model.worlds > MAX_COMBINATIONS
    if not sizes:
        return Finding(CAPPED, ClaimStatus.OPEN, "abduction", "there is no abduction item")
    return Finding(
        CAPPED,
        ClaimStatus.PROVED if dropped else ClaimStatus.REFUTED,
        "abduction",
        f"{dropped} of {len(sizes)} abduction items have more than {MAX_COMBINATIONS} worlds; "
        f"the median answer set has {median(sizes):g} members",
        {"items": len(sizes), "dropped": dropped, "median": median(sizes), "largest": max(sizes)},
    )


def labels_by_running(item: CausimItem, max_worlds: int = 20_000) -> Finding | None:
    """Compare the labels with running every world; None if they agree or there are too many worlds."""
    if AnswerSet(item.task.model, item.task.question).worlds > max_worlds:
        return None
    worked, labels = work_out(item.task.model, item.task.question), item.labels
    stated = (labels.size, labels.trivial, labels.effect_all, labels.effect_some, labels.copy)
    computed = (len(worked.answers), worked.trivial, worked.effect_all, worked.effect_some, worked.copy)
    if stated == computed and item.task.scenario == worked.scenario:
        return None
    return Finding(LABEL, ClaimStatus.PROVED, item.id, f"labels {stated}; running every world gives {computed}")
