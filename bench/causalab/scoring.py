"""Answers of CausaLab: how they are read, scored and attributed, and the fields and metrics of a verdict.

The terms are those of dsl.causalab.score.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from calibrant.bench.causalab.play import PLAY
from calibrant.bench.core import attribution as core_attribution
from calibrant.bench.core.metrics import Metric, MetricSet, Sample, View, figure_if_recorded, success_of_field
from calibrant.bench.core.scoring import Scorable
from calibrant.bench.core.verdict import line_struct
from calibrant.dsl.causalab.episode import HYPOTHESIS, LabEpisode, run_score
from calibrant.dsl.causalab.generation import PLANS
from calibrant.dsl.causalab.item import LabItem
from calibrant.dsl.causalab.mechanism import Edge, hypothesis
from calibrant.dsl.causalab.replies import SHAPE, read_answer
from calibrant.dsl.episode import Step, replay_actions
from calibrant.dsl.lenient_json import Shape
from calibrant.solvers.outcome import BudgetSpent

if TYPE_CHECKING:
    from calibrant.audits.causalab.attribution import RunAttribution


# --- Fields of a verdict about the replies of a system, and their metrics ---------------------------------------------


class LedgerFields(Struct, forbid_unknown_fields=True):
    """Entries that the replies copied into `past_data`, beside the readings of the episode."""

    entries: Annotated[int, Meta(description="of `past_data`, over all replies")]
    right_share: Annotated[float | None, Meta(description="entries that are a reading; null without entries")]
    altered_share: Annotated[float | None, Meta(description="entries that agree with one in most of their numbers")]
    invented_share: Annotated[float | None, Meta(description="the other entries")]
    missing: Annotated[int | None, Meta(description="readings that the last notebook lacks; null without a notebook")]
    dropped: Annotated[int, Meta(description="entries that a notebook had and the next one lacks")]
    announced: Annotated[int, Meta(description="replies with an experiment")]
    unannounced: Annotated[int, Meta(description="of them, those whose action is another one")]


class DialogueFields(Struct, forbid_unknown_fields=True):
    """Totals of the replies that were played."""

    replies: Annotated[int, Meta(description="number of replies")]
    unread: Annotated[int, Meta(description="replies without an action")]
    malformed: Annotated[int, Meta(description="replies whose hypothesis broke the paper's schema a third time")]
    unread_share: Annotated[float | None, Meta(description="share of the replies; null without any")]
    malformed_share: Annotated[float | None, Meta(description="share of the replies; null without any")]
    returned: Annotated[int, Meta(description="replies that came back for their schema")]
    verified: Annotated[bool, Meta(description="whether one came back for readings that its equation misses")]
    ledger: Annotated[LedgerFields, Meta(description="entries of `past_data` beside the readings")]


DIALOGUE = (
    Annotated[DialogueFields | UnsetType, Meta(description="totals of the replies; absent where the line has none")],
    UNSET,
)


def _dialogue_value(*keys: str) -> Callable[[Mapping[str, Any]], float | None]:
    """Return a function from a score to a number of its dialogue; None for answers without replies."""
    return figure_if_recorded("dialogue", *keys)


REPLIES = (
    Metric("unread", "Unread", "share of replies without an action", _dialogue_value("unread_share")),
    Metric(
        "malformed",
        "Malformed",
        "share of replies whose hypothesis broke the schema a third time",
        _dialogue_value("malformed_share"),
    ),
    Metric(
        "returned", "Returned", "replies that came back for it", _dialogue_value("returned"), decimals=2, is_share=False
    ),
    Metric(
        "entries_right",
        "Right",
        "entries of past_data that are a reading",
        _dialogue_value("ledger", "right_share"),
        True,
    ),
    Metric(
        "entries_altered",
        "Altered",
        "entries that agree with a reading in most numbers, not in all",
        _dialogue_value("ledger", "altered_share"),
        True,
    ),
    Metric("entries_invented", "Invented", "the other entries", _dialogue_value("ledger", "invented_share"), True),
    Metric(
        "readings_missing",
        "Missing",
        "readings that the last notebook lacks",
        _dialogue_value("ledger", "missing"),
        True,
        2,
        is_share=False,
    ),
    Metric(
        "entries_dropped",
        "Dropped",
        "entries that the next notebook lacks",
        _dialogue_value("ledger", "dropped"),
        True,
        2,
        is_share=False,
    ),
    Metric(
        "unannounced",
        "Unannounced",
        "actions that are not the announced experiment",
        _dialogue_value("ledger", "unannounced"),
        decimals=2,
        is_share=False,
    ),
)


# --- The fields of a CausaLab verdict (arXiv:2605.26029, section 4): score of a run, attribution, line ----------------
Kind: TypeAlias = Literal["earned", "missed", "lucky", "short"]
EdgeEnds: TypeAlias = tuple[str, str]  # parent, child
EdgeShare: TypeAlias = Annotated[float, Meta(description="of the edges")]
FrequencyEdgeShare: TypeAlias = Annotated[float, Meta(description="of the edges into the frequency")]
RootShare: TypeAlias = Annotated[float, Meta(description="of the parentless ancestors of the frequency")]
WeightShare: TypeAlias = Annotated[float, Meta(description="of the frequency's linear weights, right within 1e-6")]
DisplayedWeightShare: TypeAlias = Annotated[float, Meta(description="the same within 0.01")]
UnnamedWeightShare: TypeAlias = Annotated[
    float, Meta(description="the same within 0.01, under any key that names the parent")
]
AllWeightShare: TypeAlias = Annotated[float, Meta(description="of the weights of every equation")]
GRAPH = "graph"  # key of the graph's attribution


class GraphAttribution(Struct, forbid_unknown_fields=True):
    """What the readings decided of the graph."""

    kind: Annotated[Kind, Meta(description="as of the frequency; correct is a graph without a wrong or missing edge")]
    decided: Annotated[
        bool, Meta(description="all mechanisms left have one graph, or under noise one has a posterior of 0.99")
    ]
    fits: Annotated[bool | None, Meta(description="whether one of them has the graph that was stated")]
    decided_at: Annotated[
        int | None, Meta(description="settings after which one graph was first left; null if there never was")
    ]
    proven: Annotated[list[EdgeEnds], Meta(description="stated edges that all mechanisms left have")]
    unproven: Annotated[list[EdgeEnds], Meta(description="that some have")]
    contradicted: Annotated[list[EdgeEnds], Meta(description="that none has")]
    missed: Annotated[list[EdgeEnds], Meta(description="edges of all mechanisms left that were not stated")]
    foreign: Annotated[int, Meta(description="how many stated edges name something else")]
    posterior: Annotated[
        float | UnsetType, Meta(description="of the most probable graph; absent where no reading is noisy")
    ] = UNSET


class LabAttribution(Struct, forbid_unknown_fields=True, rename={"in_words": "class"}):
    """What the readings of the episode decided of the frequency, and of the graph."""

    kind: Annotated[
        Kind,
        Meta(
            description="earned (decided, correct), missed (decided, wrong), lucky (undecided, correct) or short "
            "(undecided, wrong)"
        ),
    ]
    decided: Annotated[
        bool, Meta(description="all mechanisms left predict one frequency, or under noise one has a posterior of 0.99")
    ]
    fits: Annotated[
        bool | None,
        Meta(description="whether one of them predicts the dialled one, within 5; null if none was dialled"),
    ]
    members: Annotated[str, Meta(description="mechanisms of the class that the readings left, in decimal")]
    in_words: Annotated[str, Meta(description="the class, in words")]
    decided_at: Annotated[
        int | None, Meta(description="settings after which one frequency was first left; null if there never was")
    ]
    set: Annotated[
        list[tuple[str, float]], Meta(description="the settings that were carried out, each as property and value")
    ]
    premature: Annotated[bool, Meta(description="the run ended with a question undecided and settings left")]
    wasted: Annotated[int, Meta(description="settings made after frequency and graph were decided")]
    graph: Annotated[GraphAttribution, Meta(description="what the readings decided of the graph")]
    posterior: Annotated[
        float | UnsetType, Meta(description="of the most probable frequency; absent where no reading is noisy")
    ] = UNSET


class LabScoreFields(Struct, frozen=True, kw_only=True):
    """The fields of a record's score."""

    correct: Annotated[bool, Meta(description="the frequency dialled last is within 5")]
    graph_correct: Annotated[bool, Meta(description="no edge is wrong or missing")]
    frequency: Annotated[float | None, Meta(description="what was dialled last; null if nothing was")]
    accuracy: Annotated[float, Meta(description="`correct` as a number")]
    activated: Annotated[
        float, Meta(description="the last answered try left the reactor activated, as the paper counts")
    ]
    opened: Annotated[
        float | None,
        Meta(description="any try activated it; null in lines of versions that did not tell the two apart"),
    ] = None
    settings: Annotated[int, Meta(description="how many were carried out")]
    refused: Annotated[int, Meta(description="how many actions were not")]
    submitted: Annotated[float, Meta(description="whether the run was ended")]
    all_edge_precision: EdgeShare
    all_edge_recall: EdgeShare
    all_edge_f1: EdgeShare
    freq_edge_precision: FrequencyEdgeShare
    freq_edge_recall: FrequencyEdgeShare
    freq_edge_f1: FrequencyEdgeShare
    root_precision: RootShare
    root_recall: RootShare
    root_f1: RootShare
    freq_weight_precision: WeightShare
    freq_weight_recall: WeightShare
    freq_weight_f1: WeightShare
    freq_weight_display_precision: DisplayedWeightShare
    freq_weight_display_recall: DisplayedWeightShare
    freq_weight_display_f1: DisplayedWeightShare
    freq_weight_unnamed_precision: UnnamedWeightShare
    freq_weight_unnamed_recall: UnnamedWeightShare
    freq_weight_unnamed_f1: UnnamedWeightShare
    all_weight_precision: AllWeightShare
    all_weight_recall: AllWeightShare
    all_weight_f1: AllWeightShare
    shd: Annotated[int, Meta(description="structural Hamming distance, a turned edge counted once")]
    imec: Annotated[
        int | None,
        Meta(
            description="graphs that no ideal experiment on the set properties tells from the truth; null above 8 nodes"
        ),
    ]
    records: Annotated[int | None, Meta(description="earlier crystals that the item shows; null as `opened`")] = None
    allowance: Annotated[int | None, Meta(description="settings that the item allows; null as `opened`")] = None
    own_fit: Annotated[
        float | None,
        Meta(
            description="share of the run's own readings without noise that the last equation gives within 0.01; 0 "
            "without an equation, null as `opened`"
        ),
    ] = None
    own_error: Annotated[
        float | None,
        Meta(description="its mean absolute error on them; null without an equation, beyond floats, and as `opened`"),
    ] = None


