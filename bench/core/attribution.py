"""Attributions in tables: whether all hypotheses consistent with the evidence give one answer (audits.attribution).

Also the capability of scoring a set of hypotheses: all those consistent with an item, counted exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import expm1, fsum, log1p
from typing import TYPE_CHECKING, Any, TypeAlias

from calibrant.bench.core.capabilities import Capability
from calibrant.bench.core.metrics import Metric

if TYPE_CHECKING:
    from calibrant.audits.attribution import Attribution

KEY = "attribution"  # field of records, and of scores that tables read
KIND_MEANINGS = {
    "earned": "decided and right",
    "missed": "decided and wrong",
    "lucky": "undecided and right",
    "short": "undecided and wrong",
}
KINDS = tuple(KIND_MEANINGS)  # repeats audits.attribution, which scoring alone does not import; `_kind` needs the order
RIGHT, WRONG = "right", "wrong"  # valid answers whose evidence was not counted
INVALID, NONE = "invalid", "none"  # a refused answer, a missing answer
# order of the parts of bars: right answers come first, so that their end shows the accuracy
CLASSES = ("earned", "lucky", RIGHT, WRONG, "short", "missed", INVALID, NONE)
RIGHT_CLASSES = ("earned", "lucky", RIGHT)
SHARE_BY_CLASS = {kind: kind for kind in CLASSES} | dict.fromkeys((RIGHT, WRONG), "uncounted") | {NONE: "no_answer"}
SHARE_MEANINGS = {  # they add up to 1
    "earned": KIND_MEANINGS["earned"],
    "lucky": KIND_MEANINGS["lucky"],
    "missed": "valid, decided and wrong",
    "short": "valid, undecided and wrong",
    "uncounted": "valid, and what its evidence decided is not counted, right or wrong",
    "invalid": "an answer that was refused",
    "no_answer": "no answer was given, or none could be read",
}
SHARES = tuple(SHARE_MEANINGS)
POSTERIOR = "posterior"
POSTERIOR_UPPER = "posterior_upper"  # upper bound, recorded where another answer may be more probable
UNDEFINED_VERDICT = "neither right nor wrong: nothing is held out"
LEVELS = (0.95, 0.99, 0.999)  # noisy readings decide a question if one answer's posterior is at least the chosen level
DEFAULT_LEVEL = 0.99  # as in audits.attribution; records are written with it
LEVEL = "level"  # field of an attribution: the level by which `decided_from` decided it again
_AT_DEFAULT_LEVEL = ("decided_at", "premature", "wasted")  # counts of steps, recorded for the default level alone


def attribution_record(attribution: Attribution) -> dict[str, Any]:
    """Return the attribution as records hold it; `members` is a text, because the count may exceed 64 bits."""
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
    """Return the recorded attribution with the kind of another, equally good answer to the same item."""
    return {**recorded, "kind": _kind(recorded["decided"], is_right=correct)}


def _kind(decided: bool, *, is_right: bool) -> str:
    return KINDS[(not decided) * 2 + (not is_right)]


def decided_from(recorded: Mapping[str, Any], level: float) -> dict[str, Any]:
    """Return a recorded attribution and its parts, decided again: decided if the posterior is at least `level`.

    An attribution without a posterior is unchanged: its readings are exact, or older records lack it.
    """
    parts = {key: decided_from(value, level) for key, value in recorded.items() if isinstance(value, Mapping)}
    is_same = all(part["decided"] == recorded[key]["decided"] for key, part in parts.items())
    changed = {**recorded, **parts}
    posterior = recorded.get(POSTERIOR)
    if posterior is not None:
        decided, is_right = posterior >= level, recorded["kind"] in ("earned", "lucky")
        changed |= {"decided": decided, "kind": _kind(decided, is_right=is_right), LEVEL: level}
        is_same &= decided == recorded["decided"]
    return changed if is_same else changed | {key: None for key in _AT_DEFAULT_LEVEL if key in recorded}


def has_posterior(score: Any) -> bool:
    """Return whether an attribution has a posterior, as with noisy readings."""
    return POSTERIOR in recorded_attribution(score)


def decision_notes(scores: Iterable[Any]) -> tuple[str, ...]:
    """Return a note for each level by which answers were decided; empty if all readings are exact."""
    levels = sorted({recorded_attribution(score).get(LEVEL, DEFAULT_LEVEL) for score in scores if has_posterior(score)})
    return tuple(
        f"Decided: the readings left one answer; noisy readings, one with a posterior of at least {level:g}."
        for level in levels
    )


def recorded_attribution(score: Any) -> Mapping[str, Any]:
    """Return the attribution that a score has; empty without one."""
    verdict = score.score if hasattr(score, "score") else score
    attribution = verdict.get(KEY)
    if attribution.__class__ is dict:  # nearly always; checking for `Mapping` takes ten times as long, at every metric
        return attribution
    return attribution if isinstance(attribution, Mapping) else {}


def _right_given(decided: bool) -> Callable[[Any], float | None]:
    right = "earned" if decided else "lucky"

    def value(score: Any) -> float | None:
        attribution = recorded_attribution(score)
        return float(attribution["kind"] == right) if attribution and attribution["decided"] is decided else None

    return value


def _flag(key: str) -> Callable[[Any], float | None]:
    """Return a reader of whether a field is true, 0 or 1; None without an attribution."""
    return lambda score: float(attribution[key] is True) if (attribution := recorded_attribution(score)) else None


_END_TEXTS = {
    "earned": "right, and earned",
    "missed": "not right, and missed",
    "lucky": "right, but by luck (lucky)",
    "short": "not right, and the evidence was short",
}
NO_ANSWER = "no_answer"  # field of a score that a table reads: a method of the project gave no answer
NOT_ANSWERED = "no answer"  # field `problem` where neither response nor steps submit one
NO_JSON = "no JSON"  # start of the field `problem` where a response holds no answer at all


def answer_status(score: Any) -> str:
    """Return `none`, `invalid` or `valid`, from whatever fields the benchmark's score has."""
    verdict = score.score if hasattr(score, "score") else score
    problem = str(verdict.get("problem") or verdict.get("error") or "")
    funnel = verdict.get("funnel")
    is_extracted = funnel["extracted"] if isinstance(funnel, Mapping) and "extracted" in funnel else True
    if verdict.get(NO_ANSWER) or problem == NOT_ANSWERED or problem.startswith(NO_JSON) or not is_extracted:
        return "none"
    # reason: why a response holds no answer, the closed list of bench.core.responses
    if verdict.get("reason") or verdict.get("why") == "no_object":
        return "none"
    # validity fields of the benchmarks, with the value of a valid answer; the first one that a score has decides
    flags = {"valid": True, "answered": True, "closed": "answered", "submitted": 1.0}
    is_valid = next((verdict[key] == value for key, value in flags.items() if key in verdict), True)
    if is_valid:
        return "valid"
    return "invalid" if problem or "funnel" in verdict or verdict.get("why") else "none"


