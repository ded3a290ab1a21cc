"""Statistics of causal questions: programs, worlds, evidence, questions and labels."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256

from calibrant.bench.core.statistics import Column, share, span, spread
from calibrant.dsl.causim.item import CausimItem


def _program(item: CausimItem) -> tuple[bytes]:
    return (sha256(item.task.source.encode("utf-8", "surrogatepass")).digest(),)


COLUMNS: Mapping[str, Column[CausimItem]] = {
    "n": Column(lambda item: (True,), len),
    "programs": Column(_program, lambda programs: len(set(programs))),
    "nodes": Column(lambda item: (len(item.task.model),), span),
    "worlds": Column(lambda item: (item.task.model.worlds,), spread),
    "unknown_noise": Column(lambda item: (len(item.task.question.unknown),), span),
    "intervened": Column(lambda item: (len(item.task.question.do),), span),
    "observed": Column(lambda item: (len(item.task.question.observed),), span),
    "answers": Column(lambda item: (item.labels.size,), spread),
    "trivial": Column(lambda item: (item.labels.trivial,), share),
    "effect": Column(lambda item: (item.labels.effect_some,), share),
    "copyable": Column(lambda item: (item.labels.copy,), share),
}