LabVerdict = line_struct(
    "LabVerdict",
    "causalab",
    LabScoreFields,
    "The verdict on one prediction: the score of its run (arXiv:2605.26029, section 4), then where it belongs.",
    problem=Annotated[
        str,
        Meta(
            description="why nothing was submitted, or what of the answer could not be read; empty if there is "
            "nothing to say"
        ),
    ],
    dialogue=DIALOGUE,
    attribution=Annotated[
        LabAttribution | None,
        Meta(
            description="what the readings decided; null where nothing was done and where the mechanisms left are "
            "not counted"
        ),
    ],
)


# --- Verdict on a CausaLab run: record of an attribution, and metrics of tables; their fields are above ---------------
Score: TypeAlias = Mapping[str, Any]


def attributions_record(run: RunAttribution, nodes: Collection[str]) -> dict[str, Any]:
    """Return the record of the frequency's attribution, with the graph's under the key GRAPH.

    Stated edges of unknown nodes are only counted.
    """
    graph = core_attribution.attribution_record(run.graph)
    contradicted = {edge for edge in run.edges.contradicted if edge[0] in nodes and edge[1] in nodes}
    edges = {
        "proven": _sort_edges(run.edges.proven),
        "unproven": _sort_edges(run.edges.unproven),
        "contradicted": _sort_edges(contradicted),
        "missed": _sort_edges(run.edges.missed),
        "foreign": len(run.edges.contradicted) - len(contradicted),
    }
    return core_attribution.attribution_record(run.frequency) | {
        "decided_at": run.frequency_decided,
        "set": [list(setting) for setting in run.settings],
        "premature": run.premature,
        "wasted": run.wasted,
        GRAPH: {key: graph[key] for key in ("kind", "decided", "fits", core_attribution.POSTERIOR) if key in graph}
        | {"decided_at": run.graph_decided}
        | edges,
    }


