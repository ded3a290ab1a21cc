"""Verdicts on CauSim answers in tables (arXiv:2605.09079; reasons as in dsl.causim.reasons).

Shares of nodes are means over the answers that have a reason for every node, each answer counting once whatever its
number of nodes; `audits.causim.profiles` pools the nodes instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from calibrant.bench.answers.attribution import ATTRIBUTION_COLUMNS
from calibrant.bench.core.metrics import InvalidHandling, Metric, MetricSet
from calibrant.bench.core.samples import Sample

Score = Mapping[str, Any]
SETTINGS = ("deduction", "intervention", "abduction", "counterfactual")
_VERSION = re.compile(r"-v\d+-")


def _correct(score: Score) -> bool:
    return score["correct"] is True


def _flag(name: str) -> Callable[[Score], float | None]:
    return lambda score: None if score[name] is None else float(score[name])


def _right_without(flag: str) -> Callable[[Score], float | None]:
    return lambda score: float(_correct(score)) if score[flag] is False else None


def _nodes(reason: str) -> Callable[[Score], float | None]:
    def value(score: Score) -> float | None:
        nodes = score["nodes"]
        return nodes.get(reason, 0) / sum(nodes.values()) if nodes else None

    return value


def _first(reason: str) -> Callable[[Score], float | None]:
    return lambda score: None if score["first"] is None else float(score["first"] == reason)


ANSWERS = (
    Metric("accuracy", "Accuracy", _correct),
    Metric("answered", "Answered", lambda score: score["answered"] is True),
    Metric("explained", "Explained", lambda score: score["nodes"] is not None),
)
ERRORS = (
    Metric("nodes_ok", "OK", _nodes("ok"), True),
    Metric("nodes_do_ignored", "Do ignored", _nodes("do ignored"), True),
    Metric("nodes_impossible", "Impossible", _nodes("impossible"), True),
    Metric("nodes_wrong_noise", "Wrong noise", _nodes("wrong noise"), True),
    Metric("first_do_ignored", "First: do", _first("do ignored"), True),
    Metric("first_impossible", "First: impossible", _first("impossible"), True),
    Metric("first_wrong_noise", "First: noise", _first("wrong noise"), True),
)
FLAGS = (
    Metric("trivial", "Trivial", _flag("trivial"), True),
    Metric("copyable", "Copyable", _flag("copyable"), True),
    Metric("vacuous", "Vacuous", _flag("vacuous"), True),
    Metric("right_not_trivial", "Right|not trivial", _right_without("trivial"), True),
    Metric("right_not_copyable", "Right|not copyable", _right_without("copyable"), True),
    Metric("right_not_vacuous", "Right|effect", _right_without("vacuous"), True),
)


def _sample(score: Score) -> Sample:
    return Sample(score["answered"] is True, _correct(score), False, False, score["meaning"])


def _verdict(score: Score, setting: str, means: InvalidHandling) -> Score:
    return score


MEASURES = MetricSet(
    benchmark="causim",
    views={"answers": ANSWERS, "errors": ERRORS, "flags": FLAGS, "attribution": ATTRIBUTION_COLUMNS},
    first=("n", "accuracy", "right_not_copyable", "nodes_do_ignored", "nodes_impossible", "nodes_wrong_noise"),
    verdict=_verdict,
    sample=_sample,
    rights=(("correct", "Correct", lambda sample: sample.correct),),
    unit=lambda instance: _VERSION.split(instance)[0],  # questions about one program are drawn together
    settings=SETTINGS,
)
