"""Files that the real packages write, scored by one command each: a right answer, one without an answer, a failure."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.packages import needs

needs("openai", "anthropic", "inspect_ai", "lm_eval", "pandas", "pyarrow", "botocore", "openai_harmony", "torch")

import botocore.session
import lm_eval
import pandas as pd
import torch
from anthropic.types.messages import MessageBatchIndividualResponse
from botocore.stub import Stubber
from inspect_ai.log import write_eval_log
from inspect_ai.solver import Generate, Solver, TaskState, solver
from lm_eval.tasks import TaskManager
from openai.types.chat import ChatCompletion
from openai.types.responses import Response as OpenAIResponse
from openai_harmony import Conversation, Message, Role
from transformers import TextGenerationPipeline
from transformers.pipelines.text_generation import Chat, ReturnType
from typer.testing import CliRunner

import calibrant.lm_eval
from calibrant import inspect as adapter
from calibrant.bench.core.benchmark import PublicIds
from calibrant.bench.core.registry import benchmark, bundled_sample
from tests.bench.commands.lines import app
from tests.integrations.inspect.logs import evaluated, said
from tests.integrations.lm_eval.test_tasks import Answering

POOL, OF = bundled_sample("causim"), benchmark("causim")
ITEMS: Any = list(calibrant.load_pool(POOL))
GOLD = [json.dumps(OF.training.gold(item)) for item in ITEMS]
RIGHT, FAILED, CUT_OFF = ("", True), ("infrastructure_error", None), ("cut_off", False)


def _text(place: int) -> str:
    return f"<think>It may be {GOLD[1 - place]}.</think>{GOLD[place]}"


def _chat(place: int, stop: str, text: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "finish_reason": stop, "message": message}
    body = {"id": f"chatcmpl-{place}", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    dumped: dict[str, Any] = ChatCompletion.model_validate(body).model_dump(mode="json")
    return dumped


def _batch(place: int, body: Any, status: int = 200) -> dict[str, Any]:
    return {"custom_id": ITEMS[place].id, "response": {"status_code": status, "body": body}, "error": None}


def _write(lines: list[dict[str, Any]], file: Path) -> Path:
    raw = "".join(json.dumps(line) + "\n" for line in lines).encode()
    file.write_bytes(gzip.compress(raw) if file.suffix == ".gz" else raw)
    return file


def _openai_chat(folder: Path) -> tuple[Path, list[Any]]:
    """Write a compressed batch."""
    error = {"error": {"message": "m", "type": "server_error"}}
    lines = [_batch(0, _chat(0, "stop", _text(0))), _batch(1, _chat(1, "length", "<think>It")), _batch(2, error, 500)]
    return _write(lines, folder / "batch.jsonl.gz"), [RIGHT, CUT_OFF, FAILED]


def _openai_responses(folder: Path) -> tuple[Path, list[Any]]:
    def body(place: int, status: str, *output: dict[str, Any], **fields: Any) -> dict[str, Any]:
        base = {"id": f"resp_{place}", "object": "response", "created_at": 1, "model": "m", "status": status}
        base |= {"parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "output": [*output], **fields}
        dumped: dict[str, Any] = OpenAIResponse.model_validate(base).model_dump(mode="json")
        return dumped

    reasoning = {"id": "rs_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": GOLD[1]}]}
    part = {"type": "output_text", "text": GOLD[0], "annotations": []}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
    lines = [
        _batch(0, body(0, "completed", reasoning, message)),
        _batch(1, body(1, "incomplete", reasoning, incomplete_details={"reason": "max_output_tokens"})),
        _batch(2, body(2, "failed", error={"code": "server_error", "message": "m"})),
    ]
    return _write(lines, folder / "responses.jsonl"), [RIGHT, CUT_OFF, FAILED]


def _anthropic(folder: Path) -> tuple[Path, list[Any]]:
    def message(place: int, stop: str, *content: dict[str, Any]) -> dict[str, Any]:
        usage = {"input_tokens": 1, "output_tokens": 1}
        base = {"id": f"msg_{place}", "type": "message", "role": "assistant", "model": "m", "usage": usage}
        return {"type": "succeeded", "message": base | {"content": [*content], "stop_reason": stop}}

    thinking = {"type": "thinking", "thinking": GOLD[1], "signature": "s"}
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "m"}, "request_id": "r"}
    results = [
        message(0, "end_turn", thinking, {"type": "text", "text": GOLD[0]}),
        message(1, "max_tokens", thinking),
        {"type": "errored", "error": error},
    ]
    lines = [
        MessageBatchIndividualResponse.model_validate({"custom_id": item.id, "result": result}).model_dump(mode="json")
        for item, result in zip(ITEMS, results, strict=False)
    ]
    return _write(lines, folder / "batch.jsonl"), [RIGHT, CUT_OFF, FAILED]


def _lm_eval(folder: Path) -> tuple[Path, list[Any]]:
    """Write the samples of a task with two filters."""
    yaml = Path(calibrant.lm_eval.__file__).parent / "causim.yaml"
    filters = "".join(
        f"  - name: {name}\n    filter:\n      - function: take_first\n" for name in ("strict", "flexible")
    )
    (folder / "two.yaml").write_text(f"include: {yaml}\ntask: two_filters\nfilter_list:\n{filters}", encoding="utf-8")
    public = PublicIds.of_pool(POOL, ITEMS)
    answers = {public.public(item.id): "" for item in ITEMS} | {public.public(ITEMS[0].id): _text(0)}
    manager = TaskManager(include_path=str(folder), include_defaults=False, metadata={"pool": str(POOL)})
    results = lm_eval.simple_evaluate(
        model=Answering(answers), tasks=["two_filters"], task_manager=manager, bootstrap_iters=0, log_samples=True
    )
    lines = json.loads(json.dumps(results["samples"]["two_filters"], default=str))
    assert {line["filter"] for line in lines} == {"strict", "flexible"}
    return _write(lines, folder / "samples.jsonl"), [RIGHT, *[("empty", False)] * (len(ITEMS) - 1)]


@solver
def _answering() -> Solver:
    """Answer the first item, break off at the second, fail at the third."""
    public = PublicIds.of_pool(POOL, ITEMS)
    places = {public.public(item.id): index for index, item in enumerate(ITEMS)}

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        place = places[str(state.sample_id)]
        if place == 2:
            raise RuntimeError("the provider failed")
        state.output = said(_text(0) if place == 0 else "<think>It")
        state.output.choices[0].stop_reason = "stop" if place == 0 else "max_tokens"
        return state

    return solve


def _inspect(folder: Path, form: str) -> tuple[Path, list[Any]]:
    task = adapter.causim(str(POOL))
    task.dataset = task.dataset[:3]
    task.fail_on_error = False
    file = folder / f"written.{form}"
    write_eval_log(evaluated(task, folder, solver=_answering()), str(file))
    return file, [RIGHT, CUT_OFF, FAILED]


def _table(folder: Path, form: str) -> tuple[Path, list[Any]]:
    frame = pd.DataFrame(
        {
            "custom_id": [item.id for item in ITEMS[:3]],
            "model_id": ["m"] * 3,
            "response": [_text(0), "<think>It", None],
            "finish_reason": ["stop", "length", None],
            "error": [None, None, "timeout"],
        }
    )
    file = folder / f"frame.{form}"
    if form == "parquet":
        frame.to_parquet(file)
    elif form == "json":
        frame.to_json(file, orient="records")
    else:
        frame.to_csv(file, sep="\t" if form == "tsv" else ",")
    return file, [RIGHT, CUT_OFF, FAILED]


def _bedrock(folder: Path) -> tuple[Path, list[Any]]:
    """Write replies of Converse, which botocore has checked against the service's model."""
    client = botocore.session.Session().create_client(
        "bedrock-runtime", region_name="us-east-1", aws_access_key_id="none", aws_secret_access_key="none"
    )
    thoughts = {"reasoningContent": {"reasoningText": {"text": GOLD[1]}}}
    lines = []
    for place, stop, content in ((0, "end_turn", [thoughts, {"text": GOLD[0]}]), (1, "max_tokens", [thoughts])):
        usage = {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}
        reply = {"output": {"message": {"role": "assistant", "content": content}}, "stopReason": stop, "usage": usage}
        with Stubber(client) as stub:
            stub.add_response("converse", reply | {"metrics": {"latencyMs": 1}})
            response = client.converse(modelId="m", messages=[{"role": "user", "content": [{"text": "q"}]}])
        lines.append({"custom_id": ITEMS[place].id, "model": "m", "response": response})
    return _write(lines, folder / "converse.jsonl"), [RIGHT, CUT_OFF]