def answer_class(score: Any, *, is_right: bool = False, part: str = "") -> str:
    """Return the one of CLASSES that an answer is in; no other function decides it, so shares add up to 1 everywhere.

    A refused or a missing answer is INVALID or NONE, whatever the evidence decided.

    is_right: the benchmark's verdict, read only if the attribution has no kind
    part: key of a part of the attribution; empty for the whole
    """
    attribution = recorded_attribution(score)
    kind = (attribution.get(part, {}) if part else attribution).get("kind")
    if kind in ("earned", "lucky") or (kind is None and is_right):
        return str(kind or RIGHT)
    status = answer_status(score)
    return status if status != "valid" else str(kind or WRONG)


def share_key(score: Any, *, part: str = "") -> str | None:
    """Return the one of SHARES that an answer counts in; None if its score lacks the field `attribution`.

    part: key of a part of the attribution; empty for the whole
    """
    verdict = score.score if hasattr(score, "score") else score
    return SHARE_BY_CLASS[answer_class(score, part=part)] if KEY in verdict else None


def share_words(key: str) -> str:
    """Return the key of a share as texts have it."""
    return key.replace("_", " ")


def shown_shares(present: Container[str]) -> list[str]:
    """Return the shares that get a column: the four kinds, and others that are among `present`."""
    return [key for key in SHARES if key in KINDS or key in present]


def share_reader(key: str, *, part: str = "") -> Callable[[Any], float | None]:
    """Return a reader: score -> 1 if the answer counts in the share, else 0; None without an attribution."""

    def value(score: Any) -> float | None:
        share = share_key(score, part=part)
        return None if share is None else float(share == key)

    return value


def _is_wrong_and(*, fits: bool) -> Callable[[Any], float | None]:
    def value(score: Any) -> float | None:
        key = share_key(score)
        if key not in ("missed", "short"):
            return None if key is None else 0.0
        return float((recorded_attribution(score)["fits"] is not False) is fits)

    return value


_is_misfit = _is_wrong_and(fits=False)


def is_misfit(score: Any) -> bool:
    """Return whether an answer is valid, wrong, and contradicts the evidence."""
    return _is_misfit(score) == 1


def verdict_text(score: Mapping[str, Any], *, is_right: bool) -> str:
    """Return the verdict on an answer for the person who gave it: right or not, and what the evidence had decided."""
    recorded, right = recorded_attribution(score), "right" if is_right else "not right"
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


CHANCE = "chance"  # field of a score that a table reads: see `expectations`


def _expectation(key: str) -> Callable[[Any], float | None]:
    return lambda score: expectations(score).get(key)