def _sort_edges(edges: Collection[Edge]) -> list[list[str]]:
    return [list(edge) for edge in sorted(edges)]


def _score_value(key: str) -> Callable[[Score], float]:
    return lambda score: float(score[key])


def _read_attribution(key: str) -> Callable[[Score], float | None]:
    """Return a function from a score to a number of its attribution; None for runs recorded without it."""

    def value(score: Score) -> float | None:
        attribution = score.get(core_attribution.KEY)
        figure = attribution.get(key) if isinstance(attribution, Mapping) else None
        return None if figure is None else float(figure)  # a text raises: it is no missing number

    return value


def _edges(key: str) -> Callable[[Score], float | None]:
    def value(score: Score) -> float | None:
        attribution = score.get(core_attribution.KEY)
        graph = attribution[GRAPH] if isinstance(attribution, Mapping) else {}
        if key not in graph:
            return None
        return float(len(graph[key]) + (graph["foreign"] if key == "contradicted" else 0))

    return value


SETTINGS_USED = Metric(
    "settings_used", "Settings", "settings that were carried out", _score_value("settings"), decimals=2, is_share=False
)
ANSWERS = (
    Metric("accuracy", "Accuracy", "the frequency dialled last is within 5", _score_value("accuracy")),
    Metric(
        "activated",
        "Activated",
        "the last try left the reactor activated, which a target beyond its dial never lets it",
        _score_value("activated"),
    ),
    Metric("opened", "Opened", "any try activated the reactor", figure_if_recorded("opened")),
    Metric("edge_f1", "F1", "of all edges", _score_value("all_edge_f1")),
    Metric("shd", "SHD", "structural Hamming distance of all edges", _score_value("shd"), decimals=2, is_share=False),
    Metric("frequency_edge_f1", "F1 into F", "of edges into the frequency", _score_value("freq_edge_f1")),
    Metric("root_f1", "Root F1", "of the parentless ancestors of the frequency", _score_value("root_f1")),
    SETTINGS_USED,
    Metric("graph_correct", "Graph", "no edge is wrong or missing", lambda score: score["graph_correct"] is True),
)
WEIGHTS = (
    Metric(
        "frequency_weight_f1", "Weights 1e-6", "within 1e-6 under the published names", _score_value("freq_weight_f1")
    ),
    Metric(
        "frequency_weight_display_f1",
        "Weights .01",
        "within 0.01 under the published names",
        _score_value("freq_weight_display_f1"),
    ),
    Metric(
        "frequency_weight_unnamed_f1",
        "Any name",
        "within 0.01 under any key that names the parent",
        _score_value("freq_weight_unnamed_f1"),
    ),
    Metric("all_weight_f1", "All weights", "of every equation", _score_value("all_weight_f1")),
)
EDGES = (
    Metric("edge_precision", "Precision", "of all edges", _score_value("all_edge_precision")),
    Metric("edge_recall", "Recall", "of all edges", _score_value("all_edge_recall")),
    Metric(
        "frequency_edge_precision",
        "P into F",
        "precision of edges into the frequency",
        _score_value("freq_edge_precision"),
    ),
    Metric("frequency_edge_recall", "R into F", "recall of edges into the frequency", _score_value("freq_edge_recall")),
    Metric(
        "refused", "Refused", "actions that were not carried out", _score_value("refused"), decimals=2, is_share=False
    ),
    Metric("submitted", "Submitted", "the run was ended", _score_value("submitted")),
)
GRAPH_COLUMNS = tuple(
    Metric(
        f"graph_{kind}", f"Graph {kind}", f"the graph was {meaning}", core_attribution.share_reader(kind, part=GRAPH)
    )
    for kind, meaning in core_attribution.KIND_MEANINGS.items()
)

