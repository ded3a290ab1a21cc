"""What a line of `calibrant score` holds for the extended blickets."""

from __future__ import annotations

from typing import Literal

import msgspec

from calibrant.bench.schemas.common import VERDICT_KEYS


class StatedRule(msgspec.Struct, forbid_unknown_fields=True):
    """A rule of the detector.

    rule: its type; blickets: names of its objects
    """

    rule: Literal["conjunctive", "disjunctive"]
    blickets: list[str]


class DetectorAttribution(msgspec.Struct, forbid_unknown_fields=True, rename={"in_words": "class"}):
    """What the readings of the episode decided.

    kind: earned (decided, correct), missed (decided, wrong), lucky (undecided, correct) or short (undecided, wrong)
    decided: the readings left one answer, or of an unreliable detector one with a posterior of 0.99
    fits: whether the answer is one of those that they left; null without one
    members: detectors of the class that the readings left, in decimal; class: the class, in words
    decided_at: moves after which the answer was first decided; null where it never was
    submitted_at: moves before the submission; null without one
    posterior: of the most probable answer; absent where the detector is reliable
    """

    kind: Literal["earned", "missed", "lucky", "short"]
    decided: bool
    fits: bool | None
    members: str
    in_words: str
    decided_at: int | None
    submitted_at: int | None
    posterior: float | msgspec.UnsetType = msgspec.UNSET


class BlicketVerdict(
    msgspec.Struct,
    forbid_unknown_fields=True,
    kw_only=True,
    rename={**VERDICT_KEYS, "exposed": "class"},
):
    """The verdict on one prediction: the grade of its episode (arXiv:2604.20039, section 4), then where it belongs.

    benchmark: blickets; model: who answered; null if the prediction names nobody
    sample: number among that model's answers to the item
    correct: type and blickets are those of the rule in force at the end; null while the episode is open
    errors: what is wrong: type, over, under, mixed, timeout
    strict: correct, and with an order also listed in that order; rule_in_force: at the end
    closed: answered, timeout or open; steps: moves, refused ones too; refused: how many of them were refused
    activations: how many were counted; class: pre, exactly-N or RE; null without a switch
    split: pre, switched-blind or switched-seen; null without a switch
    post_evidence: readings under the rule in force at the end, if it is not the first; null without a switch
    distinct_configurations: different sets that were read; first_activation: move that first read ACTIVE; null if none
    answer: as submitted; null if nothing was, and of the text game's runs, whose answers are not public
    problem: why nothing was submitted; empty if something was
    attribution: what the readings decided; seconds: what the answer took, if the prediction says so
    pool_digest, poolDigest: SHA-256 of what the pool's file holds, decompressed
    poolSize: of the pool; 0 for a file of the text game
    """

    benchmark: Literal["blickets"]
    instance_id: str
    model: str | None
    sample: int
    correct: bool | None
    errors: list[Literal["type", "over", "under", "mixed", "timeout"]]
    strict: bool | None
    rule_in_force: StatedRule
    closed: Literal["answered", "timeout", "open"]
    steps: int
    refused: int
    activations: int
    exposed: Literal["pre", "exactly-N", "RE"] | None
    split: Literal["pre", "switched-blind", "switched-seen"] | None
    post_evidence: int | None
    distinct_configurations: int
    first_activation: int | None
    answer: StatedRule | None
    problem: str
    attribution: DetectorAttribution
    pool: str
    pool_digest: str
    pool_size: int
    setting: str
    stratum: str
    seconds: float | None
