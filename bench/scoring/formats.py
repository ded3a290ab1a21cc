"""Formats of lines, as providers and harnesses write them: a table, in the order in which a line is compared with it.

Each format is told by keys of the line. What it gives are responses; never text, whatever the options, are fields and
parts of thoughts, and messages before the last one of the assistant. Sources: type definitions of openai, anthropic,
google-genai, inspect_ai, lm_eval, verifiers, trl, transformers, vllm; HELM's request states; Every Eval Ever 0.2.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from calibrant.bench.core.responses import FAILED, NOT_RUN, REFUSED, STOP_CLASSES, Response, error_reason
from calibrant.dsl.errors import CalibrantError

_Object = Mapping[str, Any]


class ParsedLine(NamedTuple):
    """Responses of a line.

    format: its name; model: that it names; objects: in which the item may be named, beside the line
    prompts: values that hold the prompt; may_repeat: the text may repeat the prompt before the answer
    """

    format: str
    responses: tuple[Response, ...]
    model: str | None = None
    objects: tuple[_Object, ...] = ()
    prompts: tuple[Any, ...] = ()
    may_repeat: bool = False


class Format(NamedTuple):
    """A format of lines; matches: whether a line is of it; parse: its responses."""

    name: str
    matches: Callable[[_Object], bool]
    parse: Callable[[_Object], ParsedLine]


# --- Messages and their parts -----------------------------------------------------------------------------------------
THOUGHT_FIELDS: Final = (
    *("reasoning_content", "reasoning", "reasoning_details", "thinking", "reasoning_trace"),
    *("thinking_blocks", "thoughts"),
)
_THOUGHT_PARTS: Final = frozenset({"thinking", "redacted_thinking", "reasoning", "summary_text", "reasoning_text"})
_TEXT_PARTS: Final = frozenset({"text", "output_text", "input_text"})
_RESPONSE_IDS: Final = ("chatcmpl-", "resp_", "msg_", "cmpl-", "gen-")
_CALL_ITEMS: Final = frozenset({"function_call", "custom_tool_call"})  # of Responses, for tools of the caller
_ASSISTANTS: Final = frozenset({"assistant", "model"})


def _object(value: Any) -> _Object:
    return value if isinstance(value, Mapping) else {}


def _objects(value: Any) -> list[_Object]:
    return [entry for entry in value if isinstance(entry, Mapping)] if isinstance(value, list) else []


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _has_thoughts(fields: _Object) -> bool:
    return any(fields.get(name) for name in THOUGHT_FIELDS)


def _response_id(value: _Object) -> str:
    stated = value.get("id")
    if isinstance(stated, str) and stated.startswith(_RESPONSE_IDS):
        return stated
    return _text(value.get("responseId")) or ""


class Content(NamedTuple):
    """Content of a message: its text, arguments of tool calls, whether parts are thoughts or a refusal."""

    text: str | None
    calls: tuple[Any, ...] = ()
    has_thoughts: bool = False
    is_refusal: bool = False


def read_content(content: Any) -> Content:
    """Return what the content of a message holds: a text, or a list of parts."""
    if not isinstance(content, list):
        return Content(_text(content))
    texts, calls, has_thoughts, is_refusal = [], [], False, False
    for part in content:
        if not isinstance(part, Mapping):
            continue
        kind = part.get("type")
        if kind in _THOUGHT_PARTS or part.get("thought") is True:
            has_thoughts = True
        elif kind == "refusal":
            is_refusal = True
        elif kind == "tool_use":
            calls.append(part.get("input"))
        elif isinstance(part.get("functionCall"), Mapping):
            calls.append(part["functionCall"].get("args"))
        elif (kind in _TEXT_PARTS or kind is None) and isinstance(part.get("text"), str):
            texts.append(part["text"])
    return Content("".join(texts) if texts else None, tuple(calls), has_thoughts, is_refusal)


def message_response(message: _Object) -> Response:
    """Return the response of a message of the assistant."""
    content = read_content(message.get("content"))
    calls = [*content.calls, *_call_arguments(message.get("tool_calls"))]
    calls += _call_arguments([message.get("function_call")])
    is_refused = content.is_refusal or bool(message.get("refusal"))
    return Response(
        content.text,
        calls=_calls(calls),
        has_thoughts=content.has_thoughts or _has_thoughts(message),
        reason=REFUSED if is_refused else error_reason(message.get("error")),
    )


def _call_arguments(calls: Any) -> Iterator[Any]:
    for call in _objects(calls):
        stated = next((call[key] for key in ("function", "custom") if isinstance(call.get(key), Mapping)), call)
        yield next((stated[key] for key in ("arguments", "input", "args") if key in stated), "")


def _calls(arguments: Sequence[Any]) -> tuple[str | _Object, ...]:
    """Return arguments of calls; a call without readable ones is an empty object, so that it counts as a call."""
    return tuple(value if isinstance(value, str | Mapping) and value else {} for value in arguments)


def last_assistant(messages: Any) -> Response:
    """Return the response of the last message of the assistant; the others are thoughts."""
    spoken = [entry for entry in _objects(messages) if entry.get("role") in _ASSISTANTS]
    if not spoken:
        return Response()
    response = message_response(spoken[-1])
    return response._replace(has_thoughts=response.has_thoughts or len(spoken) > 1)


def stopped(response: Response, stop: Any, error: Any = None, *, is_limited: bool = False) -> Response:
    """Return a response with its stop reason and the reason of an error."""
    return response._replace(
        stop=_text(stop) or response.stop,
        is_limited=response.is_limited or is_limited,
        reason=error_reason(error) or response.reason,
    )


def _by_index(entries: Any) -> list[_Object]:
    return sorted(_objects(entries), key=lambda entry: entry["index"] if type(entry.get("index")) is int else 0)


FAILURE_FIELDS: Final = ("error", "type", "status_code", "success")
FAILURE_HOLDERS: Final = ("response", "result")  # objects of a line that may state them


def failed_line(line: _Object) -> str:
    """Return the reason of a line whose request failed: an error, a status from 400, `success: false`, `type: error`.

    Stated by the line, its response or result, or the body of that.
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


