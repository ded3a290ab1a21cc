"""What a line of `calibrant score` holds for CausaLab."""

from __future__ import annotations

from typing import Literal

import msgspec

from calibrant.bench.schemas.common import VERDICT_KEYS

Kind = Literal["earned", "missed", "lucky", "short"]
EdgeEnds = tuple[str, str]  # parent, child


class GraphAttribution(msgspec.Struct, forbid_unknown_fields=True):
    """What the readings decided of the graph.

    kind: as of the frequency; correct is a graph without a wrong or missing edge
    decided: all mechanisms left have one graph, or under noise one has a posterior of 0.99
    fits: whether one of them has the graph that was stated
    decided_at: settings after which one graph was first left; null if there never was
    proven: stated edges that all mechanisms left have; unproven: that some have; contradicted: that none has
    missed: edges of all mechanisms left that were not stated; foreign: how many stated edges name something else
    posterior: of the most probable graph; absent where no reading is noisy
    """

    kind: Kind
    decided: bool
    fits: bool | None
    decided_at: int | None
    proven: list[EdgeEnds]
    unproven: list[EdgeEnds]
    contradicted: list[EdgeEnds]
    missed: list[EdgeEnds]
    foreign: int
    posterior: float | msgspec.UnsetType = msgspec.UNSET


class LabAttribution(msgspec.Struct, forbid_unknown_fields=True, rename={"in_words": "class"}):
    """What the readings of the episode decided of the frequency, and of the graph.

    kind: earned (decided, correct), missed (decided, wrong), lucky (undecided, correct) or short (undecided, wrong)
    decided: all mechanisms left predict one frequency, or under noise one has a posterior of 0.99; fits: whether one of
        them predicts the dialled one, within 5; null if none was dialled
    members: mechanisms of the class that the readings left, in decimal; class: the class, in words
    decided_at: settings after which one frequency was first left; null if there never was
    set: the settings that were carried out, each as property and value
    premature: the run ended with a question undecided and settings left
    wasted: settings made after frequency and graph were decided
    graph: what the readings decided of the graph
    posterior: of the most probable frequency; absent where no reading is noisy
    """

    kind: Kind
    decided: bool
    fits: bool | None
    members: str
    in_words: str
    decided_at: int | None
    set: list[tuple[str, float]]
    premature: bool
    wasted: int
    graph: GraphAttribution
    posterior: float | msgspec.UnsetType = msgspec.UNSET


class LabVerdict(
    msgspec.Struct,
    forbid_unknown_fields=True,
    kw_only=True,
    rename=VERDICT_KEYS,
):
    """The verdict on one prediction: the score of its run (arXiv:2605.26029, section 4), then where it belongs.

    benchmark: causalab; model: who answered; null if the prediction names nobody
    sample: number among that model's answers to the item
    correct: the frequency dialled last is within 5; graph_correct: no edge is wrong or missing
    frequency: what was dialled last; null if nothing was
    accuracy: `correct` as a number; activated: the last answered try left the reactor activated, as the paper
        counts; opened: any try activated it; null in lines of versions that did not tell the two apart
    settings: how many were carried out; refused: how many actions were not; submitted: whether the run was ended
    all_edge_precision, all_edge_recall, all_edge_f1: of the edges
    freq_edge_precision, freq_edge_recall, freq_edge_f1: of the edges into the frequency
    root_precision, root_recall, root_f1: of the parentless ancestors of the frequency
    freq_weight_precision, freq_weight_recall, freq_weight_f1: of the frequency's linear weights, right within 1e-6
    freq_weight_display_precision, freq_weight_display_recall, freq_weight_display_f1: the same within 0.01
    freq_weight_unnamed_precision, freq_weight_unnamed_recall, freq_weight_unnamed_f1: the same within 0.01, under any
        key that names the parent
    all_weight_precision, all_weight_recall, all_weight_f1: of the weights of every equation
    shd: structural Hamming distance, a turned edge counted once
    imec: graphs that no ideal experiment on the set properties tells from the truth; null above 8 nodes
    problem: why nothing was submitted, or what of the answer could not be read; empty if there is nothing to say
    attribution: what the readings decided; null where nothing was done and where the mechanisms left are not counted
    seconds: what the answer took, if the prediction says so
    pool_digest, poolDigest: SHA-256 of what the pool's file holds, decompressed
    """

    benchmark: Literal["causalab"]
    instance_id: str
    model: str | None
    sample: int
    correct: bool
    graph_correct: bool
    frequency: float | None
    accuracy: float
    activated: float
    opened: float | None = None
    settings: int
    refused: int
    submitted: float
    all_edge_precision: float
    all_edge_recall: float
    all_edge_f1: float
    freq_edge_precision: float
    freq_edge_recall: float
    freq_edge_f1: float
    root_precision: float
    root_recall: float
    root_f1: float
    freq_weight_precision: float
    freq_weight_recall: float
    freq_weight_f1: float
    freq_weight_display_precision: float
    freq_weight_display_recall: float
    freq_weight_display_f1: float
    freq_weight_unnamed_precision: float
    freq_weight_unnamed_recall: float
    freq_weight_unnamed_f1: float
    all_weight_precision: float
    all_weight_recall: float
    all_weight_f1: float
    shd: int
    imec: int | None
    problem: str
    attribution: LabAttribution | None
    pool: str
    pool_digest: str
    pool_size: int
    setting: str
    stratum: str
    seconds: float | None