def _harmony(folder: Path) -> tuple[Path, list[Any]]:
    """Write conversations, of which the second ends in its analysis."""
    user = Message.from_role_and_content(Role.USER, "q")
    draft, final = (
        Message.from_role_and_content(Role.ASSISTANT, text).with_channel(channel)
        for text, channel in ((GOLD[1], "analysis"), (GOLD[0], "final"))
    )
    talks = Conversation.from_messages([user, draft, final]), Conversation.from_messages([user, draft])
    lines = [
        {"custom_id": item.id, "model": "m", **json.loads(talk.to_json())}
        for item, talk in zip(ITEMS, talks, strict=False)
    ]
    return _write(lines, folder / "conversations.jsonl"), [RIGHT, ("only_thoughts", False)]


def _pipeline(folder: Path, form: str) -> tuple[Path, list[Any]]:
    """Write what the pipeline returns of prompts, or of conversations: all text, or the messages."""

    class Tokenizer:
        response_template = None

        def decode(self, sequence: list[int], **_: Any) -> str:
            return _text(0) if sequence == [0] else "<think>It"

    pipeline: Any = object.__new__(TextGenerationPipeline)
    pipeline.tokenizer = Tokenizer()
    lines = []
    for place in (0, 1):
        prompt: Any = OF.items.prompt(ITEMS[place])
        if form == "chat":
            prompt = Chat([{"role": "user", "content": prompt}])
        outputs = {"generated_sequence": torch.tensor([[[place]]]), "input_ids": None, "prompt_text": prompt}
        lines.append(pipeline.postprocess(outputs, return_type=ReturnType.FULL_TEXT))
    file = folder / "pipeline.json"
    file.write_text(json.dumps(lines), encoding="utf-8")
    return file, [RIGHT, CUT_OFF]


