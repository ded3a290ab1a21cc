"""Responses of providers: messages with their parts, and providers' objects, recognised by their keys.

Fields and parts with thoughts, and messages before the assistant's last one, are never read as text, whatever the
options. Sources: type definitions of openai, anthropic, google-genai, boto3's bedrock-runtime, sglang, transformers,
vllm.
"""

from __future__ import annotations

import re
from ast import literal_eval
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from calibrant.bench.core.responses import FAILED, REFUSED, Response, error_reason
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.parse_limits import load_json

JsonMapping: TypeAlias = Mapping[str, Any]


class ParsedLine(NamedTuple):
    """Responses of a line.

    format: name of the format; model: the stated model; objects: parts of the line that may name the item
    prompts: values that may hold the prompt; may_repeat: whether the text may repeat the prompt before the answer
    """

    format: str
    responses: tuple[Response, ...]
    model: str | None = None
    objects: tuple[JsonMapping, ...] = ()
    prompts: tuple[Any, ...] = ()
    may_repeat: bool = False


class Format(NamedTuple):
    """A format of lines. matches: line -> whether it has the format; parse: line -> its responses."""

    name: str
    matches: Callable[[JsonMapping], bool]
    parse: Callable[[JsonMapping], ParsedLine]


# --- Messages and their parts -----------------------------------------------------------------------------------------
THOUGHT_FIELDS: Final = (
    *("reasoning_content", "reasoning", "reasoning_details", "thinking", "reasoning_trace"),
    *("thinking_blocks", "thoughts"),
)
# tuples, not sets: the type in a line may be a list or an object, which cannot be looked up in a set
_THOUGHT_PARTS: Final = ("thinking", "redacted_thinking", "reasoning", "summary_text", "reasoning_text")
_TEXT_PARTS: Final = ("text", "output_text", "input_text")
_RESPONSE_IDS: Final = ("chatcmpl-", "resp_", "msg_", "cmpl-", "gen-")
_CALL_ITEMS: Final = (
    "function_call",
    "custom_tool_call",
)  # output items of OpenAI Responses: calls of the user's tools
_ASSISTANTS: Final = ("assistant", "model")
_METADATA_STOPS: Final = ("finish_reason", "stop_reason", "done_reason")  # keys in LangChain's response_metadata
_FINAL_CHANNEL: Final = "final"  # channel of messages in Harmony's format
_DRAFT_CHANNELS: Final = ("analysis", "commentary")
_SNAKE_CASE: Final = {
    "functionCall": "function_call",
    "finishReason": "finish_reason",
    "promptFeedback": "prompt_feedback",
    "blockReason": "block_reason",
    "modelVersion": "model_version",
}


def as_object(value: Any) -> JsonMapping:
    return value if isinstance(value, Mapping) else {}


def as_objects(value: Any) -> list[JsonMapping]:
    return [entry for entry in value if isinstance(entry, Mapping)] if isinstance(value, list) else []


def as_text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def has_thought_fields(fields: JsonMapping) -> bool:
    return any(fields.get(name) for name in THOUGHT_FIELDS)


def _of_gemini(value: JsonMapping, name: str) -> Any:
    """Return the value of a key of Gemini, which its Python client writes in snake case; None if there is none."""
    return value.get(name, value.get(_SNAKE_CASE[name]))


def line_id(value: JsonMapping) -> str:
    """Return the id of a response that an object or a line states; empty for the ids of other things."""
    stated = value.get("id")
    is_id = isinstance(stated, str) and stated.startswith(_RESPONSE_IDS)
    return as_text(stated if is_id else value.get("responseId")) or ""


def add_ids(responses: Sequence[Response], response_id: object) -> tuple[Response, ...]:
    """Return responses with an id, numbered in their order, unless it is no text or empty; those with one keep it."""
    if not isinstance(response_id, str) or not response_id:
        return tuple(responses)
    return tuple(r if r.id else r._replace(id=f"{response_id}/{index}") for index, r in enumerate(responses))


class Content(NamedTuple):
    """Content of a message: its text, the arguments of tool calls, and whether a part is a thought or a refusal."""

    text: str | None
    calls: tuple[Any, ...] = ()
    has_thoughts: bool = False
    is_refusal: bool = False