def _is_failed_status(status: Any) -> bool:
    return type(status) is int and status >= 400


# --- Objects of providers: a line, or the value of one of its fields --------------------------------------------------


def _parse_choices(value: _Object) -> ParsedLine:
    responses = []
    for choice in _by_index(value.get("choices")):
        message = choice.get("message")
        if "delta" in choice and message is None:
            raise CalibrantError("no answer in it, but a chunk of a stream; collect the stream first")
        response = message_response(message) if isinstance(message, Mapping) else Response(_text(choice.get("text")))
        if _has_thoughts(choice):
            response = response._replace(has_thoughts=True)
        responses.append(stopped(response, choice.get("finish_reason"), choice.get("error")))
    return _parsed("choices", value, responses, value.get("model"))


def _parse_anthropic(value: _Object) -> ParsedLine:
    response = stopped(message_response(value), value.get("stop_reason"))
    return _parsed("Anthropic message", value, [response], value.get("model"))


def _parse_gemini(value: _Object) -> ParsedLine:
    responses = []
    for candidate in _by_index(value.get("candidates")):
        content = read_content(_object(candidate.get("content")).get("parts"))
        response = Response(content.text, calls=_calls(content.calls), has_thoughts=content.has_thoughts)
        responses.append(stopped(response, candidate.get("finishReason")))
    blocked = _object(value.get("promptFeedback")).get("blockReason")
    responses = responses or [Response()]
    if blocked:
        responses = [response._replace(reason=REFUSED) for response in responses]
    return _parsed("Gemini", value, responses, value.get("modelVersion"))


