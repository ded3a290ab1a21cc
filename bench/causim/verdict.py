"""The verdict on an answer to a CauSim question (arXiv:2605.09079): its fields, and the metrics of tables.

Shares of nodes are means over the answers with a reason for every node; each answer has the same weight. Reasons are
those of dsl.causim.score.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType, to_builtins

from calibrant.bench.core.attribution import ATTRIBUTION_METRICS, BASE
from calibrant.bench.core.metrics import Metric, MetricSet, Sample, View, success_of_field
from calibrant.bench.core.verdict import line_struct
from calibrant.dsl.causim.model import assignment_text
from calibrant.dsl.causim.question import TYPES

if TYPE_CHECKING:
    from calibrant.dsl.causim.item import Vocabulary
    from calibrant.solvers.causim.exact import Judge, Judgement

Score: TypeAlias = Mapping[str, Any]
Wrong: TypeAlias = Literal["do ignored", "impossible", "wrong noise"]
_VERSION = re.compile(r"-v\d+-")


class CausimScoreFields(Struct, frozen=True, kw_only=True):
    """The fields of a record's score."""

    correct: Annotated[bool, Meta(description="some world that fits gives the answer")]
    answered: Annotated[bool, Meta(description="there is an object with exactly the required keys")]
    why: Annotated[
        Literal["no_object", "wrong_keys", "wrong_answer"] | None,
        Meta(description="no_object, wrong_keys or wrong_answer; null iff correct"),
    ]
    meaning: Annotated[
        str | None,
        Meta(description="the answer with the model's names, as compact JSON with sorted keys; null without one"),
    ]
    nodes: Annotated[
        dict[Literal["ok", "do ignored", "impossible", "wrong noise"], int] | None,
        Meta(
            description="reason -> number of nodes: ok; do ignored, an intervened node has another value; "
            "impossible, no noise value gives this from the answer's own parents; wrong noise, some do, "
            "none that the evidence allows. Null where that is not told: abductions, and evidence that "
            "leaves several noise variables open together"
        ),
    ]
    first: Annotated[
        Wrong | None, Meta(description="reason of the first node in topological order that is not ok; null if all are")
    ]
    wrong: Annotated[
        dict[str, Wrong] | None, Meta(description="node -> reason, of the nodes that are not ok; null as `nodes`")
    ]
    trivial: Annotated[bool | None, Meta(description="`do` covers every required key")]
    copyable: Annotated[bool | None, Meta(description="the evidence with `do` written over it is right")]
    vacuous: Annotated[
        bool | None,
        Meta(description="in no world that fits something outside `do` changes. Null where these do not apply"),
    ]
    view: Annotated[Literal["prose"] | UnsetType, Meta(description="the prompt showed prose; absent of programs")] = (
        UNSET
    )
    vocabulary: Annotated[
        Literal["medical", "other"] | UnsetType,
        Meta(description="of the program's values; absent of the generator's usual one"),
    ] = UNSET


class QuestionAttribution(Struct, forbid_unknown_fields=True, rename={"in_words": "class"}):
    """What the question decided, where it is said to have one answer."""

    kind: Annotated[
        Literal["earned", "missed", "lucky", "short"],
        Meta(
            description="earned (decided, correct), missed (decided, wrong), lucky (undecided, correct) or short "
            "(undecided, wrong)"
        ),
    ]
    decided: Annotated[bool, Meta(description="one answer is right")]
    fits: Annotated[
        bool | None, Meta(description="whether the answer is one of the right ones; null without an answer")
    ]
    members: Annotated[str, Meta(description="worlds that fit, in decimal")]
    in_words: Annotated[str, Meta(description="what a world is, in words")]


CausimVerdict = line_struct(
    "CausimVerdict",
    "causim",
    CausimScoreFields,
    "The verdict on one prediction: membership in the complete answer set (arXiv:2605.09079), then where it belongs.",
    problem=Annotated[
        str,
        Meta(
            description="why the response gives no object, or one that cannot count in its form: an answer inside "
            "or before another object, something that is not a value; else empty"
        ),
    ],
    attribution=Annotated[
        QuestionAttribution | None,
        Meta(description="what the question decided; null where it is not said to have one answer"),
    ],
)


def score_record(judge: Judge, verdict: Judgement, vocabulary: Vocabulary) -> dict[str, Any]:
    """Return the score of a record. The flags of the question are computed, not copied from the item's labels."""
    flags, nodes = judge.flags, verdict.nodes
    reason_by_node = {name: reason for name, reason in (nodes or {}).items() if reason != "ok"}
    score = CausimScoreFields(
        correct=verdict.reward == 1,
        answered=verdict.answer is not None,
        why=verdict.why,
        meaning=None if verdict.answer is None else assignment_text(verdict.answer),
        nodes=None if nodes is None else dict(sorted(Counter(nodes.values()).items())),
        first=next(iter(reason_by_node.values()), None),
        wrong=None if nodes is None else reason_by_node,
        trivial=flags.trivial,
        copyable=flags.copyable,
        vacuous=flags.vacuous,
        view=UNSET if judge.task.view == "code" else judge.task.view,
        vocabulary=UNSET if vocabulary == "nonsense" else vocabulary,
    )
    return dict(to_builtins(score))


# --- Metrics ----------------------------------------------------------------------------------------------------------


def is_right(score: Score) -> bool:
    """Return whether the answer is right: some world that fits the evidence gives it."""
    return score["correct"] is True


def is_answered(score: Score) -> bool:
    """Return whether there is an object with exactly the required keys."""
    return score["answered"] is True