def read_content(content: Any) -> Content:
    """Return the content of a message, which is a text or a list of parts."""
    if not isinstance(content, list):
        return Content(as_text(content))
    texts, calls, has_thoughts, is_refusal = [], [], False, False
    for part in content:
        if isinstance(part, str):  # LangChain's
            texts.append(part)
        if not isinstance(part, Mapping):
            continue
        kind = part.get("type")
        if kind in _THOUGHT_PARTS or part.get("thought") is True or "reasoningContent" in part:
            has_thoughts = True
        elif kind == "refusal":
            is_refusal = True
        elif kind == "tool_use":
            calls.append(part.get("input"))
        elif kind == "tool_call":  # OpenTelemetry's
            calls.append(part.get("arguments"))
        elif isinstance(call := _of_gemini(part, "functionCall"), Mapping):
            calls.append(call.get("args"))
        elif isinstance(part.get("toolUse"), Mapping):
            calls.append(part["toolUse"].get("input"))
        elif (kind in _TEXT_PARTS or kind is None) and isinstance(text := part.get("text", part.get("content")), str):
            texts.append(text)
    return Content("".join(texts) if texts else None, tuple(calls), has_thoughts, is_refusal)


def is_assistant(message: JsonMapping) -> bool:
    """Return whether a message is the assistant's: by its role, or by LangChain's type."""
    return message.get("role") in _ASSISTANTS or message.get("type") == "ai"


def has_content(message: JsonMapping) -> bool:
    """Return whether an object has the content of a message; Gemini, Vercel and OpenTelemetry call it parts."""
    return "content" in message or isinstance(message.get("parts"), list)


def message_response(message: JsonMapping) -> Response:
    """Return the response in a message of the assistant; of LangChain's, with the stop reason in its metadata."""
    content = read_content(message.get("content", message.get("parts")))
    further, metadata = (as_object(message.get(name)) for name in ("additional_kwargs", "response_metadata"))
    if message.get("channel") in _DRAFT_CHANNELS:
        arguments = [content.text] if isinstance(message.get("recipient"), str) else []
        return Response(calls=_calls(arguments), has_thoughts=True)
    calls = [*content.calls, *_call_arguments(message.get("tool_calls"))]
    calls += _call_arguments([message.get("function_call")])
    is_refused = content.is_refusal or bool(message.get("refusal") or further.get("refusal"))
    return Response(
        content.text,
        calls=_calls(calls),
        has_thoughts=content.has_thoughts or has_thought_fields(message) or has_thought_fields(further),
        stop=next((metadata[name] for name in _METADATA_STOPS if isinstance(metadata.get(name), str)), ""),
        reason=REFUSED if is_refused else error_reason(message.get("error")),
    )


def _call_arguments(calls: Any) -> Iterator[Any]:
    for call in as_objects(calls):
        stated = next((call[key] for key in ("function", "custom") if isinstance(call.get(key), Mapping)), call)
        yield next((stated[key] for key in ("arguments", "input", "args") if key in stated), "")


def _calls(arguments: Sequence[Any]) -> tuple[str | JsonMapping, ...]:
    """Return the arguments of calls; {} for empty or unreadable ones, so that these still count as calls."""
    return tuple(value if isinstance(value, str | Mapping) and value else {} for value in arguments)


def last_assistant(messages: Any) -> Response:
    """Return the response in the assistant's last (or final-channel) message; its other messages are thoughts."""
    messages_of_assistant = [entry for entry in as_objects(messages) if is_assistant(entry)]
    if not messages_of_assistant:
        return Response()
    last = next(
        (entry for entry in reversed(messages_of_assistant) if entry.get("channel") == _FINAL_CHANNEL),
        messages_of_assistant[-1],
    )
    response = message_response(last)
    return response._replace(has_thoughts=response.has_thoughts or len(messages_of_assistant) > 1)


def spoken_replies(replies: Sequence[Any]) -> list[Any]:
    """Return replies with the texts of messages and parts in their place; messages of others than the assistant go.

    Other objects stay: they are replies of their own. A message without a text is the arguments of its first call.
    """
    spoken: list[Any] = []
    for reply in replies:
        if isinstance(reply, list):
            spoken.append(read_content(reply).text)
        elif not isinstance(reply, Mapping) or not ("role" in reply or is_assistant(reply)):
            spoken.append(reply)
        elif is_assistant(reply):
            response = message_response(reply)
            spoken.append(response.text or next(iter(response.calls), ""))
    return spoken


def add_stop(response: Response, stop: Any, error: Any = None, *, is_limited: bool = False) -> Response:
    """Return a response with its stop reason and the reason of an error."""
    return response._replace(
        stop=as_text(stop) or response.stop,
        is_limited=response.is_limited or is_limited,
        reason=error_reason(error) or response.reason,
    )