def _parse_responses(value: _Object) -> ParsedLine:
    items = _objects(value.get("output"))
    messages = [item for item in items if item.get("type") == "message"]
    has_final = any(item.get("phase") == "final_answer" for item in messages)
    spoken = [item for item in messages if not (has_final and item.get("phase") == "commentary")]
    contents = [read_content(item.get("content")) for item in spoken]
    texts = [content.text for content in contents if content.text is not None]
    arguments = [item.get("arguments", item.get("input")) for item in items if item.get("type") in _CALL_ITEMS]
    has_reasoning = any(item.get("type") == "reasoning" for item in items)
    incomplete = _object(value.get("incomplete_details")).get("reason")
    response = Response(
        "".join(texts) if texts else None,
        calls=_calls(arguments),
        has_thoughts=has_reasoning or len(spoken) < len(messages) or any(content.has_thoughts for content in contents),
        reason=REFUSED if any(content.is_refusal for content in contents) else "",
    )
    response = stopped(response, incomplete or value.get("status"))
    return _parsed("OpenAI Responses", value, [response], value.get("model"))


def _parse_cohere(value: _Object) -> ParsedLine:
    response = message_response(_object(value.get("message")))
    return _parsed("Cohere", value, [stopped(response, value.get("finish_reason"))], value.get("model"))


def _parse_ollama(value: _Object) -> ParsedLine:
    message = value.get("message")
    response = message_response(message) if isinstance(message, Mapping) else Response(_text(value.get("response")))
    response = response._replace(has_thoughts=response.has_thoughts or _has_thoughts(value))
    return _parsed("Ollama", value, [stopped(response, value.get("done_reason"))], value.get("model"))


def _parse_vllm(value: _Object) -> ParsedLine:
    responses = [
        stopped(Response(_text(output.get("text")), has_thoughts=_has_thoughts(output)), output.get("finish_reason"))
        for output in _by_index(value.get("outputs"))
    ]
    return _parsed("vLLM", value, responses, None)


def _parse_llama_cpp(value: _Object) -> ParsedLine:
    is_limited = value.get("stopped_limit") is True or value.get("truncated") is True
    response = Response(_text(value.get("content")), has_thoughts=_has_thoughts(value))
    return _parsed(
        "llama.cpp", value, [stopped(response, value.get("stop_type"), is_limited=is_limited)], value.get("model")
    )


def _parse_generated(value: _Object) -> ParsedLine:
    responses = []
    details = _object(value.get("details"))
    for entry in (value, *_objects(details.get("best_of_sequences"))):
        text = entry.get("generated_text")
        response = last_assistant(text) if isinstance(text, list) else Response(_text(text))
        stop = entry.get("finish_reason", details.get("finish_reason") if entry is value else None)
        responses.append(stopped(response, stop))
    return _parsed("generated text", value, responses, None)._replace(may_repeat=True)


def _parsed(name: str, value: _Object, responses: Sequence[Response], model: Any) -> ParsedLine:
    """Return the responses of a provider's object, with its id, and its error where it has one."""
    reason, response_id = failed_line(value), _response_id(value)
    ids = [f"{response_id}/{place}" if response_id else "" for place in range(len(responses))]
    with_ids = [
        response._replace(id=numbered_id, reason=reason or response.reason)
        for response, numbered_id in zip(responses, ids, strict=True)
    ]
    return ParsedLine(name, tuple(with_ids) or (Response(reason=reason),), _text(model), (value,))


def _is_generated_list(value: Any) -> bool:
    if not isinstance(value, list) or not value:
        return False
    return all(isinstance(entry, Mapping) and "generated_text" in entry for entry in value)


def _has_choices(value: _Object) -> bool:
    """Return whether an object has choices; an aggregator's failed request has null in their place."""
    choices = value.get("choices")
    return isinstance(choices, list) or (
        "choices" in value and choices is None and isinstance(value.get("object"), str)
    )


def _is_llama_cpp(value: _Object) -> bool:
    beside = {"stop_type", "tokens_predicted", "truncated"}
    has_one = not beside.isdisjoint(value) or any(key.startswith("stopped_") for key in value)
    return isinstance(value.get("content"), str) and has_one


def _is_responses(value: _Object) -> bool:
    items = value.get("output")
    if value.get("object") == "response":
        return True
    if not isinstance(items, list) or not items:
        return False
    return all(isinstance(item, Mapping) and isinstance(item.get("type"), str) for item in items)


