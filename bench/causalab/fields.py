"""The fields of a CausaLab verdict (arXiv:2605.26029, section 4): score of a run, attribution, line.

The terms are those of dsl.causalab.score.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType

from calibrant.bench.causalab.dialogues.metrics import DIALOGUE
from calibrant.bench.core.verdict import line_struct

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
GRAPH = "graph"  # the key of the part about the graph


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