CLAIM_COLUMNS = (
    Metric(
        "edges_contradicted",
        "Contradicted",
        "stated edges that no mechanism left has",
        _edges("contradicted"),
        decimals=2,
        is_share=False,
    ),
    Metric(
        "edges_unproven",
        "Unproven",
        "stated edges that only some mechanisms left have",
        _edges("unproven"),
        decimals=2,
        is_share=False,
    ),
    Metric(
        "edges_missed",
        "Not claimed",
        "edges that all mechanisms left have and the run did not state",
        _edges("missed"),
        decimals=2,
        is_share=False,
    ),
    Metric("premature", "Premature", "ended undecided with settings left", _read_attribution("premature")),
    Metric(
        "wasted", "Wasted", "settings after all was decided", _read_attribution("wasted"), decimals=2, is_share=False
    ),
)

_OUTCOMES = (("", "", None, ""), ("_activated", "|activated", True, "ended"), ("_not", "|not", False, "did not end"))


def _unused(score: Score) -> float | None:
    """Return the unused share of the allowance; None if the allowance is 0."""
    allowance = score.get("allowance")
    return 1 - float(score["settings"]) / allowance if isinstance(allowance, int) and allowance else None


def _consistent(score: Score) -> float | None:
    """Return whether the last equation fits all readings and no stated edge is contradicted; None if unknown."""
    contradicted, fit = _edges("contradicted")(score), score.get("own_fit")
    return None if contradicted is None or fit is None else float(fit == 1 and not contradicted)


