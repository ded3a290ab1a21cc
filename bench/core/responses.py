"""Responses as providers give them: text, tool calls, thoughts, why they stopped; reasons why one holds no answer.

Reasons are read from fields alone, never from words of a text or message. Two of them exclude a response from every
rate: a request that did not run, or failed, says nothing of the model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from calibrant.dsl.answer_text import Thoughts

Extractor: TypeAlias = Literal["paper", "published", "lenient"]
Answer: TypeAlias = str | dict[str, Any]


class ReadingOptions(NamedTuple):
    """Way from a response to its answer.

    extractor: rule that reads the answer text; thoughts: which part of a text is thoughts
    """

    extractor: Extractor = "paper"
    thoughts: Thoughts = "strip"


DEFAULT_READING: Final = ReadingOptions()

# --- Reasons, in the order in which the first that fits counts --------------------------------------------------------
NOT_RUN: Final = "not_run"
FAILED: Final = "infrastructure_error"
REFUSED: Final = "refused"
WRONG_FORMAT: Final = "wrong_format"
TOOL_CALL: Final = "tool_call"
CUT_OFF: Final = "cut_off"
ONLY_THOUGHTS: Final = "only_thoughts"
EMPTY: Final = "empty"
UNREADABLE: Final = "unreadable"
REASONS: Final[Mapping[str, str]] = {
    NOT_RUN: "the request was never answered; left out of all rates",
    FAILED: "the request failed; left out of all rates",
    REFUSED: "the provider or the model refused, or a filter stopped the text",
    WRONG_FORMAT: "an answer in a form that the paper's rule does not read, and the lenient reader does",
    TOOL_CALL: "a tool was called, and nothing of it is an answer",
    CUT_OFF: "a limit stopped the response, or it ends inside its thoughts",
    ONLY_THOUGHTS: "thoughts, and no text outside them",
    EMPTY: "no text at all",
    UNREADABLE: "a text without an answer; `problem` states why",
}
NO_TEXT: Final = frozenset({REFUSED, TOOL_CALL, CUT_OFF, ONLY_THOUGHTS, EMPTY})  # no text that an answer could be in
EXCLUDED: Final = frozenset({NOT_RUN, FAILED})


def reason_numbers(reasons: Mapping[str, int]) -> dict[str, Any]:
    """Return the numbers of responses without an answer as rows and lines have them; an empty record without any."""
    return {"reasons": {reason: reasons[reason] for reason in REASONS if reasons.get(reason)}} if reasons else {}


# --- Why a response stopped, by the words of providers, in lower case -------------------------------------------------
_STOPS: Final[Mapping[str, tuple[str, ...]]] = {
    "itself": ("stop", "end_turn", "stop_sequence", "eos", "eos_token", "word", "completed", "complete"),
    CUT_OFF: (
        *("length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded", "limit"),
        *("token_limit", "prompt_too_long", "pause_turn", "incomplete"),
    ),
    TOOL_CALL: ("tool_calls", "function_call", "tool_use", "malformed_function_call", "unexpected_tool_call"),
    REFUSED: (
        *("content_filter", "content_filtered", "refusal", "safety", "recitation", "blocklist"),
        *("prohibited_content", "spii", "image_safety", "guardrail_intervened"),
    ),
    FAILED: ("error", "abort", "failed"),
    NOT_RUN: ("cancelled", "queued", "in_progress", "load"),
}
STOP_CLASSES: Final = {stop: name for name, stops in _STOPS.items() for stop in stops}

# --- Errors, by their codes in lower case, in this order --------------------------------------------------------------
_ERRORS: Final[Mapping[str, tuple[str, ...]]] = {
    NOT_RUN: ("batch_expired", "batch_cancelled", "expired", "canceled"),
    REFUSED: (
        *("refusal", "content_filter", "content_policy_violation", "responsibleaipolicyviolation", "invalid_prompt"),
        *("bio_policy", "safety", "prohibited_content", "blocklist", "recitation"),
    ),
    CUT_OFF: (
        *("context_length_exceeded", "model_context_window_exceeded", "prompt_too_long"),
        "string_above_max_length",
    ),
}
_CODE_KEYS: Final = ("code", "type", "status", "error_type")
_INNER_KEYS: Final = ("error", "innererror", "inner_error")
_MAX_INNER: Final = 4


def error_reason(error: object) -> str:
    """Return the reason that an error states by its codes; empty for none: null, or an empty text or object."""
    if not error:
        return ""
    codes = {code.strip().lower() for code in _error_codes(error)}
    return next((reason for reason, reason_codes in _ERRORS.items() if not codes.isdisjoint(reason_codes)), FAILED)


def _error_codes(error: object, depth: int = 0) -> Iterator[str]:
    if isinstance(error, str):
        yield error
    if not isinstance(error, Mapping):
        return
    yield from (error[key] for key in _CODE_KEYS if isinstance(error.get(key), str))
    if depth < _MAX_INNER:
        for key in _INNER_KEYS:
            yield from _error_codes(error.get(key), depth + 1)


class Response(NamedTuple):
    """One response of a model.

    text: visible text, None if there is none; answer: an object that is the answer, in place of a text
    calls: arguments of tool calls; has_thoughts: thoughts stand in fields of their own
    stop: as the provider states it; is_limited: a field states that a limit stopped it
    reason: that an error or a refusal has, whatever the text; id: of the provider, for duplicates
    sample: number that the line states for it; notes: kinds of warnings of its line
    """

    text: str | None = None
    answer: Mapping[str, Any] | None = None
    calls: tuple[str | Mapping[str, Any], ...] = ()
    has_thoughts: bool = False
    stop: str = ""
    is_limited: bool = False
    reason: str = ""
    id: str = ""
    sample: int | None = None
    notes: tuple[str, ...] = ()

    @property
    def stop_class(self) -> str:
        """Return the class of its stop reason; empty for an unknown one and none."""
        return CUT_OFF if self.is_limited else STOP_CLASSES.get(self.stop.lower(), "")

    @property
    def stated_reason(self) -> str:
        """Return the reason of an error or refusal that its fields state; empty if they state none."""
        if not self.stop and not self.is_limited:
            return self.reason
        stop_class = self.stop_class
        return self.reason or (stop_class if stop_class in (REFUSED, FAILED, NOT_RUN) else "")


class ReadAnswer(NamedTuple):
    """Answer that a rule reads.

    answer: as it is scored, also an object that is none; None without any
    problem: why the rule reads none, empty if it reads one
    gap: part that could not be read, or why the answer is not legal
    is_plain: the text is one plain answer, so that every rule reads it
    """

    answer: Answer | None
    problem: str = ""
    gap: str = ""
    is_plain: bool = False


class Reading(NamedTuple):
    """A response as it was read.

    reason: why it holds no answer by the chosen rule, empty if it does; problem: in words
    source: of the answer, also of one that only the lenient reader reads: text, object, tool_call
    repairs: what the lenient reader needed; warnings: kinds
    answer: that is scored; gap: as of ReadAnswer; notes: kinds of warnings of its line
    published, lenient: answers of the other rules; None if they read none; `SAME` if it is the scored one
    """

    answer: Answer | None
    reason: str = ""
    source: str = ""
    stop: str = ""
    problem: str = ""
    gap: str = ""
    repairs: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    published: Answer | None = None
    lenient: Answer | None = None
    notes: tuple[str, ...] = ()

    @property
    def is_excluded(self) -> bool:
        return self.reason in EXCLUDED


SAME: Final[dict[str, Any]] = {"same": True}  # compared by identity
