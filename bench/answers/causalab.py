"""Scores of CausaLab in tables (arXiv:2605.26029, section 4; the terms are those of dsl.causalab.score)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

from calibrant.bench.answers.attribution import ATTRIBUTION_COLUMNS, KEY, KINDS, POSTERIOR, attribution_record
from calibrant.bench.core.metrics import InvalidHandling, Metric, MetricSet
from calibrant.bench.core.samples import Sample
from calibrant.dsl.causalab.generation import PLANS
from calibrant.dsl.causalab.mechanism import Edge

if TYPE_CHECKING:
    from calibrant.audits.causalab.attribution import RunAttribution

Score = Mapping[str, Any]
GRAPH = "graph"


def attributions_record(found: RunAttribution, nodes: Collection[str]) -> dict[str, Any]:
    """That of the frequency, with that of the graph under its own key; claims about other nodes are only counted."""
    graph = attribution_record(found.graph)
    contradicted = {edge for edge in found.edges.contradicted if edge[0] in nodes and edge[1] in nodes}
    edges = {
        "proven": _listed(found.edges.proven),
        "unproven": _listed(found.edges.unproven),
        "contradicted": _listed(contradicted),
        "missed": _listed(found.edges.missed),
        "foreign": len(found.edges.contradicted) - len(contradicted),
    }
    return attribution_record(found.frequency) | {
        "decided_at": found.frequency_decided,
        "set": [list(one) for one in found.settings],
        "premature": found.premature,
        "wasted": found.wasted,
        GRAPH: {key: graph[key] for key in ("kind", "decided", "fits", POSTERIOR) if key in graph}
        | {"decided_at": found.graph_decided}
        | edges,
    }


def _listed(edges: Collection[Edge]) -> list[list[str]]:
    return [list(edge) for edge in sorted(edges)]


def _figure(key: str) -> Callable[[Score], float]:
    return lambda score: float(score[key])


def _opened(score: Score) -> float | None:
    """Records of versions that did not tell it from `activated` do not have it."""
    return None if score.get("opened") is None else float(score["opened"])


def _graph_kind(kind: str) -> Callable[[Score], float | None]:
    def value(score: Score) -> float | None:
        said = score.get(KEY)
        return float(said[GRAPH]["kind"] == kind) if isinstance(said, Mapping) else None

    return value


def _said(key: str) -> Callable[[Score], float | None]:
    """A figure of the attribution; of runs that were recorded without it there is none."""

    def value(score: Score) -> float | None:
        said = score.get(KEY)
        found = said.get(key) if isinstance(said, Mapping) else None
        return None if found is None else float(found)

    return value


def _edges(key: str) -> Callable[[Score], float | None]:
    def value(score: Score) -> float | None:
        said = score.get(KEY)
        graph = said[GRAPH] if isinstance(said, Mapping) else {}
        if key not in graph:
            return None
        return float(len(graph[key]) + (graph["foreign"] if key == "contradicted" else 0))

    return value


ANSWERS = (
    Metric("accuracy", "Accuracy", _figure("accuracy")),
    Metric("activated", "Activated", _figure("activated")),
    Metric("opened", "Opened", _opened),
    Metric("edge_f1", "F1", _figure("all_edge_f1")),
    Metric("shd", "SHD", _figure("shd"), decimals=2),
    Metric("frequency_edge_f1", "F1 into F", _figure("freq_edge_f1")),
    Metric("root_f1", "Root F1", _figure("root_f1")),
    Metric("settings_used", "Settings", _figure("settings"), decimals=2),
    Metric("graph_correct", "Graph", lambda score: score["graph_correct"] is True),
)
WEIGHTS = (
    Metric("frequency_weight_f1", "Weights 1e-6", _figure("freq_weight_f1")),
    Metric("frequency_weight_display_f1", "Weights .01", _figure("freq_weight_display_f1")),
    Metric("frequency_weight_unnamed_f1", "Any name", _figure("freq_weight_unnamed_f1")),
    Metric("all_weight_f1", "All weights", _figure("all_weight_f1")),
)
EDGES = (
    Metric("edge_precision", "Precision", _figure("all_edge_precision")),
    Metric("edge_recall", "Recall", _figure("all_edge_recall")),
    Metric("frequency_edge_precision", "P into F", _figure("freq_edge_precision")),
    Metric("frequency_edge_recall", "R into F", _figure("freq_edge_recall")),
    Metric("refused", "Refused", _figure("refused"), decimals=2),
    Metric("submitted", "Submitted", _figure("submitted")),
)
GRAPH_COLUMNS = tuple(Metric(f"graph_{kind}", f"Graph {kind}", _graph_kind(kind)) for kind in KINDS)

CLAIM_COLUMNS = (
    Metric("edges_contradicted", "Contradicted", _edges("contradicted"), decimals=2),
    Metric("edges_unproven", "Unproven", _edges("unproven"), decimals=2),
    Metric("edges_missed", "Not claimed", _edges("missed"), decimals=2),
    Metric("premature", "Premature", _said("premature")),
    Metric("wasted", "Wasted", _said("wasted"), decimals=2),
)


def _sample(score: Score) -> Sample:
    correct, dialled = score["correct"] is True, score["frequency"]
    graph = score["graph_correct"] is True
    meant = None if dialled is None else f"{dialled:.2f}"
    return Sample(dialled is not None, correct, graph, correct and graph, meant)


def _verdict(score: Score, setting: str, means: InvalidHandling) -> Score:
    return score


MEASURES = MetricSet(
    benchmark="causalab",
    views={
        "answers": ANSWERS,
        "weights": WEIGHTS,
        "edges": EDGES,
        "attribution": (*ATTRIBUTION_COLUMNS, *GRAPH_COLUMNS, *CLAIM_COLUMNS),
    },
    first=("n", "accuracy", "activated", "edge_f1", "shd", "earned", "graph_earned", "graph_short"),
    verdict=_verdict,
    sample=_sample,
    rights=(("correct", "Accuracy", lambda sample: sample.correct),),
    unit=lambda instance: instance,
    settings=tuple(PLANS),
)
