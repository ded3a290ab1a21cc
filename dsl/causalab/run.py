"""Score of a run: what was dialled, what was set, and the last hypothesis that was stated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from calibrant.dsl.causalab.episode import HYPOTHESIS, LabStep
from calibrant.dsl.causalab.equivalence import imec_size
from calibrant.dsl.causalab.hypothesis import EMPTY, Hypothesis, hypothesis, stated_edges
from calibrant.dsl.causalab.item import LabItem
from calibrant.dsl.causalab.mechanism import Edge
from calibrant.dsl.causalab.notebook.own_data import OwnFit, own_fit
from calibrant.dsl.causalab.reactor import accurate
from calibrant.dsl.causalab.score import HypothesisScore, Scorer

IMEC_NODES = 8  # the members of an equivalence class are listed, and there may be as many as orders of the nodes


@dataclass(frozen=True, slots=True)
class RunScore:
    """Score of a run.

    accurate: whether the last dialled frequency is within 5 of the target, whatever the dial makes of it
    activated: whether the last answered try left the reactor activated; the published accuracy ("exact prediction") is
        this. A later miss shuts a reactor that was open, and so does the last try; tries beyond that change nothing.
    opened: whether any try activated it
    frequency: the last that was dialled; None if none was
    settings: how many were carried out; refused: how many actions were not
    imec: graphs that no ideal experiment on the set properties tells from the truth (Table 8); None above IMEC_NODES
    records, allowance: of the item (Tables 9 to 12)
    own_fit: of the last equation, to the data of the run
    """

    hypothesis: HypothesisScore
    accurate: bool
    activated: bool
    opened: bool
    frequency: float | None
    settings: int
    refused: int
    submitted: bool
    imec: int | None
    records: int
    allowance: int
    own_fit: OwnFit

    def flat(self) -> dict[str, float]:
        """Return the figures under flat names, as they are averaged."""
        return {
            "accuracy": float(self.accurate),
            "activated": float(self.activated),
            "opened": float(self.opened),
            "settings": self.settings,
            "refused": self.refused,
            "submitted": float(self.submitted),
        } | self.hypothesis.flat()

    def as_json(self) -> dict[str, Any]:
        """Return the record's fields: figures under their flat names, and the two verdicts that attributions use.

        correct: the frequency is within 5; graph_correct: no edge is wrong or missing
        """
        verdicts = {"correct": self.accurate, "graph_correct": self.hypothesis.distance.shd == 0}
        return verdicts | {"frequency": self.frequency} | self.flat() | self._about_data()

    def _about_data(self) -> dict[str, Any]:
        return {
            "imec": self.imec,
            "records": self.records,
            "allowance": self.allowance,
            "own_fit": self.own_fit.share,
            "own_error": self.own_fit.error,
        }


def run_score(item: LabItem, steps: Iterable[LabStep]) -> RunScore:
    """Return the score of a run; its steps have to be those that the item answers (see `dsl.episode.verified`)."""
    steps = tuple(steps)
    tries: list[bool] = []
    settings = refused = 0
    submitted = False
    for step in steps:
        settings += step.cost
        refused += bool(step.refused)
        if step.refused:
            continue
        if "reactor" in step.action and step.reading is not None:
            tries.append(bool(step.reading["activated"]))
        submitted |= "submit" in step.action
    frequency = last_dialled_frequency(steps)
    right = frequency is not None and accurate(frequency, item.sealed.target)
    last = last_hypothesis(steps)
    score = Scorer(item.sealed.mechanism).score(last)
    imec = final_imec(item, steps) if len(item.task.nodes) <= IMEC_NODES else None
    activated, opened = tries[-1:] == [True], any(tries)
    return RunScore(
        score,
        right,
        activated,
        opened,
        frequency,
        settings,
        refused,
        submitted,
        imec,
        len(item.task.records),
        item.task.allowance,
        own_fit(last, item.task, steps),
    )


def final_imec(item: LabItem, steps: Iterable[LabStep]) -> int:
    """Size of the truth's interventional Markov equivalence class under the properties that a run set (Table 8)."""
    targets = {str(step.action["set"]) for step in steps if "set" in step.action and not step.refused}
    return _imec(item.sealed.mechanism.edges, frozenset(targets))


@lru_cache(maxsize=4096)
def _imec(edges: frozenset[Edge], targets: frozenset[str]) -> int:
    return imec_size(edges, targets)


def last_hypothesis(steps: Sequence[LabStep]) -> Hypothesis:
    """Return the hypothesis that stands at the end of a run."""
    raw = last_raw(steps)
    return EMPTY if raw is None else hypothesis(raw)


def last_edges(steps: Sequence[LabStep]) -> frozenset[Edge]:
    """Its edges alone: the weights of a hypothesis take longer to read."""
    raw = last_raw(steps)
    return EMPTY.edges if raw is None else stated_edges(raw)


def last_raw(steps: Sequence[LabStep]) -> Mapping[str, Any] | None:
    """Return the hypothesis that stands at the end of a run, as it was given; None if none was."""
    return next((raw for step in reversed(steps) if (raw := stated_raw(step)) is not None), None)


def stated_with(step: LabStep) -> Hypothesis | None:
    """Return the hypothesis that an action carries, or None: then the one before it still stands."""
    raw = stated_raw(step)
    return None if raw is None else hypothesis(raw)


def stated_raw(step: LabStep) -> Mapping[str, Any] | None:
    """Return the submitted object unparsed."""
    submitted = step.action.get("submit")
    raw = submitted.get(HYPOTHESIS) if isinstance(submitted, Mapping) else step.action.get(HYPOTHESIS)
    return raw if isinstance(raw, Mapping) else None


def last_dialled_frequency(steps: Iterable[LabStep]) -> float | None:
    """Return the last frequency that was dialled and answered; None without one."""
    frequencies = [step.action["reactor"] for step in steps if "reactor" in step.action and not step.refused]
    return float(frequencies[-1]) + 0.0 if frequencies else None