def first_reason(score: Score) -> str | None:
    """Return the reason of the first wrong node; None if no node is wrong or nodes have no reasons."""
    return None if score["first"] is None else str(score["first"])


def _flag_value(name: str) -> Callable[[Score], float | None]:
    """Return a function that gives a flag of the question as 0 or 1, None if it does not apply."""
    return lambda score: None if score[name] is None else float(score[name])


def _accuracy_unless(flag: str) -> Callable[[Score], float | None]:
    """Return a function that gives whether the answer is right, None unless the question's flag is false."""
    return lambda score: float(is_right(score)) if score[flag] is False else None


def _node_share(reason: str) -> Callable[[Score], float | None]:
    """Return a function that gives the share of an answer's nodes with this reason, None if nodes have no reasons."""

    def value(score: Score) -> float | None:
        nodes = score["nodes"]
        return nodes.get(reason, 0) / sum(nodes.values()) if nodes else None

    return value


def mark_abduction(setting: str, score: Score) -> Score:
    """Return the score, marked if the setting is an abduction: `_explained` needs it, and no field states it."""
    return {**score, "is_abduction": True} if setting.startswith("abduction") else score


def _explained(score: Score) -> float | None:
    """Return 1 if every node of an answer has a reason, else 0; None without an answer, and for abductions."""
    return float(score["nodes"] is not None) if is_answered(score) and "is_abduction" not in score else None


def _first_reason_rate(reason: str) -> Callable[[Score], float | None]:
    """Return a function that gives whether the first wrong node has this reason, None if none is known."""
    return lambda score: None if (first := first_reason(score)) is None else float(first == reason)


ANSWERS = (
    Metric("accuracy", "Accuracy", "some world that fits gives the answer", is_right),
    Metric("answered", "Answered", "an object with exactly the required keys", is_answered),
    Metric(
        "explained",
        "Explained",
        "answers whose every node has a reason, to questions but abductions, which tell none",
        _explained,
        conditional=True,
    ),
)
ERRORS = (
    Metric("nodes_ok", "OK", "the evidence allows a noise that gives the value", _node_share("ok"), conditional=True),
    Metric(
        "nodes_do_ignored",
        "Do ignored",
        "an intervened node has another value",
        _node_share("do ignored"),
        conditional=True,
    ),
    Metric(
        "nodes_impossible",
        "Impossible",
        "no noise gives the value from the answer's own parents (propagation)",
        _node_share("impossible"),
        conditional=True,
    ),
    Metric(
        "nodes_wrong_noise",
        "Wrong noise",
        "some does, none that the evidence allows (abduction)",
        _node_share("wrong noise"),
        conditional=True,
    ),
    Metric(
        "first_do_ignored",
        "First: do",
        "wrong answers whose first wrong node is an intervened one",
        _first_reason_rate("do ignored"),
        conditional=True,
    ),
    Metric(
        "first_impossible",
        "First: impossible",
        "wrong answers whose first wrong node no noise gives",
        _first_reason_rate("impossible"),
        conditional=True,
    ),
    Metric(
        "first_wrong_noise",
        "First: noise",
        "wrong answers whose first wrong node needs noise that the evidence rules out",
        _first_reason_rate("wrong noise"),
        conditional=True,
    ),
)
FLAGS = (
    Metric("trivial", "Trivial", "`do` covers every required key", _flag_value("trivial"), conditional=True),
    Metric(
        "copyable",
        "Copyable",
        "the evidence with `do` written over it is right",
        _flag_value("copyable"),
        conditional=True,
    ),
    Metric(
        "vacuous",
        "Vacuous",
        "`do` changes nothing else in any world that fits",
        _flag_value("vacuous"),
        conditional=True,
    ),
    Metric(
        "right_not_trivial",
        "Right|not trivial",
        "accuracy on questions that are not trivial",
        _accuracy_unless("trivial"),
        conditional=True,
    ),
    Metric(
        "right_not_copyable",
        "Right|not copyable",
        "accuracy on questions that are not copyable",
        _accuracy_unless("copyable"),
        conditional=True,
    ),
    Metric(
        "right_not_vacuous",
        "Right|effect",
        "accuracy on questions whose `do` changes something else",
        _accuracy_unless("vacuous"),
        conditional=True,
    ),
)


def _sample(score: Score) -> Sample:
    return Sample(
        valid=is_answered(score),
        correct=is_right(score),
        train_exact=False,  # this field and the next are defined for ReplaySCM alone
        heldout_exact=False,
        meaning=score["meaning"],
    )


METRICS = MetricSet(
    benchmark="causim",
    success=success_of_field("some world that fits gives the answer"),
    views={
        "answers": View(ANSWERS, "causim", "Systems by type, scenario and topology"),
        "errors": View(
            ERRORS,
            "causim-profile",
            "Error profile by type and number of nodes",
            "Shares of nodes, and of wrong answers, over answers whose every node has a reason.",
        ),
        "flags": View(FLAGS, "causim-flags", "What makes questions easy", "Shares of questions, and accuracies."),
        "attribution": View(
            ATTRIBUTION_METRICS,
            "causim-attribution",
            "What the question had decided",
            f"Of questions that are said to have one answer. {BASE}",
        ),
    },
    first=("n", "accuracy", "right_not_copyable", "nodes_do_ignored", "nodes_impossible", "nodes_wrong_noise"),
    sample=_sample,
    verdict=lambda score, setting, handling: mark_abduction(setting, score),
    rights=(("correct", "Correct", lambda sample: sample.correct),),
    unit=lambda instance: _VERSION.split(instance)[0],  # questions about one program are resampled together
    settings=TYPES,
)