MIN_ROOM = 1e-9  # least sum of (best - chance), the divisor of skill; below it is rounding, and skill is undefined


def expectations(score: Any) -> Mapping[str, float | None]:
    """Return expected rates by guesser: "uniform", "draw" and "best" (CHANCE_METRICS); empty if not computed."""
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

DENOMINATOR = "Earned, Lucky, Missed, Short, Uncounted, Invalid and NoAnswer add up to 1: they are over all answers."
BASE = (
    f"{DENOMINATOR} Misfit and OpenError divide Missed and Short anew. Decided, Right|decided, Right|undecided, Fits"
    " and Skill are over the answers whose evidence was counted; Chance, Best and Uniform over those for which they are"
    " known."
)

# in the order in which narrow tables take columns: first the seven shares, which add up to 1
ATTRIBUTION_METRICS = (
    *(
        Metric(key, share_words(key).title().replace(" ", ""), meaning, share_reader(key))
        for key, meaning in SHARE_MEANINGS.items()
    ),
    Metric("misfit", "Misfit", "valid and wrong, and it does not fit the evidence", _is_misfit),
    Metric("open_error", "OpenError", "valid and wrong, though it fits the evidence", _is_wrong_and(fits=True)),
    *CHANCE_METRICS,
    Metric("decided", "Decided", "the evidence left one answer", _flag("decided")),
    Metric("right_given_decided", "Right|decided", "right answers where it was decided", _right_given(True), True),
    Metric("right_given_undecided", "Right|undecided", "right answers where it was not", _right_given(False), True),
    Metric("fits", "Fits", "the answer is one of those left", _flag("fits")),
)


# --- The hypotheses consistent with an item ---------------------------------------------------------------------------
Score: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True)
class Prior:
    """A named prior, and the posterior of the hypotheses consistent with the evidence under it.

    name: name of the prior; probability: answer -> posterior probability of its hypothesis
    terms: (weight, p) pairs: the sum of weight f(p) is the sum of f over the posterior probabilities p of all
        hypotheses, or estimates it from equally weighted draws
    """

    name: str
    probability: Callable[[Any], float]
    terms: Sequence[tuple[float, float]]

    def draws_mass(self, size: int) -> float:
        """Return the expected total probability of the distinct hypotheses among `size` independent draws."""
        return covered_mass(self.terms, size)


def covered_mass(terms: Iterable[tuple[float, float]], size: int) -> float:
    """Return the sum of weight (1 - (1 - p)^size) over pairs (weight, p)."""
    return fsum(weight * (1.0 if p >= 1 else -expm1(size * log1p(-p))) for weight, p in terms)


@dataclass(frozen=True)
class Hypotheses:
    """All hypotheses consistent with the evidence of an item, up to equivalence.

    noun: plural name of the hypotheses; in_words: description of the class
    count: exact number of equivalence classes
    key: score -> key of the answer's equivalence class; None if no answer was read
    answer_key: answer -> the same key, used in place of `key` where scores do not hold it
    fits: (score, key) -> whether the answer is consistent with the evidence
    masses: key -> share of the members of the version space that the class holds; None if all classes weigh the same
    prior: None if the item states no prior, or its posterior cannot be summed
    """

    noun: str
    in_words: str
    count: int
    key: Callable[[Score], str | None]
    fits: Callable[[Score, str], bool]
    masses: Mapping[str, Fraction] | None = None
    prior: Prior | None = None
    answer_key: Callable[[Mapping[str, Any]], str | None] | None = None

    def draws_mass(self, size: int) -> float:
        """Return the expected total mass of the distinct classes among `size` independent draws of members."""
        if self.masses is None:
            return covered_mass([(1.0, 1 / self.count)], size) if self.count else 0.0
        return covered_mass(((float(p), float(p)) for p in self.masses.values()), size)

    def mass(self, key: str) -> Fraction:
        """Return the share of the members that the class of this key holds."""
        return Fraction(1, self.count) if self.masses is None else self.masses[key]


def weighted_hypotheses(
    noun: str,
    in_words: str,
    num_members_by_key: Mapping[str, int],
    key: Callable[[Score], str | None],
    prior: Prior | None = None,
) -> Hypotheses:
    """Return equivalence classes of hypotheses, weighted by their numbers of members.

    num_members_by_key: key -> number of members
    """
    total = sum(num_members_by_key.values())
    masses = {name: Fraction(num_members, total) for name, num_members in num_members_by_key.items()}
    return Hypotheses(noun, in_words, len(masses), key, lambda score, name: name in masses, masses, prior)


HYPOTHESES: Capability[Callable[[Any], Hypotheses]] = Capability("`score --set-size`", "api:hypotheses")
"""Return the hypotheses of an item; `CalibrantError` if they are too many to count."""
