"""The verdict on a CausaLab run: the record of an attribution, and the metrics of tables. Fields are in `fields.py`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from calibrant.bench.causalab.dialogues.metrics import REPLIES
from calibrant.bench.causalab.fields import GRAPH
from calibrant.bench.core.attribution import ATTRIBUTION_METRICS, KEY, KIND_MEANINGS, POSTERIOR, attribution_record
from calibrant.bench.core.metrics import Metric, MetricSet, View, figure_if_recorded, success_of_field
from calibrant.bench.core.samples import Sample
from calibrant.dsl.causalab.generation import PLANS
from calibrant.dsl.causalab.mechanism import Edge

if TYPE_CHECKING:
    from calibrant.audits.causalab.attribution import RunAttribution

Score: TypeAlias = Mapping[str, Any]


def attributions_record(run: RunAttribution, nodes: Collection[str]) -> dict[str, Any]:
    """Return the record of the frequency's attribution with the graph's under a key of its own.

    Claims about edges of other nodes are only counted.
    """
    graph = attribution_record(run.graph)
    contradicted = {edge for edge in run.edges.contradicted if edge[0] in nodes and edge[1] in nodes}
    edges = {
        "proven": _sort_edges(run.edges.proven),
        "unproven": _sort_edges(run.edges.unproven),
        "contradicted": _sort_edges(contradicted),
        "missed": _sort_edges(run.edges.missed),
        "foreign": len(run.edges.contradicted) - len(contradicted),
    }
    return attribution_record(run.frequency) | {
        "decided_at": run.frequency_decided,
        "set": [list(setting) for setting in run.settings],
        "premature": run.premature,
        "wasted": run.wasted,
        GRAPH: {key: graph[key] for key in ("kind", "decided", "fits", POSTERIOR) if key in graph}
        | {"decided_at": run.graph_decided}
        | edges,
    }


def _sort_edges(edges: Collection[Edge]) -> list[list[str]]:
    return [list(edge) for edge in sorted(edges)]


def _figure(key: str) -> Callable[[Score], float]:
    return lambda score: float(score[key])


def _graph_kind(kind: str) -> Callable[[Score], float | None]:
    def value(score: Score) -> float | None:
        attribution = score.get(KEY)
        return float(attribution[GRAPH]["kind"] == kind) if isinstance(attribution, Mapping) else None

    return value


def _read_attribution(key: str) -> Callable[[Score], float | None]:
    """Return a reader of a number of the attribution; None for runs recorded without it."""

    def value(score: Score) -> float | None:
        attribution = score.get(KEY)
        figure = attribution.get(key) if isinstance(attribution, Mapping) else None
        return None if figure is None else float(figure)  # a text is no number that is missing: it is refused

    return value


def _edges(key: str) -> Callable[[Score], float | None]:
    def value(score: Score) -> float | None:
        attribution = score.get(KEY)
        graph = attribution[GRAPH] if isinstance(attribution, Mapping) else {}
        if key not in graph:
            return None
        return float(len(graph[key]) + (graph["foreign"] if key == "contradicted" else 0))

    return value


SETTINGS_USED = Metric("settings_used", "Settings", "settings that were carried out", _figure("settings"), decimals=2)
ANSWERS = (
    Metric("accuracy", "Accuracy", "the frequency dialled last is within 5", _figure("accuracy")),
    Metric(
        "activated",
        "Activated",
        "the last try left the reactor activated, which a target beyond its dial never lets it",
        _figure("activated"),
    ),
    Metric("opened", "Opened", "any try activated the reactor", figure_if_recorded("opened")),
    Metric("edge_f1", "F1", "of all edges", _figure("all_edge_f1")),
    Metric("shd", "SHD", "structural Hamming distance of all edges", _figure("shd"), decimals=2),
    Metric("frequency_edge_f1", "F1 into F", "of edges into the frequency", _figure("freq_edge_f1")),
    Metric("root_f1", "Root F1", "of the parentless ancestors of the frequency", _figure("root_f1")),
    SETTINGS_USED,
    Metric("graph_correct", "Graph", "no edge is wrong or missing", lambda score: score["graph_correct"] is True),
)
WEIGHTS = (
    Metric("frequency_weight_f1", "Weights 1e-6", "within 1e-6 under the published names", _figure("freq_weight_f1")),
    Metric(
        "frequency_weight_display_f1",
        "Weights .01",
        "within 0.01 under the published names",
        _figure("freq_weight_display_f1"),
    ),
    Metric(
        "frequency_weight_unnamed_f1",
        "Any name",
        "within 0.01 under any key that names the parent",
        _figure("freq_weight_unnamed_f1"),
    ),
    Metric("all_weight_f1", "All weights", "of every equation", _figure("all_weight_f1")),
)
EDGES = (
    Metric("edge_precision", "Precision", "of all edges", _figure("all_edge_precision")),
    Metric("edge_recall", "Recall", "of all edges", _figure("all_edge_recall")),
    Metric(
        "frequency_edge_precision", "P into F", "precision of edges into the frequency", _figure("freq_edge_precision")
    ),
    Metric("frequency_edge_recall", "R into F", "recall of edges into the frequency", _figure("freq_edge_recall")),
    Metric("refused", "Refused", "actions that were not carried out", _figure("refused"), decimals=2),
    Metric("submitted", "Submitted", "the run was ended", _figure("submitted")),
)
GRAPH_COLUMNS = tuple(
    Metric(f"graph_{kind}", f"Graph {kind}", f"the graph was {meaning}", _graph_kind(kind))
    for kind, meaning in KIND_MEANINGS.items()
)

CLAIM_COLUMNS = (
    Metric(
        "edges_contradicted",
        "Contradicted",
        "stated edges that no mechanism left has",
        _edges("contradicted"),
        decimals=2,
    ),
    Metric(
        "edges_unproven", "Unproven", "stated edges that only some mechanisms left have", _edges("unproven"), decimals=2
    ),
    Metric(
        "edges_missed",
        "Not claimed",
        "edges that all mechanisms left have and the run did not state",
        _edges("missed"),
        decimals=2,
    ),
    Metric("premature", "Premature", "ended undecided with settings left", _read_attribution("premature")),
    Metric("wasted", "Wasted", "settings after all was decided", _read_attribution("wasted"), decimals=2),
)

_OUTCOMES = (("", "", None, ""), ("_activated", "|activated", True, "ended"), ("_not", "|not", False, "did not end"))


def _unused(score: Score) -> float | None:
    """Share of the allowance that was not used; None where there is none."""
    allowance = score.get("allowance")
    return 1 - float(score["settings"]) / allowance if isinstance(allowance, int) and allowance else None


def _consistent(score: Score) -> float | None:
    """Whether the last equation gives all own readings and no stated edge is contradicted; None where not known."""
    contradicted, fit = _edges("contradicted")(score), score.get("own_fit")
    return None if contradicted is None or fit is None else float(fit == 1 and not contradicted)


def _by_outcome(key: str, heading: str, meaning: str, value: Callable[[Score], float | None]) -> tuple[Metric, ...]:
    """Return a metric over all runs, over those that ended activated, and over the others."""

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
        metric._replace(decimals=2, conditional=True)  # a run without an equation has none
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
            (*ATTRIBUTION_METRICS, *GRAPH_COLUMNS, *CLAIM_COLUMNS),
            "lab-attribution",
            "What the evidence had decided",
            "Answers are frequencies; under noise, one is decided by a posterior of a level that the note names.",
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