def _by_index(entries: Any) -> list[JsonMapping]:
    return sorted(as_objects(entries), key=lambda entry: entry["index"] if type(entry.get("index")) is int else 0)


FAILURE_FIELDS: Final = ("error", "type", "status_code", "success")
FAILURE_HOLDERS: Final = ("response", "result")  # fields of a line whose objects may have FAILURE_FIELDS


def failed_line(line: JsonMapping) -> str:
    """Return the reason of a failed request; empty if the request did not fail.

    A failure is an error, a status of at least 400, `success: false` or `type: error`, in the line, in its response or
    result, or in their body.
    """
    holders = [line, *(line[name] for name in FAILURE_HOLDERS if isinstance(line.get(name), Mapping))]
    holders += [holder["body"] for holder in holders[1:] if isinstance(holder.get("body"), Mapping)]
    for holder in holders:
        if reason := error_reason(holder.get("error")):
            return reason
        if holder.get("type") == "error":
            return error_reason(holder) or FAILED
    is_failed = any(
        _is_failed_status(holder.get("status_code")) or holder.get("success") is False for holder in holders
    )
    return FAILED if is_failed else ""


def refused_line(line: JsonMapping) -> str:
    """Return the reason that a line's refusal states; empty without one."""
    return REFUSED if isinstance(line.get("refusal"), str) and line["refusal"] else ""


def add_status(responses: Sequence[Response], line: JsonMapping) -> tuple[Response, ...]:
    """Return responses of a known format with the failure, refusal and thoughts that their line states beside them."""
    failure, refusal = failed_line(line), refused_line(line)
    # an object is a setting, such as the effort in a response of OpenAI
    has_thoughts = any(isinstance(line.get(name), str | list) and line[name] for name in THOUGHT_FIELDS)
    with_status = [
        response._replace(
            reason=failure or response.reason or refusal, has_thoughts=response.has_thoughts or has_thoughts
        )
        for response in responses
    ]
    return add_ids(with_status, line_id(line))


def _is_failed_status(status: Any) -> bool:
    return str(status).isdecimal() and int(status) >= 400


# --- Messages in a text, as tables and traces hold them in one cell ---------------------------------------------------
_SPEAKER: Final = re.compile(r"""["']role["']\s*:\s*["'](?:system|developer|user|human|assistant|model|tool)["']""")
_LIST_OF_OBJECTS: Final = re.compile(r"\s*\[\s*\{")
_MAX_LITERAL_CHARS: Final = 1 << 20  # of a Python literal: parsing so many takes up to 1 s and 70 MB


def messages_in_text(text: str) -> Any:
    """Return the messages or the provider's object that a text is, in JSON or as Python prints it; else None.

    Read as a text, they would give answers of prompts and thoughts. `CalibrantError` for a list of messages in another
    form, such as NumPy's, or one that breaks off.
    """
    if text[:1] not in "[{ \n" or "role" not in text or _SPEAKER.search(text) is None:  # the cheapest test first
        return None
    stripped = text.strip()
    try:
        value = load_json(stripped)
    except (ValueError, RecursionError, CalibrantError):
        value = _python_value(stripped)
    if isinstance(value, Mapping) and ((is_assistant(value) and has_content(value)) or provider_responses(value)):
        return value
    if isinstance(value, list) and value and all(isinstance(entry, Mapping) and "role" in entry for entry in value):
        return value
    if value is None and _LIST_OF_OBJECTS.match(stripped):
        raise CalibrantError("its messages are a text that is neither JSON nor a whole Python list; write them as JSON")
    return None


def _python_value(text: str) -> Any:
    """Return the value that a text spells in Python, None for anything else."""
    if len(text) > _MAX_LITERAL_CHARS:
        return None
    try:
        return literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


# --- Objects of providers: a line, or the value of one of its fields --------------------------------------------------


def _parse_choices(value: JsonMapping) -> ParsedLine:
    responses = []
    for choice in _by_index(value.get("choices")):
        message = choice.get("message")
        if "delta" in choice and message is None:
            raise CalibrantError("no answer in it, but a chunk of a stream; collect the stream first")
        response = message_response(message) if isinstance(message, Mapping) else Response(as_text(choice.get("text")))
        if has_thought_fields(choice):
            response = response._replace(has_thoughts=True)
        responses.append(add_stop(response, choice.get("finish_reason"), choice.get("error")))
    return _parsed("choices", value, responses, value.get("model"))


