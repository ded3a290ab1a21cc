"""Shapes in which providers answer, fail, refuse and are cut off: each read at the first try, with its reason.

Expectations are written by hand from docs/predictions.md; the right answer is the bundled item's own.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import calibrant
from calibrant.bench.cli import main
from calibrant.bench.core.registry import benchmark, bundled_sample
from calibrant.bench.core.responses import REASONS
from tests.support.commands import CHECKOUT, called, jsonl, refused

POOL = bundled_sample("causim")
OF = benchmark("causim")
ITEM, OTHER = list(calibrant.load_pool(POOL))[:2]
# half a shape's time was the pool's
TWO_ITEMS = "".join(POOL.read_text(encoding="utf-8").splitlines(keepends=True)[:3])
GOLD = json.dumps(OF.training.gold(ITEM))
DRAFT = '{"no": "answer"}'
TOO_SHORT = GOLD[:-3]
PROMPT = OF.items.messages(ITEM)[-1]["content"]
RIGHT = ("", True)
FAILED, NOT_RUN = ("infrastructure_error", None), ("not_run", None)
CUT_OFF, REFUSED, EMPTY = ("cut_off", False), ("refused", False), ("empty", False)
THOUGHTS, TOOL, UNREADABLE = ("only_thoughts", False), ("tool_call", False), ("unreadable", False)


class Shape(NamedTuple):
    """Lines of a file, and what is right about each of their responses."""

    name: str
    lines: list[dict[str, Any]]
    expected: list[tuple[str, bool | None]]
    warnings: Mapping[str, int] = {}


def _chat(stop: str = "stop", response_id: str = "chatcmpl-1", **message: Any) -> dict[str, Any]:
    choice = {"index": 0, "finish_reason": stop, "logprobs": None, "message": {"role": "assistant", **message}}
    return {"id": response_id, "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}


def _batch(body: Any, status: int | str = 200, error: Any = None) -> dict[str, Any]:
    response = {"status_code": status, "request_id": "r", "body": body}
    return {"id": "batch_req_1", "custom_id": ITEM.id, "response": response, "error": error}


def _batch_error(status: int = 400, **error: Any) -> dict[str, Any]:
    return _batch({"error": {"message": "m", **error}}, status)


def _own(body: dict[str, Any]) -> dict[str, Any]:
    """Return an object of a provider with the item beside it."""
    return {"instanceId": ITEM.id, **body}


def _vllm(index: int, text: str, stop: str) -> dict[str, Any]:
    """Return an output with all fields of `CompletionOutput`."""
    unset = ("logprobs", "routed_experts", "stop_reason", "lora_request", "sampling_mask", "spec_decode_metrics")
    fields = {"token_ids": [1, 2], "cumulative_logprob": -1.0, "weight_versions": None, **dict.fromkeys(unset)}
    return {"index": index, "text": text, "finish_reason": stop, **fields}


def _harmony(*messages: tuple[str, str]) -> dict[str, Any]:
    spoken = [
        {"role": "assistant", "name": None, "content": [{"type": "text", "text": text}], "channel": channel}
        for channel, text in messages
    ]
    return _own({"messages": [{"role": "user", "content": [{"type": "text", "text": "q"}]}, *spoken]})


def _responses(*output: dict[str, Any], status: str = "completed", **fields: Any) -> dict[str, Any]:
    body = {"id": "resp_1", "object": "response", "model": "m", "status": status, "output": [*output]}
    return _batch(body | {"error": None, "incomplete_details": None} | fields)


def _output_text(text: str, **fields: Any) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}], **fields}


def _anthropic(stop: str, *content: dict[str, Any]) -> dict[str, Any]:
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [*content]}
    return {"custom_id": ITEM.id, "result": {"type": "succeeded", "message": message | {"stop_reason": stop}}}


def _anthropic_error(**error: Any) -> dict[str, Any]:
    return {"custom_id": ITEM.id, "result": {"type": "errored", "error": {"type": "error", "error": error}}}


def _gemini(stop: str, *parts: dict[str, Any]) -> dict[str, Any]:
    candidate = {"content": {"role": "model", "parts": [*parts]}, "finishReason": stop, "index": 0}
    return {"key": ITEM.id, "response": {"candidates": [candidate], "modelVersion": "m"}}


def _call(arguments: str) -> dict[str, Any]:
    return {"id": "c", "type": "function", "function": {"name": "submit", "arguments": arguments}}


def _python_gemini(stop: str | None, *parts: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Return a response as google-genai's `model_dump` writes it: keys in snake case, null where nothing is stated."""
    candidate = {"content": {"parts": [*parts] or None, "role": "model"}, "finish_reason": stop, "index": None}
    return {"key": ITEM.id, "response": {"candidates": [candidate], "model_version": "m", **fields}}


