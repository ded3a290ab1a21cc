"""Attributions as tables show them: whether an answer's evidence decided it, for any benchmark (audits.attribution)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from calibrant.bench.core.metrics import Metric
from calibrant.bench.core.responses import NO_TEXT

if TYPE_CHECKING:
    from calibrant.audits.attribution import Attribution

KEY = "attribution"  # of a record, and of a score that a table reads
KIND_MEANINGS = {
    "earned": "decided and right",
    "missed": "decided and wrong",
    "lucky": "undecided and right",
    "short": "undecided and wrong",
}
KINDS = tuple(KIND_MEANINGS)  # of audits.attribution, which what only scores does not import
POSTERIOR = "posterior"
POSTERIOR_UPPER = "posterior_upper"  # where a more probable answer is not excluded
UNDEFINED_VERDICT = "neither right nor wrong: nothing is held out"
LEVELS = (0.95, 0.99, 0.999)  # posteriors from which noisy readings may be taken to decide
DEFAULT_LEVEL = 0.99  # that of audits.attribution, with which records are written
LEVEL = "level"  # of an attribution that was decided anew
_AT_DEFAULT_LEVEL = ("decided_at", "premature", "wasted")  # counts of steps that records have for that level only


def attribution_record(attribution: Attribution) -> dict[str, Any]:
    """Return the attribution as records keep it; the number of members as text, for it has no limit."""
    record = {
        "kind": str(attribution.kind),
        "decided": attribution.decided,
        "fits": attribution.fits,
        "members": str(attribution.members),
        "class": attribution.in_words,
    }
    bounds = {POSTERIOR: attribution.posterior, POSTERIOR_UPPER: attribution.posterior_upper}
    return record | {key: bound for key, bound in bounds.items() if bound is not None}


def attribution_of_tie(recorded: Mapping[str, Any], *, correct: bool) -> dict[str, Any]:
    """Return the attribution of an answer that fits the same evidence equally well as a recorded one."""
    return {**recorded, "kind": KINDS[(not recorded["decided"]) * 2 + (not correct)]}


def decided_from(recorded: Mapping[str, Any], level: float) -> dict[str, Any]:
    """Return a recorded attribution, or its part about a graph; noisy readings decide from this posterior on.

    Unchanged where it has no posterior: all readings are exact, or it was recorded before there was one.
    """
    parts = {key: decided_from(value, level) for key, value in recorded.items() if isinstance(value, Mapping)}
    is_same = all(part["decided"] == recorded[key]["decided"] for key, part in parts.items())
    changed = {**recorded, **parts}
    posterior = recorded.get(POSTERIOR)
    if posterior is not None:
        decided, is_right = posterior >= level, recorded["kind"] in ("earned", "lucky")
        changed |= {"decided": decided, "kind": KINDS[(not decided) * 2 + (not is_right)], LEVEL: level}
        is_same &= decided == recorded["decided"]
    return changed if is_same else changed | {key: None for key in _AT_DEFAULT_LEVEL if key in recorded}


def has_posterior(score: Any) -> bool:
    """Return whether noisy readings decide an answer's question, or not, by a posterior."""
    return POSTERIOR in _recorded_attribution(score)


def decision_notes(scores: Iterable[Any]) -> tuple[str, ...]:
    """Return the notes on decisions in a table of these answers: one line if readings of some are noisy, else none."""
    levels = sorted(
        {_recorded_attribution(score).get(LEVEL, DEFAULT_LEVEL) for score in scores if has_posterior(score)}
    )
    return tuple(
        f"Decided: the readings left one answer; noisy readings, one with a posterior of at least {level:g}."
        for level in levels
    )


def _recorded_attribution(score: Any) -> Mapping[str, Any]:
    verdict = score.score if hasattr(score, "score") else score
    attribution = verdict.get(KEY)
    if attribution.__class__ is dict:  # nearly all: `Mapping` takes ten times as long, and every metric asks
        return attribution
    return attribution if isinstance(attribution, Mapping) else {}


def _kind(kind: str) -> Callable[[Any], float | None]:
    return lambda score: float(attribution["kind"] == kind) if (attribution := _recorded_attribution(score)) else None


def _right_given(decided: bool) -> Callable[[Any], float | None]:
    right = "earned" if decided else "lucky"

    def value(score: Any) -> float | None:
        attribution = _recorded_attribution(score)
        return float(attribution["kind"] == right) if attribution and attribution["decided"] is decided else None

    return value


def _flag(key: str) -> Callable[[Any], float | None]:
    """Return the share of answers of which it is true; an episode without an answer fits nothing."""
    return lambda score: float(attribution[key] is True) if (attribution := _recorded_attribution(score)) else None


_END_TEXTS = {
    "earned": "right, and earned",
    "missed": "not right, and missed",
    "lucky": "right, but by luck (lucky)",
    "short": "not right, and the evidence was short",
}
NO_ANSWER = "no_answer"  # of a score that a table reads: a row of the project gave none
NO_JSON = "no JSON"  # how the problem of a response begins that holds no answer at all