PROVIDERS: Final = (
    Format("choices", _has_choices, _parse_choices),
    Format("Anthropic message", lambda value: value.get("type") == "message" and "content" in value, _parse_anthropic),
    Format("Gemini", lambda value: "candidates" in value or "promptFeedback" in value, _parse_gemini),
    Format("OpenAI Responses", _is_responses, _parse_responses),
    Format(
        "Cohere", lambda value: isinstance(value.get("message"), Mapping) and "finish_reason" in value, _parse_cohere
    ),
    Format("Ollama", lambda value: "done" in value and ("message" in value or "response" in value), _parse_ollama),
    Format(
        "vLLM",
        lambda value: (
            isinstance(value.get("outputs"), list) and any("text" in output for output in _objects(value["outputs"]))
        ),
        _parse_vllm,
    ),
    Format("llama.cpp", _is_llama_cpp, _parse_llama_cpp),
    Format("generated text", lambda value: "generated_text" in value, _parse_generated),
)


def provider_responses(value: Any) -> ParsedLine | None:
    """Return the responses of a provider's object, or of a list of generated texts; None for anything else."""
    if _is_generated_list(value):
        parsed = [_parse_generated(entry) for entry in value]
        responses = tuple(response for part in parsed for response in part.responses)
        return ParsedLine("generated text", responses, may_repeat=True)
    if not isinstance(value, Mapping):
        return None
    _refuse_chunk(value)
    return next((form.parse(value) for form in PROVIDERS if form.matches(value)), None)


def _refuse_chunk(value: _Object) -> None:
    if value.get("object") == "chat.completion.chunk" or value.get("done") is False:
        raise CalibrantError("a chunk of a stream, no whole response; collect the stream first")


# --- Lines of harnesses and batches -----------------------------------------------------------------------------------


def _parse_traces(line: _Object) -> ParsedLine:
    traces = _objects(line.get("traces"))
    if not traces:
        data = _object(_object(line.get("task")).get("data"))
        return ParsedLine("verifiers traces", (Response(reason=NOT_RUN),), None, (data,), (data,))
    responses, model = [], None
    for trace in traces:
        nodes = [_object(node.get("message")) for node in _objects(trace.get("nodes"))]
        calls, errors = _objects(trace.get("calls")), trace.get("errors") or line.get("errors") or [None]
        stop = calls[-1].get("finish_reason") if calls else None
        model = (_text(calls[-1].get("model")) if calls else None) or model
        error = errors[-1] if isinstance(errors, list) else errors
        responses.append(stopped(last_assistant(nodes), stop, error, is_limited=trace.get("is_truncated") is True))
    data = _object(_object(traces[0].get("task")).get("data"))
    users = [node.get("message") for node in _objects(traces[0].get("nodes"))]
    return ParsedLine("verifiers traces", tuple(responses), model, (data,), (data, {"messages": users}))


def _parse_helm(line: _Object) -> ParsedLine:
    request, instance, result = (_object(line.get(key)) for key in ("request", "instance", "result"))
    prompts = ({"prompt": request.get("prompt"), "input": instance.get("input")},)
    model = _text(request.get("model"))
    if line.get("result") is None:
        return ParsedLine("HELM", (Response(reason=NOT_RUN),), model, (instance,), prompts)
    reason = failed_line(result)
    responses = []
    for completion in _objects(result.get("completions")):
        stop = _object(completion.get("finish_reason")).get("reason")
        response = Response(_text(completion.get("text")), has_thoughts=bool(completion.get("thinking")))
        responses.append(stopped(response, "stop" if stop == "endoftext" else stop)._replace(reason=reason))
    return ParsedLine("HELM", tuple(responses) or (Response(reason=reason),), model, (instance,), prompts)