def _langchain(content: Any, **metadata: Any) -> dict[str, Any]:
    return {"type": "ai", "content": content, "additional_kwargs": {}, "response_metadata": metadata, "tool_calls": []}


TEXT, THINKING = {"type": "text", "text": GOLD}, {"type": "thinking", "thinking": DRAFT, "signature": "s"}
REASONING = {"type": "reasoning", "summary": [{"type": "summary_text", "text": DRAFT}]}
TEXTS_BESIDE: dict[str, Any] = {
    "instructions": DRAFT,
    "text": {"format": {"type": "text"}},
    "reasoning": {"summary": DRAFT},
}
WRONG_CALL = _call(json.dumps(dict.fromkeys(json.loads(GOLD), "no such value")))
SECOND_CHOICE = {"index": 1, "finish_reason": "stop", "message": {"role": "assistant", "content": DRAFT}}
FIRST_CHOICE = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": GOLD}}

OPENAI = [
    Shape("right", [_batch(_chat(content=GOLD, refusal=None, tool_calls=None, annotations=[]))], [RIGHT]),
    Shape("rate limit", [_batch_error(429, code="rate_limit_exceeded", type="rate_limit_error")], [FAILED]),
    Shape("server error without codes", [_batch_error(500)], [FAILED]),
    Shape("body is a text", [_batch('{"detail": "x"}', 422)], [FAILED]),
    Shape("policy", [_batch_error(code="content_policy_violation", type="invalid_request_error")], [REFUSED]),
    Shape("Azure's filter", [_batch_error(code="content_filter", status=400)], [REFUSED]),
    Shape("Azure's inner error", [_batch_error(innererror={"code": "ResponsibleAIPolicyViolation"})], [REFUSED]),
    Shape("context length", [_batch_error(code="context_length_exceeded")], [CUT_OFF]),
    Shape("expired", [{"custom_id": ITEM.id, "response": None, "error": {"code": "batch_expired"}}], [NOT_RUN]),
    Shape("cancelled", [{"custom_id": ITEM.id, "response": None, "error": {"code": "batch_cancelled"}}], [NOT_RUN]),
    Shape("neither response nor error", [{"custom_id": ITEM.id, "response": None, "error": None}], [NOT_RUN]),
    Shape(
        "input of a batch", [{"custom_id": ITEM.id, "method": "POST", "url": "/v1", "body": {"model": "m"}}], [NOT_RUN]
    ),
    Shape("no choices", [_batch(_chat() | {"choices": []})], [EMPTY]),
    Shape("choices null", [_batch(_chat() | {"choices": None})], [EMPTY]),
    Shape("refusal", [_batch(_chat(content=None, refusal="no"))], [REFUSED]),
    Shape("refusal beside an answer", [_batch(_chat(content=GOLD, refusal="no"))], [REFUSED]),
    Shape("empty refusal", [_batch(_chat(content=GOLD, refusal=""))], [RIGHT]),
    Shape("refusal part", [_batch(_chat(content=[{"type": "refusal", "refusal": "no"}]))], [REFUSED]),
    Shape("filter, partial text", [_batch(_chat("content_filter", content=GOLD))], [REFUSED]),
    Shape("limit behind the answer", [_batch(_chat("length", content=GOLD))], [RIGHT], {"cut_off_read": 1}),
    Shape("limit inside the answer", [_batch(_chat("length", content=TOO_SHORT))], [CUT_OFF]),
    Shape("limit inside thoughts", [_batch(_chat("length", content="", reasoning_content=GOLD))], [CUT_OFF]),
    Shape("thoughts alone", [_batch(_chat(content="", reasoning=GOLD))], [THOUGHTS]),
    Shape("thoughts in parts", [_batch(_chat(content=[THINKING, TEXT]))], [RIGHT]),
    Shape("two choices", [_batch(_chat() | {"choices": [SECOND_CHOICE, FIRST_CHOICE]})], [RIGHT, UNREADABLE]),
    Shape("one retry, same id", [_batch(_chat(content=GOLD))] * 2, [RIGHT], {"duplicate": 1}),
    Shape("one retry, plain", [_own({"id": "cmpl-1", "response": GOLD})] * 2, [RIGHT], {"duplicate": 1}),
    Shape("two requests", [_batch(_chat("stop", f"chatcmpl-{k}", content=GOLD)) for k in (1, 2)], [RIGHT, RIGHT]),
    Shape("retry after a failure", [_batch_error(500), _batch(_chat(content=GOLD))], [FAILED, RIGHT]),
    Shape(
        "call", [_batch(_chat("tool_calls", content=None, tool_calls=[_call(GOLD)]))], [RIGHT], {"tool_call_read": 1}
    ),
    Shape("draft in a call", [_batch(_chat(content=None, tool_calls=[_call(f"<think>{GOLD}</think>")]))], [TOOL]),
    Shape(
        "draft before the answer in a call",
        [_batch(_chat(content=None, tool_calls=[_call(f"{DRAFT}</think>{GOLD}")]))],
        [RIGHT],
        {"tool_call_read": 1},
    ),
    Shape("broken call", [_batch(_chat("tool_calls", content=None, tool_calls=[_call(TOO_SHORT)]))], [TOOL]),
    Shape("two calls", [_batch(_chat("tool_calls", content=None, tool_calls=[_call(GOLD), WRONG_CALL]))], [TOOL]),
    Shape("text beside a call", [_batch(_chat("tool_calls", content=GOLD, tool_calls=[_call("{}")]))], [RIGHT]),
    Shape(
        "custom tool",
        [_batch(_chat(content=None, tool_calls=[{"type": "custom", "custom": {"name": "submit", "input": GOLD}}]))],
        [RIGHT],
    ),
    Shape("error of a choice", [_own({"choices": [{"error": {"code": 502}, "message": {"content": "a"}}]})], [FAILED]),
]
RESPONSES = [
    Shape("thoughts and text", [_responses(REASONING, _output_text(GOLD), **TEXTS_BESIDE)], [RIGHT]),
    Shape("incomplete without a reason", [_responses(REASONING, status="incomplete")], [CUT_OFF]),
    Shape("thoughts alone", [_responses(REASONING)], [THOUGHTS]),
    Shape("two messages", [_responses(_output_text("So: "), _output_text(GOLD))], [RIGHT]),
    Shape(
        "commentary",
        [_responses(_output_text(DRAFT, phase="commentary"), _output_text(GOLD, phase="final_answer"))],
        [RIGHT],
    ),
    Shape(
        "limit",
        [_responses(REASONING, status="incomplete", incomplete_details={"reason": "max_output_tokens"})],
        [CUT_OFF],
    ),
    Shape(
        "filter",
        [_responses(_output_text(GOLD), status="incomplete", incomplete_details={"reason": "content_filter"})],
        [REFUSED],
    ),
    Shape("failed", [_responses(status="failed", error={"code": "server_error"})], [FAILED]),
    Shape("failed prompt", [_responses(status="failed", error={"code": "invalid_prompt"})], [REFUSED]),
    Shape("cancelled", [_responses(status="cancelled")], [NOT_RUN]),
    Shape("call", [_responses({"type": "function_call", "name": "submit", "arguments": GOLD})], [RIGHT]),
    Shape("custom call", [_responses({"type": "custom_tool_call", "name": "submit", "input": GOLD})], [RIGHT]),
]
ANTHROPIC = [
    Shape("thoughts and text", [_anthropic("end_turn", THINKING, TEXT)], [RIGHT]),
    Shape("redacted thoughts alone", [_anthropic("end_turn", {"type": "redacted_thinking", "data": "x"})], [THOUGHTS]),
    Shape("no content", [_anthropic("end_turn")], [EMPTY]),
    Shape("refusal", [_anthropic("refusal")], [REFUSED]),
    Shape("limit inside thoughts", [_anthropic("max_tokens", THINKING)], [CUT_OFF]),
    Shape("paused turn", [_anthropic("pause_turn", {"type": "text", "text": "Let me"})], [CUT_OFF]),
    Shape("context window", [_anthropic("model_context_window_exceeded", {"type": "text", "text": "a"})], [CUT_OFF]),
    Shape("call", [_anthropic("tool_use", {"type": "tool_use", "name": "submit", "input": json.loads(GOLD)})], [RIGHT]),
    Shape(
        "wrapped call",
        [_anthropic("tool_use", {"type": "tool_use", "name": "submit", "input": {"answer": GOLD}})],
        [("wrong_format", False)],
    ),
    Shape(
        "search of the server",
        [_anthropic("end_turn", {"type": "server_tool_use", "name": "web_search", "input": {"query": "q"}}, TEXT)],
        [RIGHT],
    ),
    Shape("overloaded", [_anthropic_error(type="overloaded_error")], [FAILED]),
    Shape("invalid request", [_anthropic_error(type="invalid_request_error", message="prompt is too long")], [FAILED]),
    Shape(
        "canceled, expired",
        [{"custom_id": ITEM.id, "result": {"type": t}} for t in ("canceled", "expired")],
        [NOT_RUN] * 2,
    ),
    Shape("error line", [_own({"type": "error", "error": {"type": "api_error"}})], [FAILED]),
    Shape("message in a field", [_own({"response": _anthropic("end_turn", TEXT)["result"]["message"]})], [RIGHT]),
]
GEMINI = [
    Shape("thoughts and text", [_gemini("STOP", {"text": DRAFT, "thought": True}, {"text": GOLD})], [RIGHT]),
    Shape("unavailable", [{"key": ITEM.id, "error": {"code": 503, "status": "UNAVAILABLE"}}], [FAILED]),
    Shape("blocked", [{"key": ITEM.id, "response": {"promptFeedback": {"blockReason": "OTHER"}}}], [REFUSED]),
    Shape("safety", [_gemini("SAFETY")], [REFUSED]),
    Shape("recitation", [_gemini("RECITATION", {"text": GOLD})], [REFUSED]),
    Shape("limit", [{"key": ITEM.id, "response": {"candidates": [{"finishReason": "MAX_TOKENS"}]}}], [CUT_OFF]),
    Shape("malformed call", [_gemini("MALFORMED_FUNCTION_CALL")], [TOOL]),
    Shape("other", [_gemini("OTHER")], [EMPTY], {"unknown_stop": 1}),
    Shape("call", [_gemini("STOP", {"functionCall": {"name": "submit", "args": json.loads(GOLD)}})], [RIGHT]),
    Shape("Python client", [_python_gemini("STOP", {"text": DRAFT, "thought": True}, {"text": GOLD})], [RIGHT]),
    Shape("Python client, limit", [_python_gemini("MAX_TOKENS")], [CUT_OFF]),
    Shape("Python client, name of its enumeration", [_python_gemini("FinishReason.SAFETY")], [REFUSED]),
    Shape(
        "Python client, blocked",
        [_python_gemini(None, prompt_feedback={"block_reason": "SAFETY"}, candidates=None)],
        [REFUSED],
    ),
    Shape(
        "Python client, call",
        [_python_gemini("STOP", {"function_call": {"name": "submit", "args": json.loads(GOLD)}})],
        [RIGHT],
    ),
    Shape("failed, by its status", [{"key": ITEM.id, "status": "JOB_STATE_FAILED"}], [FAILED]),
    Shape("input of a batch", [{"key": ITEM.id, "request": {"contents": []}}], [NOT_RUN]),
    Shape(
        "Vertex, failed",
        [{"request": {"contents": [{"parts": [{"text": PROMPT}]}]}, "status": "Internal error", "response": {}}],
        [FAILED],
    ),
    Shape(
        "Vertex, item by its prompt",
        [{**_gemini("STOP", {"text": GOLD}), "key": None, "request": {"contents": [{"parts": [{"text": PROMPT}]}]}}],
        [RIGHT],
        {"item_from_prompt": 1},
    ),
]
OTHERS = [
    Shape(
        "Ollama, chat",
        [_own({"message": {"role": "assistant", "content": GOLD, "thinking": DRAFT}, "done": True})],
        [RIGHT],
    ),
    Shape(
        "Ollama, limit", [_own({"response": "", "thinking": GOLD, "done": True, "done_reason": "length"})], [CUT_OFF]
    ),
    Shape("Ollama, load", [_own({"response": "", "done": True, "done_reason": "load"})], [NOT_RUN]),
    Shape("Ollama, error", [_own({"error": "model not found"})], [FAILED]),
    Shape(
        "Cohere",
        [_own({"message": {"role": "assistant", "content": [THINKING, TEXT]}, "finish_reason": "COMPLETE"})],
        [RIGHT],
    ),
    Shape("Cohere, limit", [_own({"message": {"content": [{"text": "a"}]}, "finish_reason": "MAX_TOKENS"})], [CUT_OFF]),
    Shape("Cohere, error", [_own({"message": {"content": []}, "finish_reason": "ERROR"})], [FAILED]),
    Shape("llama.cpp, limit", [_own({"content": TOO_SHORT, "stop": True, "stop_type": "limit"})], [CUT_OFF]),
    Shape("llama.cpp before 2025", [_own({"content": TOO_SHORT, "stopped_limit": True})], [CUT_OFF]),
    Shape("TGI, error", [_own({"error": "Input validation error", "error_type": "validation"})], [FAILED]),
    Shape("TGI", [_own({"generated_text": GOLD, "details": {"finish_reason": "eos_token"}})], [RIGHT]),
    Shape("vLLM, aborted", [_own({"outputs": [{"index": 0, "text": "", "finish_reason": "abort"}]})], [FAILED]),
    Shape(
        "vLLM 0.33, two outputs",
        [
            {
                "request_id": "0",
                "prompt": PROMPT,
                "prompt_token_ids": [1],
                "prompt_logprobs": None,
                "metrics": None,
                "outputs": [_vllm(1, "<think>It", "length"), _vllm(0, f"<think>{DRAFT}</think>{GOLD}", "stop")],
                "finished": True,
                "lora_request": None,
                "encoder_prompt": None,
                "num_cached_tokens": 0,
            }
        ],
        [RIGHT, CUT_OFF],
        {"item_from_prompt": 1},
    ),
    Shape("status of Google", [{"key": ITEM.id, "status": {"code": 4, "message": "m"}, "response": None}], [FAILED]),
    Shape("Harmony's conversation", [_harmony(("analysis", DRAFT), ("final", GOLD))], [RIGHT]),
    Shape("Harmony, no final message", [_harmony(("analysis", GOLD), ("commentary", GOLD))], [THOUGHTS]),
    Shape("Harmony, analysis behind the answer", [_harmony(("final", GOLD), ("analysis", DRAFT))], [RIGHT]),
    Shape(
        "pipeline with its conversation",
        [{"generated_text": [{"role": "user", "content": PROMPT}, {"role": "assistant", "content": GOLD}]}],
        [RIGHT],
        {"item_from_prompt": 1},
    ),
    Shape(
        "prompt with line ends of Windows",
        [{"prompt": PROMPT.replace("\n", "\r\n"), "response": GOLD}],
        [RIGHT],
        {"item_from_prompt": 1},
    ),
    Shape("vLLM, error body", [_batch({"object": "error", "message": "m", "code": 400}, 400)], [FAILED]),
    Shape("pipeline with its prompt", [{"generated_text": f"{PROMPT}\n{GOLD}"}], [RIGHT], {"prompt_removed": 1}),
    Shape("plain, status", [_own({"status_code": 500, "response": None})], [FAILED]),
    Shape("status as a text", [_batch(None, "500")], [FAILED]),
    Shape("LangChain", [_own({"response": _langchain(GOLD, finish_reason="stop")})], [RIGHT]),
    Shape("LangChain, text as a part", [_own({"response": _langchain(["So: ", TEXT])})], [RIGHT]),
    Shape("LangChain, limit", [_own({"response": _langchain("", finish_reason="length")})], [CUT_OFF]),
    Shape("LangChain, refusal", [_own({"response": _langchain([], stop_reason="refusal")})], [REFUSED]),
    Shape(
        "LangChain, conversation with a call",
        [
            _own(
                {
                    "messages": [
                        {"type": "human", "content": "q"},
                        _langchain("")
                        | {"tool_calls": [{"name": "submit", "args": json.loads(GOLD), "type": "tool_call"}]},
                    ]
                }
            )
        ],
        [RIGHT],
        {"tool_call_read": 1},
    ),
    Shape(
        "conversation of Gemma",
        [_own({"messages": [{"role": "user", "content": "q"}, {"role": "model", "content": GOLD}]})],
        [RIGHT],
    ),
    *(Shape(f"{key}, one null", [_own({key: [GOLD, None]})], [RIGHT, EMPTY]) for key in ("response", "generated_text")),
    Shape("plain, no success", [_own({"success": False, "response": ""})], [FAILED]),
    Shape("plain, empty errors", [_own({"error": "", "response": GOLD})], [RIGHT]),
    Shape("plain, error in the response", [_own({"response": {"error": {"type": "rate_limit"}}})], [FAILED]),
    Shape("plain, filter", [_own({"response": GOLD, "finish_reason": "content_filter"})], [REFUSED]),
    Shape("plain, limit", [_own({"response": "Let me think", "finish_reason": "length"})], [CUT_OFF]),
    Shape("plain, words of a refusal", [_own({"response": "I cannot help with that."})], [UNREADABLE]),
    Shape("plain, thoughts beside nothing", [_own({"response": "", "reasoning": GOLD})], [THOUGHTS]),
    *(
        Shape(f"thoughts of the line beside {next(iter(body))}", [{**body, "reasoning_content": GOLD}], [THOUGHTS])
        for body in (_own(_chat(content="")), _own({"generated_text": ""}), _own({"doc_id": 1, "resps": [[""]]}))
    ),
    Shape("refusal of the line beside choices", [_own({**_chat(content=GOLD), "refusal": "no"})], [REFUSED]),
    Shape("setting of thoughts beside output", [_own(_responses(**TEXTS_BESIDE)["response"]["body"])], [EMPTY]),
    Shape("answer as a text with a draft", [_own({"answer": f"<think>{GOLD}</think>no"})], [UNREADABLE]),
]
REASONED = {"reasoningContent": {"reasoningText": {"text": GOLD, "signature": "s"}}}
USE = {"toolUse": {"toolUseId": "t", "name": "submit", "input": json.loads(GOLD)}}