def answer_status(score: Any) -> str:
    """Return `none`, `invalid` or `valid`, from whatever fields the benchmark's score has."""
    verdict = score.score if hasattr(score, "score") else score
    problem = str(verdict.get("problem") or verdict.get("error") or "")
    funnel = verdict.get("funnel")
    is_extracted = funnel["extracted"] if isinstance(funnel, Mapping) and "extracted" in funnel else True
    if verdict.get(NO_ANSWER) or problem.startswith(NO_JSON) or not is_extracted or verdict.get("why") == "no_object":
        return "none"
    if verdict.get("reason") in NO_TEXT:
        return "none"
    flags = {"valid": True, "answered": True, "closed": "answered", "submitted": 1.0}
    is_valid = next((verdict[key] == value for key, value in flags.items() if key in verdict), True)
    if is_valid:
        return "valid"
    return "invalid" if problem or "funnel" in verdict or verdict.get("why") else "none"


def _outcome(score: Any) -> str | None:
    """Return which of six things an answer is; None where attributions were not asked for, or its evidence not counted.

    earned | lucky | no_answer | invalid | misfit | open_error. A refusal is one whatever its evidence had left.
    """
    verdict = score.score if hasattr(score, "score") else score
    if KEY not in verdict:
        return None
    attribution = _recorded_attribution(verdict)
    if attribution and attribution["kind"] in ("earned", "lucky"):
        return str(attribution["kind"])
    status = answer_status(verdict)
    if status != "valid":
        return "no_answer" if status == "none" else status
    if not attribution:
        return None
    return "misfit" if attribution["fits"] is False else "open_error"


def _is_outcome(name: str) -> Callable[[Any], float | None]:
    return lambda score: None if (outcome := _outcome(score)) is None else float(outcome == name)


def is_misfit(score: Any) -> bool:
    """Return whether an answer is valid and wrong, and contradicts the evidence."""
    return _outcome(score) == "misfit"


def verdict_text(score: Mapping[str, Any], *, is_right: bool) -> str:
    """Return the verdict on an answer for the person who gave it: right or not, and what the evidence had decided."""
    recorded, right = _recorded_attribution(score), "right" if is_right else "not right"
    if not recorded:
        return f"{right}; whether what you saw decides it is not counted"
    remaining = "what you saw left " + ("one answer" if recorded["decided"] else "several answers")
    if recorded["members"] == "0":
        remaining = "nothing fits what you saw"
    status = answer_status(score)
    if not is_right and status != "valid":
        return f"{right}: {'no answer was given' if status == 'none' else 'the answer is invalid'}; {remaining}"
    if recorded["kind"] == "short" and is_misfit(score):
        return f"{right}: your answer contradicts what you saw; {remaining}"
    return f"{_END_TEXTS[recorded['kind']]}: {remaining}"


CHANCE = "chance"  # of a score that a table reads: expectations of guessers, by the keys uniform, draw and best


def _expectation(key: str) -> Callable[[Any], float | None]:
    return lambda score: expectations(score).get(key)


MIN_ROOM = 1e-9  # best less chance, added up: below there is nothing that skill could be a share of


def expectations(score: Any) -> Mapping[str, float | None]:
    """Return the expected rates of guessers of a score by the keys uniform, draw and best; none without them."""
    verdict = score.score if hasattr(score, "score") else score
    return verdict.get(CHANCE) or {}


CHANCE_METRICS = (
    Metric("chance", "Chance", "expected rate of a draw from what fits", _expectation("draw")),
    Metric(
        "best", "Best", "expected rate of the best answer under the distribution of that draw", _expectation("best")
    ),
    Metric(
        "skill",
        "Skill",
        "rate less chance, over best less chance",
        lambda score: None,
        decimals=2,
        skill_of=("earned", "lucky"),
        is_share=False,
    ),
    Metric("uniform", "Uniform", "chance where all hypotheses that fit are alike", _expectation("uniform")),
)

BASE = (
    "Earned, Lucky, NoAnswer, Invalid, Misfit and OpenError add up to 1: they are over refusals and the answers whose"
    " evidence was counted, the others over the latter."
)

# in the order in which narrow tables fill up: where answers stand, then what that is worth, then the other sums; the
# first six are shares of refusals and of answers whose evidence was counted, and add up to 1
ATTRIBUTION_METRICS = (
    *(Metric(kind, kind.capitalize(), KIND_MEANINGS[kind], _is_outcome(kind)) for kind in ("earned", "lucky")),
    Metric("no_answer", "NoAnswer", "no answer was given, or none could be read", _is_outcome("no_answer")),
    Metric("invalid", "Invalid", "an answer that was refused", _is_outcome("invalid")),
    Metric("misfit", "Misfit", "valid and wrong, and it does not fit the evidence", _is_outcome("misfit")),
    Metric("open_error", "OpenError", "valid and wrong, though it fits the evidence", _is_outcome("open_error")),
    *CHANCE_METRICS,
    *(Metric(kind, kind.capitalize(), KIND_MEANINGS[kind], _kind(kind)) for kind in ("missed", "short")),
    Metric("decided", "Decided", "the evidence left one answer", _flag("decided")),
    Metric("right_given_decided", "Right|decided", "right answers where it was decided", _right_given(True), True),
    Metric("right_given_undecided", "Right|undecided", "right answers where it was not", _right_given(False), True),
    Metric("fits", "Fits", "the answer is one of those left", _flag("fits")),
)