def _parse_every_eval(line: _Object) -> ParsedLine:
    output = _object(line.get("output"))
    raw = output.get("raw")
    texts = (
        [raw]
        if isinstance(raw, str)
        else [text for text in raw if isinstance(text, str)]
        if isinstance(raw, list)
        else []
    )
    has_thoughts = _has_thoughts(output)
    responses = [Response(text, has_thoughts=has_thoughts) for text in texts] or [last_assistant(line.get("messages"))]
    reason = error_reason(line.get("error"))
    failed_responses = tuple(response._replace(reason=reason) if reason else response for response in responses)
    return ParsedLine("Every Eval Ever", failed_responses, _text(line.get("model_id")))


def _parse_lm_eval(line: _Object) -> ParsedLine:
    stated = line.get("resps") or line.get("filtered_resps") or []
    texts = [text for entry in stated for text in (entry if isinstance(entry, list) else [entry])]
    responses = tuple(Response(text) for text in texts if isinstance(text, str))
    return ParsedLine("lm-eval samples", responses or (Response(),), None, (), (_object(line.get("arguments")),))


def parse_inspect(sample: _Object, model: str | None = None) -> ParsedLine:
    """Return the response of a sample of Inspect; model: of its log."""
    output = _object(sample.get("output"))
    choices = _objects(output.get("choices"))
    response = message_response(_object(choices[0].get("message"))) if choices else Response()
    completion = output.get("completion")
    if isinstance(completion, str) and completion:
        response = response._replace(text=completion)
    stop = choices[0].get("stop_reason") if choices else None
    is_limited = bool(_object(sample.get("limit")).get("type"))
    response = stopped(response, stop, sample.get("error"), is_limited=is_limited)
    if output.get("error") and not response.reason:
        response = response._replace(reason=REFUSED)
    epoch = sample.get("epoch")
    if type(epoch) is int and epoch > 0:
        response = response._replace(sample=epoch - 1)
    return ParsedLine("Inspect", (response,), model or _text(output.get("model")), (), (sample,))


def _parse_batch_input(line: _Object) -> ParsedLine:
    body = next((_object(line[key]) for key in ("body", "params", "request") if key in line), {})
    return ParsedLine("batch input", (Response(reason=NOT_RUN),), _text(body.get("model")))


def _is_batch_input(line: _Object) -> bool:
    has_request = ("custom_id" in line and ("body" in line or "params" in line)) or (
        "key" in line and "request" in line
    )
    return has_request and not {"response", "result", "error"} & line.keys()


_ANTHROPIC_RESULTS: Final = {"canceled": NOT_RUN, "expired": NOT_RUN}


def _parse_anthropic_batch(line: _Object) -> ParsedLine:
    result = _object(line.get("result"))
    kind = str(result.get("type"))
    if kind == "succeeded":
        return _parse_anthropic(_object(result.get("message")))._replace(format="Anthropic batch")
    reason = _ANTHROPIC_RESULTS.get(kind) or error_reason(result.get("error")) or FAILED
    return ParsedLine("Anthropic batch", (Response(reason=reason),))


def _parse_batch_output(line: _Object) -> ParsedLine:
    response = _object(line.get("response"))
    body = response["body"] if isinstance(response.get("body"), Mapping) else response
    status = line.get("status")
    reason = error_reason(line.get("error")) or error_reason(response.get("error"))
    reason = reason or (error_reason(status) if isinstance(status, str) else "")
    reason = reason or error_reason(body.get("error")) or failed_line(response)
    parsed = provider_responses(body) if body else None
    if parsed is None and not reason and body:
        raise CalibrantError(f"response has none of the known forms; its keys are {', '.join(map(str, body))[:80]}")
    if parsed is None:
        parsed = ParsedLine("batch output", (Response(reason=NOT_RUN),), _text(body.get("model")))
    responses = tuple(part._replace(reason=reason or part.reason) for part in parsed.responses)
    return parsed._replace(format="batch output", responses=responses)


def _is_batch_output(line: _Object) -> bool:
    if "response" not in line or not {"custom_id", "key", "request", "status"} & line.keys():
        return False
    response = line["response"]
    if response is None:
        return True
    if not isinstance(response, Mapping):
        return False
    body = response.get("body", response)
    is_failed = bool(error_reason(line.get("error")) or failed_line(response) or line.get("status"))
    has_body = "body" in response or "status_code" in response
    return is_failed or has_body or (isinstance(body, Mapping) and any(form.matches(body) for form in PROVIDERS))


