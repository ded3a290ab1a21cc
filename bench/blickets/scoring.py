"""Answers of extended blickets: reading, scoring, attribution, and the fields of a verdict.

Rates whose denominator depends on the agent's moves (RE accuracy, exactly-N) are shown beside rates over all episodes.
The terms are those of dsl.blickets.score.

Answers of the public text game are not published, only how many of its questions were answered rightly. `correct` means
all of them; decided means that one set of blickets is consistent with the readings, as its questions ask for no more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from calibrant.bench.core.attribution import ATTRIBUTION_METRICS, BASE, KEY, attribution_record
from calibrant.bench.core.metrics import Metric, MetricSet, Sample, View, success_of_field
from calibrant.bench.core.responses import ReadAnswer
from calibrant.bench.core.scoring import Scorable
from calibrant.bench.core.verdict import line_struct
from calibrant.bench.scoring.files import json_object, numbered_lines, shown_name
from calibrant.bench.scoring.lines import context_of_line
from calibrant.bench.scoring.scorer import ScoredPrediction
from calibrant.dsl.blickets.episode import BlicketEpisode
from calibrant.dsl.blickets.item import BlicketItem, condition_of, rule_from_json
from calibrant.dsl.blickets.replies import SHAPE, NoRuleError, TextRun, answer_of, is_one_rule, text_run
from calibrant.dsl.blickets.score import Exposed, Fault, grade
from calibrant.dsl.episode import ActionError, Step
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.lenient_json import Shape
from calibrant.dsl.records import pool_digest

# --- The verdict on an episode of the blickets (arXiv:2604.20039, section 4): its fields, and the metrics of tables
Score: TypeAlias = Mapping[str, Any]


class StatedRule(Struct, forbid_unknown_fields=True):
    """A rule of the detector."""

    rule: Annotated[Literal["conjunctive", "disjunctive"], Meta(description="its type")]
    blickets: Annotated[list[str], Meta(description="names of its objects")]


class DetectorAttribution(Struct, forbid_unknown_fields=True, rename={"in_words": "class"}):
    """What the readings of the episode decided."""

    kind: Annotated[
        Literal["earned", "missed", "lucky", "short"],
        Meta(
            description="earned (decided, correct), missed (decided, wrong), lucky (undecided, correct) or short "
            "(undecided, wrong)"
        ),
    ]
    decided: Annotated[
        bool,
        Meta(description="the readings left one answer, or of an unreliable detector one with a posterior of 0.99"),
    ]
    fits: Annotated[
        bool | None, Meta(description="whether the answer is one of those that they left; null without one")
    ]
    members: Annotated[str, Meta(description="detectors of the class that the readings left, in decimal")]
    in_words: Annotated[str, Meta(description="the class, in words")]
    decided_at: Annotated[
        int | None, Meta(description="moves after which the answer was first decided; null where it never was")
    ]
    submitted_at: Annotated[int | None, Meta(description="moves before the submission; null without one")]
    posterior: Annotated[
        float | UnsetType, Meta(description="of the most probable answer; absent where the detector is reliable")
    ] = UNSET


class BlicketScoreFields(Struct, frozen=True, kw_only=True, rename={"exposed": "class"}):
    """The fields of a record's score."""

    correct: Annotated[
        bool | None,
        Meta(description="type and blickets are those of the rule in force at the end; null while the episode is open"),
    ]
    errors: Annotated[
        list[Literal["type", "over", "under", "mixed", "timeout"]],
        Meta(description="what is wrong: type, over, under, mixed, timeout"),
    ]
    strict: Annotated[bool | None, Meta(description="correct, and with an order also listed in that order")]
    rule_in_force: Annotated[StatedRule, Meta(description="at the end")]
    closed: Annotated[Literal["answered", "timeout", "open"], Meta(description="answered, timeout or open")]
    steps: Annotated[int, Meta(description="moves, refused ones too")]
    refused: Annotated[int, Meta(description="how many of them were refused")]
    activations: Annotated[int, Meta(description="how many were counted")]
    exposed: Annotated[
        Literal["pre", "exactly-N", "RE"] | None, Meta(description="pre, exactly-N or RE; null without a switch")
    ]
    split: Annotated[
        Literal["pre", "switched-blind", "switched-seen"] | None,
        Meta(description="pre, switched-blind or switched-seen; null without a switch"),
    ]
    post_evidence: Annotated[
        int | None,
        Meta(description="readings under the rule in force at the end, if it is not the first; null without a switch"),
    ]
    distinct_configurations: Annotated[int, Meta(description="different sets that were read")]
    first_activation: Annotated[int | None, Meta(description="move that first read ACTIVE; null if none")]
    answer: Annotated[
        StatedRule | None,
        Meta(
            description="as submitted; null if nothing was, and of the text game's runs, whose answers are not public"
        ),
    ]


class EpisodeProvenance(Struct, frozen=True):
    """Provenance of a row of `run`.

    fired: dynamic behaviour -> moves until it fired; None for agents without behaviours, or if not recorded
    """

    fired: dict[str, int] | None = None