def _by_outcome(key: str, heading: str, meaning: str, value: Callable[[Score], float | None]) -> tuple[Metric, ...]:
    """Return a metric over all runs, over those that ended activated (reactor on), and over the others."""

    def among(activated: bool | None) -> Callable[[Score], float | None]:
        return lambda score: value(score) if activated in (None, score["activated"] == 1) else None

    return tuple(
        Metric(
            f"{key}{suffix}",
            f"{heading}{mark}",
            f"the same of runs that {ending} activated" if ending else meaning,
            among(activated),
            conditional=activated is not None,
        )
        for suffix, mark, activated, ending in _OUTCOMES
    )


COMMITMENT = (
    *_by_outcome("unused", "Unused", "share of the allowance that was left, none where it is 0", _unused),
    *_by_outcome(
        "own_fit", "Own fit", "share of own readings that the last equation gives", figure_if_recorded("own_fit")
    ),
    *(
        metric._replace(
            decimals=2, is_share=False, conditional=True
        )  # runs without an equation are not in the denominator
        for metric in _by_outcome(
            "own_error",
            "Own error",
            "its mean error on them, of runs with an equation",
            figure_if_recorded("own_error"),
        )
    ),
    *_by_outcome("consistent", "Consistent", "it gives all, and no stated edge is contradicted", _consistent),
)


