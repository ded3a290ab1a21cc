"""Responses of providers (text, tool calls, thoughts, stop reason), and the reasons why one holds no answer.

Reasons are read from fields alone, never from words of a text or message. NOT_RUN and FAILED exclude a response from
every rate, for they are no result of the model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from calibrant.dsl.answer_text import Thoughts

Extractor: TypeAlias = Literal["paper", "published", "lenient"]
Answer: TypeAlias = str | dict[str, Any]


class ReadingOptions(NamedTuple):
    """Options of reading an answer from a response.

    extractor: rule that reads the answer text; thoughts: which part of a text is thoughts
    """

    extractor: Extractor = "paper"
    thoughts: Thoughts = "strip"


DEFAULT_READING: Final = ReadingOptions()

# --- Reasons: the first in this order that applies is recorded --------------------------------------------------------
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
NO_TEXT: Final = frozenset({REFUSED, TOOL_CALL, CUT_OFF, ONLY_THOUGHTS, EMPTY})  # there is no text to read
EXCLUDED: Final = frozenset({NOT_RUN, FAILED})


def reason_numbers(reasons: Mapping[str, int]) -> dict[str, Any]:
    """Return {"reasons": counts of responses without an answer} for rows and lines; {} if there are none."""
    return {"reasons": {reason: reasons[reason] for reason in REASONS if reasons.get(reason)}} if reasons else {}


# --- Class of a stop ("itself": the model ended its response, or a reason above) -> stop reasons in lower case --------
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

# --- Reason -> error codes of providers, in lower case; the first reason with a matching code is recorded -------------
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
_MAX_INNER: Final = 4  # levels of nested errors that are read


def error_reason(error: object) -> str:
    """Return the reason that an error's codes state, FAILED for unknown codes; empty for null, "" and {}."""
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

    text: visible text, None if there is none; answer: the answer as an object in place of a text
    calls: arguments of tool calls; has_thoughts: whether thoughts have fields of their own
    stop: the provider's stop reason; is_limited: whether a field states that a limit stopped it
    reason: reason that an error or refusal states, whatever the text; id: the provider's id, to recognise duplicates
    sample: index among the answers to its item, as its line states it; notes: kinds of warnings on its line
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
        """The class of its stop reason (STOP_CLASSES); empty for an unknown one and for none."""
        return CUT_OFF if self.is_limited else STOP_CLASSES.get(self.stop.lower(), "")

    @property
    def stated_reason(self) -> str:
        """The reason of an error or refusal that its fields state; empty if they state none."""
        if not self.stop and not self.is_limited:
            return self.reason
        stop_class = self.stop_class
        return self.reason or (stop_class if stop_class in (REFUSED, FAILED, NOT_RUN) else "")


class ReadAnswer(NamedTuple):
    """Answer that an extraction rule reads from a response.

    answer: the object to score, even if it is not a legal answer; None if the rule reads none
    problem: why the rule reads none; empty if it reads one
    gap: the part that could not be read, or why the answer is not legal; empty for a legal answer
    is_plain: whether the text is one answer and nothing else, which every rule reads alike
    """

    answer: Answer | None
    problem: str = ""
    gap: str = ""
    is_plain: bool = False


class Reading(NamedTuple):
    """Result of reading a response.

    answer: the scored answer; gap: as in ReadAnswer
    reason: why the chosen rule reads no answer, one of REASONS; empty if it reads one; problem: the same as a sentence
    source: where the answer stands, text, object or tool_call, even if only the lenient reader reads it
    stop: the provider's stop reason; repairs: repairs that the lenient reader made
    warnings: kinds of warnings on the response; notes: those on its line
    published, lenient: answers by the other rules; None if they read none; `SAME` if equal to the scored one
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