class PrintedScore(Struct, frozen=True, rename={"faults": "errors", "exposed": "class"}):
    """The fields of a recorded score that the paper's tables count."""

    correct: bool | None
    faults: tuple[Fault, ...]
    exposed: Exposed | None
    steps: int
    provenance: EpisodeProvenance = EpisodeProvenance()


class DialogueFields(Struct, forbid_unknown_fields=True):
    """Totals of the replies that were played."""

    replies: Annotated[int, Meta(description="number of replies")]
    unread: Annotated[int, Meta(description="replies without an action")]
    unread_share: Annotated[float | None, Meta(description="share of the replies; null without any")]


BlicketVerdict = line_struct(
    "BlicketVerdict",
    "blickets",
    BlicketScoreFields,
    "The verdict on one prediction: the grade of its episode (arXiv:2604.20039, section 4), then where it belongs.",
    problem=Annotated[str, Meta(description="why nothing was submitted; empty if something was")],
    dialogue=(
        Annotated[
            DialogueFields | UnsetType, Meta(description="totals of the replies; absent where the line has none")
        ],
        UNSET,
    ),
    attribution=Annotated[DetectorAttribution, Meta(description="what the readings decided")],
)


def _class(name: str) -> Callable[[Score], float | None]:
    return lambda score: None if score["class"] is None else float(score["class"] == name)


def is_right(score: Score) -> bool:
    """Return whether type and blickets are those of the rule in force at the end."""
    return score["correct"] is True


def _eligible(score: Score) -> float | None:
    return float(is_right(score)) if score["class"] == "RE" else None


def _score_switched(score: Score) -> float | None:
    return float(is_right(score)) if score["class"] in ("RE", "exactly-N") else None


def _is_switched(score: Score) -> float | None:
    return None if score["class"] is None else float(score["class"] != "pre")


def _error(name: str) -> Callable[[Score], float]:
    return lambda score: float(name in score["errors"])


ANSWERS = (
    Metric("accuracy", "Accuracy", "type and blickets are those of the rule in force at the end", is_right),
    Metric("steps", "Steps", "moves, refused ones too", lambda score: score["steps"], decimals=1, is_share=False),
    Metric("exactly_n_rate", "Exactly-N", "episodes that ended with N activations", _class("exactly-N")),
    Metric("eligible_rate", "RE rate", "episodes that ended with more than N activations", _class("RE")),
    Metric("eligible_accuracy", "RE acc", "accuracy over episodes with more than N activations", _eligible, True),
    Metric("switch_rate", "Switch rate", "episodes with N activations or more", _is_switched),
    Metric("switched_accuracy", "Switched", "accuracy over episodes with N activations or more", _score_switched, True),
    Metric(
        "answered", "Answered", "submitted before the budget was spent", lambda score: score["closed"] == "answered"
    ),
)
EVIDENCE = (
    Metric(
        "activations",
        "Activations",
        "activations that were counted",
        lambda score: score["activations"],
        decimals=1,
        is_share=False,
    ),
    Metric(
        "first_activation", "First", "the move that first read active", lambda score: score["first_activation"], True, 1
    ),
    Metric(
        "distinct_configurations",
        "Distinct",
        "different sets read",
        lambda score: score["distinct_configurations"],
        decimals=1,
        is_share=False,
    ),
    Metric(
        "post_evidence",
        "Seen after",
        "readings under the rule in force at the end, where that is not the first",
        lambda score: score["post_evidence"],
        True,
        1,
        is_share=False,
    ),
    Metric("refused", "Refused", "moves that were refused", lambda score: score["refused"], decimals=1, is_share=False),
    Metric("strict", "Strict", "correct, in the order of placement too", lambda score: score["strict"] is True),
)
FAULTS = {
    "type": "the type of the rule is wrong",
    "over": "blickets and more were named",
    "under": "some of the blickets were named, and nothing else",
    "mixed": "some blickets are missing, and others were named",
    "timeout": "the budget was spent",
}
ERRORS = tuple(Metric(name, name, meaning, _error(name)) for name, meaning in FAULTS.items())


def _unread(score: Score) -> float | None:
    """Return the share of replies without an action; None for answers without replies."""
    dialogue = score.get("dialogue")
    return dialogue.get("unread_share") if isinstance(dialogue, Mapping) else None


REPLIES = (Metric("unread", "Unread", "share of replies without an action, the paper's parse failures", _unread),)


def _sample(score: Score) -> Sample:
    answer = score["answer"]
    meaning = None if answer is None else f"{answer['rule']} {' '.join(sorted(answer['blickets']))}"
    return Sample(answer is not None, is_right(score), False, False, meaning)


METRICS = MetricSet(
    benchmark="blickets",
    success=success_of_field("type and blickets are those of the rule in force at the end"),
    views={
        "answers": View(ANSWERS, "standing", "Agents by condition"),
        "evidence": View(EVIDENCE, "evidence", "Evidence by condition"),
        "errors": View(
            ERRORS, "errors", "What was wrong", "Share of all answers with each fault; one answer may have several."
        ),
        "attribution": View(
            ATTRIBUTION_METRICS,
            "attribution",
            "What the evidence had decided",
            "Answers are those of the class that knows the condition; with an unreliable detector, one is decided by a"
            f" posterior of a level that the note names. {BASE}",
        ),
        "replies": View(REPLIES, "replies", "Replies without an action", optional=True),
    },
    first=("n", "accuracy", "steps", "eligible_rate", "eligible_accuracy", "exactly_n_rate", "switched_accuracy"),
    sample=_sample,
    rights=(("correct", "Correct", lambda sample: sample.correct),),
    settings=("conjunctive", "disjunctive", "moderator", "order", "stochastic", "noisy-moderator"),
)