def _sample(score: Score) -> Sample:
    correct, graph, frequency = score["correct"] is True, score["graph_correct"] is True, score["frequency"]
    meaning = None if frequency is None else f"{frequency:.2f}"
    return Sample(frequency is not None, correct, graph, correct and graph, meaning)


METRICS = MetricSet(
    benchmark="causalab",
    success=success_of_field("the frequency dialled last is within 5"),
    views={
        "answers": View(ANSWERS, "lab", "Laboratories by suite"),
        "weights": View(WEIGHTS, "lab-weights", "Weights of the frequency's equation"),
        "edges": View(EDGES, "lab-edges", "Precision and recall of edges"),
        "attribution": View(
            (*core_attribution.ATTRIBUTION_METRICS, *GRAPH_COLUMNS, *CLAIM_COLUMNS),
            "lab-attribution",
            "What the evidence had decided",
            "Answers are frequencies; under noise, one is decided by a posterior of a level that the note names. "
            + core_attribution.BASE,
        ),
        "commitment": View(
            COMMITMENT,
            "lab-commitment",
            "Early commitment",
            "Beside it, section 5.5 and Figure 14 of the paper: GPT-5-mini on 4 nodes, 48 % as it is and 60 % with one"
            " verification step; both outcome groups leave about half of the allowance.",
        ),
        "replies": View(REPLIES, "lab-replies", "Replies and their notebooks", optional=True),
    },
    first=("n", "accuracy", "activated", "edge_f1", "shd", "earned", "graph_earned", "graph_short"),
    sample=_sample,
    rights=(("correct", "Accuracy", lambda sample: sample.correct),),
    settings=tuple(PLANS),
)


# --- Reading, scoring and attribution of answers ----------------------------------------------------------------------


class LabScoring(Scorable[LabItem]):
    """Implements Scorable (bench.core.scoring)."""

    @property
    def verdict_record(self) -> type[msgspec.Struct]:
        return LabVerdict

    def no_answer(self, item: LabItem) -> dict[str, Any]:
        return {"hypothesis": {}}

    def score(self, item: LabItem, answer: Mapping[str, Any], steps: Sequence[Step[Any]]) -> dict[str, Any]:
        """Score an answer; without a transcript as submitted before any intervention."""
        return run_score(item, steps or _replay_submission(item, answer)).as_json()

    def extract(self, item: LabItem, response: str | Mapping[str, Any]) -> dict[str, Any]:
        return self.read_answer(item, response)[0]

    def read_answer(self, item: LabItem, response: str | Mapping[str, Any]) -> tuple[dict[str, Any], str]:
        return read_answer(response)

    def shape(self, item: LabItem) -> Shape:
        return SHAPE

    def same_answer(self, item: LabItem, first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
        """Return whether two answers agree in all fields that both state."""
        shared_keys = first.keys() & second.keys()
        if "frequency" in shared_keys and first["frequency"] != second["frequency"]:
            return False
        return HYPOTHESIS not in shared_keys or hypothesis(first[HYPOTHESIS]) == hypothesis(second[HYPOTHESIS])


SCORING = LabScoring()


def attribute(
    item: LabItem, answer: Mapping[str, Any], steps: Sequence[Step[Any]], score: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Attribute frequency and graph; None if the steps are unknown or the mechanisms are not enumerated.

    An answer that was refused without any step is attributed to the item's records.
    """
    from calibrant.audits.causalab.attribution import attribute_run

    if not steps and not answer and (score.get("settings") or core_attribution.answer_status(score) != "none"):
        return None
    try:
        attributions = attribute_run(item, steps or _replay_submission(item, answer))
    except BudgetSpent:
        return None
    return attributions_record(attributions, item.task.nodes)


def _replay_submission(item: LabItem, answer: Mapping[str, Any]) -> Sequence[Step[Any]]:
    """Return the steps of a run that only submits; none if there is no answer."""
    return replay_actions(LabEpisode(item), PLAY.submission(answer, ())).steps if answer else ()
