"""Files of predictions: every format of docs/predictions.md, damaged; each is read or refused in a line.

A file has an answer that is right in every format, then lines are cut, mixed, repeated, encoded otherwise or damaged in
a place. What is read has a verdict, and a reason where it holds no answer; no line is left out in silence: entries are
as many as lines of verdicts, duplicates and skipped ones.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import calibrant
from calibrant.bench.core.registry import bundled_sample
from calibrant.bench.core.responses import REASONS
from calibrant.bench.scoring.answers import FieldNames, LineRules
from calibrant.bench.scoring.predictions import Predictions
from calibrant.bench.scoring.scorer import PoolScorer
from calibrant.datasets import right_answer
from calibrant.dsl.errors import CalibrantError
from tests.fuzz.corruption import CHARACTER_DAMAGE, LINE_DAMAGE, damaged
from tests.oracles.independent import require

BENCHMARKS = ("causim", "logic", "blickets")
MAX_MESSAGE_CHARS = 4_000
JsonLine = dict[str, Any]
ENCODINGS = ("utf-16", "utf-8-sig", "latin-1", "utf-32", "cp1252")


@cache
def _pools() -> dict[str, tuple[PoolScorer, list[tuple[str, str]]]]:
    """Return a scorer of each bundled sample, and its items with a right answer as a text."""
    pools = {}
    for name in BENCHMARKS:
        path = bundled_sample(name)
        items: Any = calibrant.load_pool(path)
        answers = [(item.id, json.dumps(right_answer(item))) for item in list(items)[:4]]
        pools[name] = PoolScorer([path]), [(item_id, text) for item_id, text in answers if text != "null"]
    return pools


@cache
def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="calibrant-fuzz-"))


# --- Each format, with a text of an item ------------------------------------------------------------------------------
def _chat(text: str, stop: str = "stop") -> JsonLine:
    message = {"role": "assistant", "content": text, "reasoning_content": "hm", "tool_calls": None}
    choice = {"index": 0, "message": message, "finish_reason": stop}
    return {"id": f"chatcmpl-{len(text)}", "object": "chat.completion", "model": "m", "choices": [choice]}


def _anthropic(text: str) -> JsonLine:
    content = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": text}]
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": content,
        "stop_reason": "end_turn",
    }


def _gemini(text: str) -> JsonLine:
    parts = [{"text": "hm", "thought": True}, {"text": text}]
    return {"candidates": [{"content": {"parts": parts}, "finishReason": "STOP", "index": 0}], "modelVersion": "m"}


def _responses(text: str) -> JsonLine:
    message = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
    return {
        "id": "resp_1",
        "object": "response",
        "status": "completed",
        "model": "m",
        "output": [{"type": "reasoning"}, message],
    }


def _trace(item: str, text: str) -> JsonLine:
    nodes = [{"message": {"role": "user", "content": "q"}}, {"message": {"role": "assistant", "content": text}}]
    calls = [{"model": "m", "finish_reason": "stop"}]
    return {"traces": [{"task": {"data": {"id": item}}, "nodes": nodes, "calls": calls, "errors": []}]}


def _helm(item: str, text: str) -> JsonLine:
    result = {"success": True, "completions": [{"text": text, "finish_reason": {"reason": "stop"}}]}
    return {"instance": {"id": item}, "request": {"model": "m", "prompt": "q"}, "result": result}


def _inspect(item: str, text: str) -> JsonLine:
    message = {"role": "assistant", "content": text}
    output = {"model": "m", "choices": [{"message": message, "stop_reason": "stop"}], "completion": text}
    return {"id": item, "epoch": 1, "input": "q", "messages": [message], "output": output}


def _batch(item: str, body: JsonLine) -> JsonLine:
    return {"id": "b", "custom_id": item, "response": {"status_code": 200, "body": body}, "error": None}


def _lm_eval(item: str, text: str) -> JsonLine:
    return {"doc_id": 0, "doc": {"id": item}, "resps": [[text]], "filtered_resps": [text], "filter": "none"}


def _every_eval(item: str, text: str) -> JsonLine:
    stated = {"schema_version": "0.2.1", "interaction_type": "single_turn", "sample_id": item}
    return stated | {"output": {"raw": [text]}}


FORMATS: Mapping[str, Callable[[str, str], JsonLine]] = {
    "plain": lambda item, text: {"instanceId": item, "model": "m", "response": text},
    "chat": lambda item, text: {"instanceId": item, **_chat(text)} | {"id": item},
    "batch": lambda item, text: _batch(item, _chat(text)),
    "batch of Responses": lambda item, text: _batch(item, _responses(text)),
    "failed batch": lambda item, text: {"custom_id": item, "response": None, "error": {"code": "batch_expired"}},
    "batch input": lambda item, text: {"custom_id": item, "body": {"model": "m", "messages": []}},
    "Anthropic": lambda item, text: {"item_id": item, "response": _anthropic(text)},
    "Anthropic batch": lambda item, text: {
        "custom_id": item, "result": {"type": "succeeded", "message": _anthropic(text)},
    },
    "Gemini": lambda item, text: {"key": item, "response": _gemini(text)},
    "Responses": lambda item, text: {**_responses(text), "instanceId": item},
    "Bedrock": lambda item, text: {"recordId": item, "modelInput": {}, "modelOutput": _anthropic(text)},
    "Ollama": lambda item, text: {
        "id": item, "model": "m", "message": {"role": "assistant", "content": text}, "done": True,
    },
    "vLLM": lambda item, text: {
        "id": item, "model": "m", "outputs": [{"index": 0, "text": text, "finish_reason": "stop"}],
    },
    "SGLang": lambda item, text: {"id": item, "text": text, "meta_info": {"finish_reason": {"type": "stop"}}},
    "llama.cpp": lambda item, text: {"id": item, "content": text, "stop_type": "eos", "tokens_predicted": 3},
    "TGI": lambda item, text: {"id": item, "generated_text": text, "details": {"finish_reason": "eos_token"}},
    "lm-eval": _lm_eval,
    "Every Eval Ever": _every_eval,
    "verifiers": lambda item, text: {
        "prompt": "q", "completion": [{"role": "assistant", "content": text}], "info": {"id": item},
    },
    "traces": _trace,
    "HELM": _helm,
    "Inspect": _inspect,
}  # fmt: skip
DOCUMENTS = ("lines", "lines", "array", "one object", "CSV", "TSV", "HELM's states", "log of Inspect")


def case(rng: random.Random) -> str:
    """One file; the outcome is its kind, how it was damaged and whether it was read."""
    scorer, answers = _pools()[rng.choice(BENCHMARKS)]
    lines, names = [], []
    for _ in range(rng.randrange(1, 5)):
        item, text = rng.choice(answers)
        names.append(rng.choice(tuple(FORMATS)))
        stated = rng.choice((text, text, f"<think>{text}</think>{text}", f"<think>{text}", "", "none"))
        lines.append(FORMATS[names[-1]](item, stated))
    kind = rng.choice(DOCUMENTS)
    damage = rng.choice(("none", "value", "value", "text", "bytes", "repeated", "cut"))
    if damage == "value":
        lines = [damaged(rng, line) for line in lines]
    elif damage == "repeated":
        lines += [rng.choice(lines)] * rng.randrange(1, 3)
    raw, suffix = _spell(rng, kind, lines)
    raw = _damage_bytes(rng, raw, damage)
    is_compressed = rng.random() < 0.1
    file = _folder() / f"answers{suffix}{'.gz' if is_compressed else ''}"
    file.write_bytes(gzip.compress(raw, 1) if is_compressed else raw)
    outcome = _score(rng, scorer, file)
    if damage == "none" and outcome.startswith("refused") and kind in ("lines", "array"):
        require("nothing was run" in outcome or "second sample" in outcome, f"a whole file is {outcome}: {raw[:600]!r}")
    return f"{kind}: {damage}: {outcome.split(':')[0]}"


def _spell(rng: random.Random, kind: str, lines: list[JsonLine]) -> tuple[bytes, str]:
    """Return the bytes of a file, and the suffix of its name."""
    match kind:
        case "array":
            return json.dumps(lines, indent=rng.choice((None, 1))).encode("utf-8", "replace"), rng.choice(
                (".json", ".jsonl")
            )
        case "one object":
            return json.dumps(lines[0], indent=rng.choice((None, 1))).encode("utf-8", "replace"), ".json"
        case "HELM's states":
            return json.dumps({"request_states": lines}).encode("utf-8", "replace"), ".json"
        case "log of Inspect":
            log = {"version": 2, "eval": {"model": "m"}, "samples": lines}
            return json.dumps(log).encode("utf-8", "replace"), ".json"
        case "CSV" | "TSV":
            return _spell_table(rng, kind, lines)
    return "".join(f"{json.dumps(line)}\n" for line in lines).encode("utf-8", "replace"), ".jsonl"


def _spell_table(rng: random.Random, kind: str, lines: list[JsonLine]) -> tuple[bytes, str]:
    header = ["instanceId", "model", "response", rng.choice(("sample", "epoch", "finish_reason", "error"))]
    buffer = io.StringIO()
    writer = csv.writer(buffer, delimiter="," if kind == "CSV" else "\t")
    writer.writerow(header)
    for line in lines:
        text = line.get("response")
        item = str(line.get("instanceId", line.get("id", line.get("custom_id", ""))))
        writer.writerow([item, "m", text if isinstance(text, str) else json.dumps(line), rng.choice(("", "1", "stop"))])
    return buffer.getvalue().encode("utf-8", "replace"), f".{kind.lower()}"


def _damage_bytes(rng: random.Random, raw: bytes, damage: str) -> bytes:
    match damage:
        case "text":
            text = raw.decode("utf-8", "replace")
            for _ in range(rng.randrange(1, 3)):
                text = rng.choice((*CHARACTER_DAMAGE, *LINE_DAMAGE))(rng, text)
            return text.encode("utf-8", "replace")
        case "bytes" if rng.random() < 0.5:
            return raw.decode("utf-8", "replace").encode(rng.choice(ENCODINGS), "replace")
        case "bytes":
            place = rng.randrange(len(raw) + 1)
            return raw[:place] + rng.choice((b"\xff", b"\xc3", b"\x00", b"\xed\xa0\x80", b"\r")) + raw[place:]
        case "cut":
            return raw[: rng.randrange(len(raw) + 1)]
    return raw


def _score(rng: random.Random, scorer: PoolScorer, file: Path) -> str:
    """Score a file; require a verdict or one line for all that it holds."""
    rules = LineRules(on_error=rng.choice(("stop", "skip")), duplicates=rng.choice(("keep", "drop")))
    predictions = Predictions(file, scorer, fields=FieldNames(rules=rules), with_excluded=True)
    num_verdicts = 0
    try:
        for prediction in predictions:
            line = scorer.score(prediction).line
            num_verdicts += 1
            reason = line["reason"]
            require(not reason or reason in REASONS, f"{reason!r} is no reason")
            require(bool(reason) or line["source"] != "", f"no answer and no reason: {dict(line)!r:.400}")
            require((line["correct"] is None) == (line["sample"] is None), f"excluded and not: {dict(line)!r:.400}")
    except CalibrantError as error:
        require(
            "\n" not in str(error) and len(str(error)) < MAX_MESSAGE_CHARS, f"a message of more than a line: {error}"
        )
        return f"refused: {error}"
    warnings = predictions.counts.warnings
    repeated = [warnings[kind].count for kind in ("duplicate", "filters") if kind in warnings]
    accounted = num_verdicts + len(predictions.skipped) + sum(repeated)
    require(
        accounted >= predictions.recognised.lines, f"{predictions.recognised.lines} lines, {accounted} accounted for"
    )
    return "skipped some" if predictions.skipped else "read"