def _converse(stop: str, *content: dict[str, Any]) -> dict[str, Any]:
    message = {"role": "assistant", "content": [*content]}
    return _own({"output": {"message": message}, "stopReason": stop, "usage": {}, "metrics": {"latencyMs": 1}})


def _bedrock(**fields: Any) -> dict[str, Any]:
    prompt = {"role": "user", "content": [{"type": "text", "text": PROMPT}]}
    return {"recordId": ITEM.id, "modelInput": {"messages": [prompt]}, **fields}


def _sglang(text: str, finish: dict[str, Any] | None) -> dict[str, Any]:
    return _own({"text": text, "output_ids": [1], "meta_info": {"id": "a", "finish_reason": finish}})


BEDROCK = [
    Shape("Converse", [_converse("end_turn", REASONED, {"text": GOLD})], [RIGHT]),
    Shape("Converse, thoughts alone", [_converse("end_turn", REASONED)], [THOUGHTS]),
    Shape("Converse, limit inside thoughts", [_converse("max_tokens", REASONED)], [CUT_OFF]),
    Shape("Converse, guardrail", [_converse("guardrail_intervened", {"text": GOLD})], [REFUSED]),
    Shape("Converse, call", [_converse("tool_use", USE)], [RIGHT], {"tool_call_read": 1}),
    Shape(
        "batch of Claude", [_bedrock(modelOutput=_anthropic("end_turn", THINKING, TEXT)["result"]["message"])], [RIGHT]
    ),
    Shape("batch of Nova", [_bedrock(modelOutput=_converse("max_tokens", {"text": TOO_SHORT}))], [CUT_OFF]),
    Shape("batch of Llama", [_bedrock(modelOutput={"generation": GOLD, "stop_reason": "stop"})], [RIGHT]),
    Shape("batch of Mistral", [_bedrock(modelOutput={"outputs": [{"text": "a", "stop_reason": "length"}]})], [CUT_OFF]),
    Shape("batch, failed", [_bedrock(error={"errorCode": 400, "errorMessage": "m"})], [FAILED]),
    Shape("batch, item by its prompt", [_bedrock(modelOutput={"generation": GOLD}) | {"recordId": "R1"}], [RIGHT]),
]
SGLANG = [
    Shape("stop", [_sglang(GOLD, {"type": "stop", "matched": 2})], [RIGHT]),
    Shape("limit", [_sglang(TOO_SHORT, {"type": "length", "length": 9})], [CUT_OFF]),
    Shape("abort", [_sglang(GOLD, {"type": "abort", "message": "m"})], [FAILED]),
    Shape("no finish", [_sglang(f"{DRAFT}</think>{GOLD}", None)], [RIGHT]),
]
SAID = [{"role": "user", "content": f"q {GOLD}"}, {"role": "assistant", "content": [THINKING, TEXT]}]
THOUGHT = [{"role": "user", "content": "q"}, {"role": "assistant", "content": [{"type": "thinking", "thinking": GOLD}]}]
IN_A_TEXT = [  # as cells of tables and attributes of traces hold messages
    Shape("JSON", [_own({"messages": json.dumps(SAID)})], [RIGHT]),
    Shape("as Python prints it", [_own({"messages": repr(SAID)}), _own({"output": repr(SAID[-1])})], [RIGHT, RIGHT]),
    Shape("provider's object", [_own({"response": json.dumps(_chat(content=GOLD))})], [RIGHT]),
    Shape("thoughts", [_own({"messages": f(THOUGHT)}) for f in (json.dumps, repr)], [THOUGHTS, THOUGHTS]),
    Shape("column of TRL", [_own({"prompt": repr(SAID[:1]), "completion": repr(SAID[1:])})], [RIGHT]),
    Shape("parts", [_own({"output": [{"role": "assistant", "parts": [REASONING, TEXT]}]})], [RIGHT]),
    Shape(
        "parts of OpenTelemetry",
        [_own({"response": {"role": "assistant", "parts": [{"type": "text", "content": GOLD}]}})],
        [RIGHT],
    ),
    Shape(
        "calls of OpenTelemetry",
        [_own({"output": [{"role": "assistant", "parts": [{"type": "tool_call", "arguments": json.loads(GOLD)}]}]})],
        [RIGHT],
        {"tool_call_read": 1},
    ),
    Shape("an answer with a role", [_own({"response": json.dumps({"role": "user", "said": DRAFT})})], [UNREADABLE]),
]
LISTS: list[Any] = [["text"], {"a": 1}]
OTHER_TYPES = [  # what is no text where a text belongs: read as if it were absent, and no crash
    *(Shape("type of a part", [_batch(_chat(content=[{"type": kind}, TEXT]))], [RIGHT]) for kind in LISTS),
    *(Shape("type of an item", [_responses({"type": kind}, _output_text(GOLD))], [RIGHT]) for kind in ("", "b")),
    Shape("responses of lm-eval", [_own({"doc_id": 1, "resps": 3})], [EMPTY]),
    Shape("null sample of lm-eval", [_own({"doc_id": 1, "resps": [[GOLD, None]]})], [RIGHT, EMPTY]),
    Shape("one response of lm-eval", [_own({"doc_id": 1, "resps": GOLD})], [RIGHT]),
]
GROUPS = {
    "other types": OTHER_TYPES,
    "Bedrock": BEDROCK,
    "SGLang": SGLANG,
    "in a text": IN_A_TEXT,
    "OpenAI": OPENAI,
    "Responses": RESPONSES,
    "Anthropic": ANTHROPIC,
    "Gemini": GEMINI,
    "others": OTHERS,
}