def _parse_completion(line: _Object) -> ParsedLine:
    completion = line.get("completion")
    is_conversation = isinstance(completion, list)
    response = last_assistant(completion) if is_conversation else Response(_text(completion))
    condition = line.get("stop_condition")
    is_known = isinstance(condition, str) and condition.lower() in STOP_CLASSES
    stop = condition if is_known else line.get("finish_reason", line.get("stop_reason"))
    response = stopped(response, stop, line.get("error"), is_limited=line.get("is_truncated") is True)
    response = response._replace(has_thoughts=response.has_thoughts or _has_thoughts(line))
    return ParsedLine("completion", (response,))


def _is_completion(line: _Object) -> bool:
    return "prompt" in line and isinstance(line.get("completion"), str | list)


LINES: Final = (
    Format("verifiers traces", lambda line: isinstance(line.get("traces"), list), _parse_traces),
    Format("HELM", lambda line: {"request", "instance", "result"} <= line.keys(), _parse_helm),
    Format("Every Eval Ever", lambda line: {"schema_version", "interaction_type"} <= line.keys(), _parse_every_eval),
    Format(
        "lm-eval samples",
        lambda line: "doc_id" in line and ("resps" in line or "filtered_resps" in line),
        _parse_lm_eval,
    ),
    Format(
        "Inspect",
        lambda line: {"epoch", "messages", "output"} <= line.keys() and "choices" in _object(line["output"]),
        parse_inspect,
    ),
    Format("batch input", _is_batch_input, _parse_batch_input),
    Format(
        "Anthropic batch", lambda line: isinstance(_object(line.get("result")).get("type"), str), _parse_anthropic_batch
    ),
    Format("batch output", _is_batch_output, _parse_batch_output),
    Format("completion", _is_completion, _parse_completion),
    *PROVIDERS,
)
_LINE_KEYS: Final = frozenset(
    {
        *("traces", "request", "schema_version", "doc_id", "epoch", "custom_id", "key", "result", "response", "prompt"),
        *(
            "choices",
            "message",
            "candidates",
            "promptFeedback",
            "output",
            "outputs",
            "done",
            "content",
            "generated_text",
            "object",
        ),
    }
)


_PLAIN_KEYS: Final = frozenset({"instanceId", "id", "item_id", "model", "response", "sample", "seconds", "pool"})


def parse_line(line: _Object) -> ParsedLine | None:
    """Return the responses of a line in one of the formats; None for plain lines."""
    if _LINE_KEYS.isdisjoint(line) or (line.keys() <= _PLAIN_KEYS and isinstance(line.get("response"), str)):
        return None
    _refuse_chunk(line)
    return next((form.parse(line) for form in LINES if form.matches(line)), None)


# --- Rows of tables as lines ------------------------------------------------------------------------------------------
OPTIONAL_CELLS = frozenset(
    {"sample", "epoch", "seconds", "error", "model", "finish_reason", "stop_reason", "refusal", "promptDigest", "pool"}
)


def line_of_cells(header: Sequence[str], row: Sequence[str]) -> dict[str, Any]:
    """Return a row of texts, as many as the header has, as a line; empty cells of optional fields are left out."""
    line = {name: cell for name, cell in zip(header, row, strict=True) if cell or name not in OPTIONAL_CELLS}
    return {**line, **_cell_numbers(line)}


def _cell_numbers(line: Mapping[str, str]) -> dict[str, Any]:
    """Return the cells that state numbers as numbers."""
    numbers: dict[str, Any] = {
        name: int(line[name])
        for name in ("sample", "epoch")
        if line.get(name, "").isascii() and line.get(name, "").isdecimal()
    }
    try:
        return numbers | ({"seconds": float(line["seconds"])} if "seconds" in line else {})
    except ValueError:
        return numbers