FILES: dict[str, Callable[[Path], tuple[Path, list[Any]]]] = {
    "openai chat": _openai_chat,
    "openai responses": _openai_responses,
    "anthropic batch": _anthropic,
    "bedrock": _bedrock,
    "harmony": _harmony,
    **{f"transformers, {form}": partial(_pipeline, form=form) for form in ("text", "chat")},
    "lm-eval, two filters": _lm_eval,
    **{f"inspect .{form}": partial(_inspect, form=form) for form in ("eval", "json")},
    **{f"pandas .{form}": partial(_table, form=form) for form in ("csv", "tsv", "json", "parquet")},
}


@pytest.mark.filterwarnings("ignore")  # of lm_eval
@pytest.mark.parametrize("name", FILES)
def test_a_file_is_scored_at_the_first_try(name: str, tmp_path: Path) -> None:
    file, expected = FILES[name](tmp_path)
    result = CliRunner().invoke(app, ["score", str(POOL), str(file), "--json"])
    assert result.exception is None, result.exception
    lines = [line for line in map(json.loads, result.stdout.splitlines()) if line.keys() != {"summary"}]
    by_item = {line["instanceId"]: (line["reason"], line["correct"]) for line in lines}
    assert [by_item[item.id] for item in ITEMS if item.id in by_item] == expected
    assert len(lines) == len(expected)