def _score(lines: list[dict[str, Any]], folder: Path, *options: str) -> list[dict[str, Any]]:
    """Return the lines of verdicts; the other item's line keeps a file of failures from being refused."""
    file, pool = folder / "responses.jsonl", folder / "pool.jsonl"
    pool.write_text(TWO_ITEMS, encoding="utf-8")
    other = {"instanceId": OTHER.id, "model": "m", "response": "none"}
    file.write_text("".join(json.dumps(line) + "\n" for line in [*lines, other]), encoding="utf-8")
    result = called("score", pool, file, "--json", *options)
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.mark.parametrize("group", GROUPS)
def test_each_shape_has_its_reason(group: str, tmp_path: Path) -> None:
    lines = []
    for shape in GROUPS[group]:
        printed = _score(shape.lines, tmp_path)
        verdicts = [line for line in printed if line.keys() != {"summary"} and line["instanceId"] == ITEM.id]
        counted = [(line["reason"], line["correct"]) for line in verdicts]
        warnings = Counter(kind for line in verdicts for kind in line["warnings"])
        for line in printed:
            warnings |= Counter(line.get("summary", {}).get("warnings", {}))
        if counted != shape.expected or any(warnings[kind] != number for kind, number in shape.warnings.items()):
            lines.append(f"{shape.name}: {counted}, {dict(warnings)}; not {shape.expected}, {shape.warnings}")
    assert not lines, "\n".join(lines)