def parse_anthropic(value: JsonMapping) -> ParsedLine:
    response = add_stop(message_response(value), value.get("stop_reason"))
    return _parsed("Anthropic message", value, [response], value.get("model"))


def _parse_gemini(value: JsonMapping) -> ParsedLine:
    responses = []
    for candidate in _by_index(value.get("candidates")):
        content = read_content(as_object(candidate.get("content")).get("parts"))
        response = Response(content.text, calls=_calls(content.calls), has_thoughts=content.has_thoughts)
        stop = _of_gemini(candidate, "finishReason")
        # str() of the Python client's enumeration has its name before the value
        responses.append(add_stop(response, stop.rpartition(".")[2] if isinstance(stop, str) else stop))
    blocked = _of_gemini(as_object(_of_gemini(value, "promptFeedback")), "blockReason")
    responses = responses or [Response()]
    if blocked:
        responses = [response._replace(reason=REFUSED) for response in responses]
    return _parsed("Gemini", value, responses, _of_gemini(value, "modelVersion"))


def _parse_responses(value: JsonMapping) -> ParsedLine:
    items = as_objects(value.get("output"))
    messages = [item for item in items if item.get("type") == "message"]
    has_final = any(item.get("phase") == "final_answer" for item in messages)
    visible = [item for item in messages if not (has_final and item.get("phase") == "commentary")]
    contents = [read_content(item.get("content")) for item in visible]
    texts = [content.text for content in contents if content.text is not None]
    arguments = [item.get("arguments", item.get("input")) for item in items if item.get("type") in _CALL_ITEMS]
    has_reasoning = any(item.get("type") == "reasoning" for item in items)
    incomplete = as_object(value.get("incomplete_details")).get("reason")
    response = Response(
        "".join(texts) if texts else None,
        calls=_calls(arguments),
        has_thoughts=has_reasoning or len(visible) < len(messages) or any(content.has_thoughts for content in contents),
        reason=REFUSED if any(content.is_refusal for content in contents) else "",
    )
    response = add_stop(response, incomplete or value.get("status"))
    return _parsed("OpenAI Responses", value, [response], value.get("model"))


def _parse_cohere(value: JsonMapping) -> ParsedLine:
    response = message_response(as_object(value.get("message")))
    return _parsed("Cohere", value, [add_stop(response, value.get("finish_reason"))], value.get("model"))


def _parse_ollama(value: JsonMapping) -> ParsedLine:
    message = value.get("message")
    response = message_response(message) if isinstance(message, Mapping) else Response(as_text(value.get("response")))
    response = response._replace(has_thoughts=response.has_thoughts or has_thought_fields(value))
    return _parsed("Ollama", value, [add_stop(response, value.get("done_reason"))], value.get("model"))


def _parse_vllm(value: JsonMapping) -> ParsedLine:
    responses = []
    for output in _by_index(value.get("outputs")):
        response = Response(as_text(output.get("text")), has_thoughts=has_thought_fields(output))
        stop = output.get("finish_reason", output.get("stop_reason"))  # stop_reason: Mistral's models on Bedrock
        responses.append(add_stop(response, stop))
    return _parsed("vLLM", value, responses, None)


def _parse_converse(value: JsonMapping) -> ParsedLine:
    response = message_response(as_object(as_object(value.get("output")).get("message")))
    return _parsed("Bedrock Converse", value, [add_stop(response, value.get("stopReason"))], value.get("model"))


def _parse_generation(value: JsonMapping) -> ParsedLine:
    """Return the response of a Llama model on Bedrock."""
    response = add_stop(Response(as_text(value.get("generation"))), value.get("stop_reason"))
    return _parsed("Bedrock text", value, [response], value.get("model"))


def _parse_sglang(value: JsonMapping) -> ParsedLine:
    finish = as_object(value.get("meta_info")).get("finish_reason")
    stop = finish.get("type") if isinstance(finish, Mapping) else finish
    response = Response(as_text(value.get("text")), has_thoughts=has_thought_fields(value))
    return _parsed("SGLang", value, [add_stop(response, stop)], value.get("model"))


def _parse_llama_cpp(value: JsonMapping) -> ParsedLine:
    is_limited = value.get("stopped_limit") is True or value.get("truncated") is True
    response = Response(as_text(value.get("content")), has_thoughts=has_thought_fields(value))
    return _parsed(
        "llama.cpp", value, [add_stop(response, value.get("stop_type"), is_limited=is_limited)], value.get("model")
    )