# --- Reading, scoring and attribution of answers ----------------------------------------------------------------------


class BlicketScoring(Scorable[BlicketItem]):
    """Implements Scorable (bench.core.scoring)."""

    @property
    def verdict_record(self) -> type[msgspec.Struct]:
        return BlicketVerdict

    def no_answer(self, item: BlicketItem) -> dict[str, Any]:
        return {}

    def score(self, item: BlicketItem, answer: Mapping[str, Any], steps: Sequence[Step[Any]]) -> dict[str, Any]:
        """Score an answer without a transcript, as submitted before any move."""
        return grade(item, _transcript(item, answer, steps)).as_json(item.task.objects)

    def extract(self, item: BlicketItem, response: str | Mapping[str, Any]) -> dict[str, Any]:
        return answer_of(response, item.task.objects)

    def shape(self, item: BlicketItem) -> Shape:
        return SHAPE

    def read(self, item: BlicketItem, response: str | Mapping[str, Any]) -> ReadAnswer:
        """Return the one stated rule; a rule that the item does not accept is an answer too."""
        try:
            return ReadAnswer(answer_of(response, item.task.objects))
        except NoRuleError as error:
            return ReadAnswer(None, str(error))
        except ActionError as error:
            is_stated = is_one_rule(response, item.task.objects)
            return ReadAnswer(
                {} if is_stated else None, "" if is_stated else str(error), str(error) if is_stated else ""
            )

    def same_answer(self, item: BlicketItem, first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
        objects = item.task.objects
        return rule_from_json(first, objects) == rule_from_json(second, objects)


SCORING = BlicketScoring()


def attribute(
    item: BlicketItem, answer: Mapping[str, Any], steps: Sequence[Step[Any]], score: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Return the attribution of an answer; None for a mechanism that no condition has, and so no class."""
    from calibrant.audits.blickets.attribution import attribute_episode

    if condition_of(item.sealed) is None:
        return None
    result = attribute_episode(item, _transcript(item, answer, steps))
    times = {"decided_at": result.decided_at, "submitted_at": result.submitted_at}
    return attribution_record(result.attribution) | times


def _transcript(item: BlicketItem, answer: Mapping[str, Any], steps: Sequence[Step[Any]]) -> Sequence[Step[Any]]:
    """Return the steps; without any, those of an episode that only submits the answer."""
    if steps:
        return steps
    episode = BlicketEpisode(item)
    if answer:
        episode.act({"check": dict(answer)})
    return episode.steps


# --- Runs of the public text game under `calibrant score`: replayed, graded and attributed ----------------------------


def score_runs(path: Path) -> Iterator[ScoredPrediction]:
    """Score every trial of a results file; `CalibrantError` names file and line of an invalid one."""
    file, digest, num_trials = shown_name(path), pool_digest(path), 0
    for line_number, raw in numbered_lines(path):
        try:
            line = json_object(raw)
            if line is None:
                raise CalibrantError("not a JSON object in UTF-8")
            if line.get("metric_type") == "trial":
                num_trials += 1
                yield _score_run(text_run(line), line_number, path.name, digest)
        except CalibrantError as error:
            raise CalibrantError(f"{file}: line {line_number}: {error}") from None
    if not num_trials:
        raise CalibrantError(f"{file}: no line with the metric_type trial in it")


def _score_run(run: TextRun, line_number: int, file: str, digest: str) -> ScoredPrediction:
    """Return the score of a logged run; poolSize is 0, as a log is not a pool."""
    from calibrant.audits.blickets.attribution import attribute_run  # scoring answers of a pool needs no audit

    item = run.item(f"line {line_number}")
    grade_record = grade(item, [_as_played(step) for step in run.steps]).as_json(item.task.objects)
    attributed = attribute_run(run)
    times = {"decided_at": attributed.decided_at, "submitted_at": attributed.submitted_at}
    line = {
        "benchmark": "blickets",
        "instanceId": item.id,
        "model": run.answered_by or None,
        "sample": 0,
        **grade_record,
        "correct": run.right,
        "errors": [],
        "strict": None,
        "closed": "answered",
        "problem": "",
        KEY: attribution_record(attributed.attribution) | times,
        "pool": file,
        "poolDigest": digest,
        "poolSize": 0,
        "setting": item.setting,
        "stratum": item.stratum,
        "seconds": None,
    }
    return ScoredPrediction(context_of_line(line), line)


def _as_played(step: Step[str]) -> Step[str]:
    """Return the step in the form of an episode: an action that the text game refused becomes unreadable."""
    return Step({"unreadable": str(dict(step.action))}, None, step.refused, step.cost) if step.refused else step