def test_a_failed_request_without_the_named_field_is_a_failed_request(tmp_path: Path) -> None:
    lines = [{"instanceId": ITEM.id, "model": "m", "error": "timeout"}, {"instanceId": ITEM.id, "said": GOLD}]
    file = tmp_path / "responses.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    result = called("score", POOL, file, "--json", "--text-field", "said")
    assert [json.loads(line)["reason"] for line in result.stdout.splitlines()] == ["infrastructure_error", ""]


@pytest.mark.parametrize("field", ["filtered_resps", "Response", "said"])
def test_the_field_of_an_answer_is_hinted(field: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the option, the same file is read."""
    file = tmp_path / "responses.jsonl"
    value = [GOLD] if field == "filtered_resps" else GOLD
    file.write_text(json.dumps({"id": ITEM.id, "model": "m", "prompt": PROMPT, field: value}), encoding="utf-8")
    assert main(["score", str(POOL), str(file), "--json"]) == 2
    option = f"--text-field {field}"
    assert capsys.readouterr().err.rstrip().endswith(option)
    assert main(["score", str(POOL), str(file), "--json", *option.split()]) == 0
    assert json.loads(capsys.readouterr().out)["correct"] is True


def test_a_field_that_lines_before_do_not_need_is_not_hinted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An option is for all lines: with `--text-field note` the good line would be refused."""
    lines = {"id": ITEM.id, "model": "m", "response": GOLD}, {"id": OTHER.id, "note": "later"}
    file = jsonl(tmp_path / "responses.jsonl", *lines)
    assert main(["score", str(POOL), str(file)]) == 2
    assert capsys.readouterr().err.rstrip().endswith("responses.jsonl --on-error skip")
    assert main(["score", str(POOL), str(file), "--json", "--on-error", "skip"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[0])["correct"] is True


@pytest.mark.parametrize("place", ["help", "docs/predictions.md"])
def test_help_and_page_name_options_reasons_and_formats(place: str) -> None:
    shown = called("score", "--help").stdout if place == "help" else (CHECKOUT / place).read_text()
    options = ("--thoughts", "--extractor", "--model", "--on-error", "--duplicates", "lenient", "opened", "keep")
    services = ("OpenAI", "Anthropic", "Gemini", "Vertex", "Bedrock", "Cohere", "Ollama", "vLLM", "SGLang", "TGI")
    tools = ("llama.cpp", "transformers", "lm-eval", "Inspect", "HELM", "Every", "verifiers", "TRL")
    files = ("CSV", "TSV", "Parquet")
    assert [word for word in (*options, *REASONS, *services, *tools, *files) if word not in shown] == []


TABLES = {
    "a semicolon for a comma": ("id;model;response\n{item};m;{cell}\n", ""),
    "a byte order mark": ("\ufeffid,model,response\r\n{item},m,{cell}\r\n", ""),
    "an index": (",id,model,response\n0,{item},m,{cell}\n", ""),
    "a column twice": ("id,response,response\n{item},{cell},x\n", "row 0, the header: 'response' is there twice"),
    "a longer row": ("id,response\n{item},{cell},x\n", "row 1: 3 cells, but the header has 2"),
    "a shorter row": (
        "id,response,model\n{item},{cell}\n",
        "row 1: 2 cells, but the header has 3; it begins in line 2",
    ),
    "a cell of many lines": ('note,id,response\n"a\n\nb ""c"",\n",{item},{cell}\n', ""),
    "an empty cell": ("id,response,seconds\n{item},{cell},\n", ""),
    "a cut file": (
        'id,response\n{item},{cell}\n{item},"half',
        "row 2, which begins in line 3: a quote is never closed",
    ),
    "no closing quote": (
        'id,note,response\n{item},"a\nb",{cell}\n{item},"oops,x\n{item},y,{cell}\n{item},"y",{cell}\n',
        "row 2, which begins in line 4: a quote is closed inside a cell",
    ),
    "no closing quote in plain text": (
        'id,model,response\n{item},"m,x\n{item},m,y\n{item},m,z\n',
        "row 1, which begins in line 2: a quote is never closed",
    ),
}


@pytest.mark.parametrize("name", TABLES)
def test_tables_of_spreadsheets(name: str, tmp_path: Path) -> None:
    """Read at the first try, or refused with one line."""
    template, problem = TABLES[name]
    cell = '"' + GOLD.replace('"', '""') + '"'
    file = tmp_path / "responses.csv"
    file.write_text(template.format(item=ITEM.id, cell=cell), encoding="utf-8", newline="")
    result = called("score", POOL, file, "--json")
    if problem:
        assert problem in result.stderr
    else:
        assert [json.loads(line)["correct"] for line in result.stdout.splitlines()] == [True]


def test_an_array_with_a_list_for_each_prompt_is_what_a_pipeline_returns(tmp_path: Path) -> None:
    file = tmp_path / "outputs.json"
    asked = {"role": "user", "content": PROMPT}
    outputs = [[{"generated_text": [asked, {"role": "assistant", "content": text}]} for text in (GOLD, "none")]]
    file.write_text(json.dumps([*outputs, [{"generated_text": f"{PROMPT} {GOLD}"}]]), encoding="utf-8")
    result = called("score", POOL, file, "--json")
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(line["instanceId"], line["sample"], line["correct"]) for line in lines] == [
        (ITEM.id, sample, is_right) for sample, is_right in enumerate((True, False, True))
    ]


def test_objects_printed_over_many_lines_are_refused_with_the_way_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "responses.jsonl"
    file.write_text("\n".join(json.dumps(_own({"response": GOLD}), indent=1) for _ in range(2)), encoding="utf-8")
    assert "jq -c" in refused(capsys, "score", POOL, file)


@pytest.mark.parametrize("text", [json.dumps(SAID)[:-20], repr(SAID).replace("}, {", "}\n {")], ids=["cut", "NumPy"])
def test_messages_in_another_form_are_refused(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = jsonl(tmp_path / "in.jsonl", {"id": ITEM.id, "model": "m", "messages": text})
    assert "line 1: its messages are a text that is neither JSON nor a whole" in refused(capsys, "score", POOL, file)


def test_failures_without_a_model_are_explained_where_a_file_has_several(tmp_path: Path) -> None:
    failed = {"custom_id": OTHER.id, "result": {"type": "errored", "error": {"type": "error"}}}
    for models, hinted in ((("a", "b"), True), (("a", "a"), False)):
        answers = [
            {"instanceId": ITEM.id, "model": model, "response": GOLD, "sample": k} for k, model in enumerate(models)
        ]
        said = called("score", POOL, jsonl(tmp_path / "in.jsonl", *answers, failed), "--json").stderr
        assert ("1 failed request names no model" in said) is hinted