def _parse_generated(value: JsonMapping) -> ParsedLine:
    responses, prompts = [], []
    details = as_object(value.get("details"))
    for entry in (value, *as_objects(details.get("best_of_sequences"))):
        text = entry.get("generated_text")
        stop = entry.get("finish_reason", details.get("finish_reason") if entry is value else None)
        if not isinstance(text, list):
            sequences = [Response(as_text(text))]
        elif as_objects(text):
            sequences = [last_assistant(text)]
            prompts.append({"messages": text})
        else:  # one text for each returned sequence
            sequences = [Response(as_text(sequence)) for sequence in text]
        responses += [add_stop(response, stop) for response in sequences]
    return _parsed("generated text", value, responses, None)._replace(prompts=tuple(prompts), may_repeat=True)


def _parsed(name: str, value: JsonMapping, responses: Sequence[Response], model: Any) -> ParsedLine:
    """Return the responses of a provider's object, with their ids, and its error if it has one."""
    reason = failed_line(value)
    with_reasons = [response._replace(reason=reason or response.reason) for response in responses]
    with_ids = add_ids(with_reasons, line_id(value) or value.get("response_id"))
    return ParsedLine(name, with_ids or (Response(reason=reason),), as_text(model), (value,))


def is_generated_list(value: Any) -> bool:
    """Return whether a value is the result of a transformers pipeline: a list of objects with generated texts."""
    if not isinstance(value, list) or not value:
        return False
    return all(isinstance(entry, Mapping) and "generated_text" in entry for entry in value)


def _has_choices(value: JsonMapping) -> bool:
    """Return whether an object has choices; they are null in a failed request of an aggregator of providers."""
    choices = value.get("choices")
    return isinstance(choices, list) or (
        "choices" in value and choices is None and isinstance(value.get("object"), str)
    )


def _is_llama_cpp(value: JsonMapping) -> bool:
    other_keys = {"stop_type", "tokens_predicted", "truncated"}
    has_other_key = not other_keys.isdisjoint(value) or any(key.startswith("stopped_") for key in value)
    return isinstance(value.get("content"), str) and has_other_key


def _is_responses(value: JsonMapping) -> bool:
    items = value.get("output")
    if value.get("object") == "response":
        return True
    if not isinstance(items, list) or not items:
        return False
    return all(isinstance(item, Mapping) and isinstance(item.get("type"), str) for item in items)


PROVIDERS: Final = (
    Format("choices", _has_choices, _parse_choices),
    Format("Anthropic message", lambda value: value.get("type") == "message" and "content" in value, parse_anthropic),
    Format(
        "Gemini",
        lambda value: not {"candidates", "promptFeedback", "prompt_feedback"}.isdisjoint(value),
        _parse_gemini,
    ),
    Format("OpenAI Responses", _is_responses, _parse_responses),
    Format(
        "Cohere", lambda value: isinstance(value.get("message"), Mapping) and "finish_reason" in value, _parse_cohere
    ),
    Format("Ollama", lambda value: "done" in value and ("message" in value or "response" in value), _parse_ollama),
    Format(
        "vLLM",
        lambda value: (
            isinstance(value.get("outputs"), list) and any("text" in output for output in as_objects(value["outputs"]))
        ),
        _parse_vllm,
    ),
    Format("Bedrock Converse", lambda value: "message" in as_object(value.get("output")), _parse_converse),
    Format("Bedrock text", lambda value: isinstance(value.get("generation"), str), _parse_generation),
    Format("SGLang", lambda value: "text" in value and isinstance(value.get("meta_info"), Mapping), _parse_sglang),
    Format("llama.cpp", _is_llama_cpp, _parse_llama_cpp),
    Format("generated text", lambda value: "generated_text" in value, _parse_generated),
)


def provider_responses(value: Any) -> ParsedLine | None:
    """Return the responses of a provider's object, or of a list of generated texts; None for anything else."""
    if is_generated_list(value):
        parsed = [_parse_generated(entry) for entry in value]
        responses = tuple(response for part in parsed for response in part.responses)
        prompts = tuple(prompt for part in parsed for prompt in part.prompts)
        return ParsedLine("generated text", responses, prompts=prompts, may_repeat=True)
    if not isinstance(value, Mapping):
        return None
    refuse_chunk(value)
    return next((form.parse(value) for form in PROVIDERS if form.matches(value)), None)


def refuse_chunk(value: JsonMapping) -> None:
    """Raise `CalibrantError` for one chunk of a streamed response."""
    if value.get("object") == "chat.completion.chunk" or value.get("done") is False:
        raise CalibrantError("a chunk of a stream, no whole response; collect the stream first")
