"""What a line of `calibrant score` holds for CauSim."""

from __future__ import annotations

from typing import Literal

import msgspec

from calibrant.bench.schemas.common import VERDICT_KEYS

Wrong = Literal["do ignored", "impossible", "wrong noise"]


class QuestionAttribution(msgspec.Struct, forbid_unknown_fields=True, rename={"in_words": "class"}):
    """What the question decided, where it is said to have one answer.

    kind: earned (decided, correct), missed (decided, wrong), lucky (undecided, correct) or short (undecided, wrong)
    decided: one answer is right; fits: whether the answer is one of the right ones; null without an answer
    members: worlds that fit, in decimal; class: what a world is, in words
    """

    kind: Literal["earned", "missed", "lucky", "short"]
    decided: bool
    fits: bool | None
    members: str
    in_words: str


class CausimVerdict(
    msgspec.Struct,
    forbid_unknown_fields=True,
    kw_only=True,
    rename=VERDICT_KEYS,
):
    """The verdict on one prediction: membership in the complete answer set (arXiv:2605.09079), then where it belongs.

    benchmark: causim; model: who answered; null if the prediction names nobody
    sample: number among that model's answers to the item
    correct: some world that fits gives the answer; answered: there is an object with exactly the required keys
    why: no_object, wrong_keys or wrong_answer; null iff correct
    meaning: the answer with the model's names, as compact JSON with sorted keys; null without one
    nodes: reason -> number of nodes: ok; do ignored, an intervened node has another value; impossible, no noise value
        gives this from the answer's own parents; wrong noise, some do, none that the evidence allows. Null where that
        is not told: abductions, and evidence that leaves several noise variables open together
    first: reason of the first node in topological order that is not ok; null if all are
    wrong: node -> reason, of the nodes that are not ok; null as `nodes`
    trivial: `do` covers every required key; copyable: the evidence with `do` written over it is right
    vacuous: in no world that fits something outside `do` changes. Null where these do not apply
    problem: why the response gives no object, or one that cannot count in its form: an answer inside or before another
        object, something that is not a value; else empty
    attribution: what the question decided; null where it is not said to have one answer
    pool_digest: SHA-256 of what the pool's file holds, decompressed
    seconds: what the answer took, if the prediction says so
    """

    benchmark: Literal["causim"]
    instance_id: str
    model: str | None
    sample: int
    correct: bool
    answered: bool
    why: Literal["no_object", "wrong_keys", "wrong_answer"] | None
    meaning: str | None
    nodes: dict[Literal["ok", "do ignored", "impossible", "wrong noise"], int] | None
    first: Wrong | None
    wrong: dict[str, Wrong] | None
    trivial: bool | None
    copyable: bool | None
    vacuous: bool | None
    problem: str
    attribution: QuestionAttribution | None
    pool: str
    pool_digest: str
    pool_size: int
    setting: str
    stratum: str
    seconds: float | None
