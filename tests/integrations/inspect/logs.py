"""Evaluations by Inspect in this process, with replies that are given, and their logs."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from inspect_ai import Task, eval
from inspect_ai.log import EvalLog, EvalSample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.solver import Solver

Reply = Callable[[list[Any]], ModelOutput]


def evaluated(
    task: Task, folder: Path, *, reply: Reply | None = None, solver: Solver | None = None, epochs: int = 1
) -> EvalLog:
    """Return the finished log of a task, with a model that says what `reply` makes of the messages, or without one."""

    def output(messages: list[Any], tools: Any, choice: Any, config: Any) -> ModelOutput:
        assert reply is not None
        return reply(messages)

    model = get_model("mockllm/model", custom_outputs=output, memoize=False) if reply else "none/none"
    (log,) = eval(task, model=model, solver=solver, epochs=epochs, log_dir=str(folder), display="none")
    return log


def said(text: str) -> ModelOutput:
    """Return a reply in words. With its usage, no tokens are counted for it."""
    return _used(ModelOutput.from_content("mockllm", text))


def called(tool: str, **arguments: Any) -> ModelOutput:
    """Return a reply that calls a tool."""
    return _used(ModelOutput.for_tool_call("mockllm", tool, arguments))


def _used(output: ModelOutput) -> ModelOutput:
    output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    return output


def own_id(sample: Any) -> str:
    """Return the id that a sample's item has in its pool; the sample's own is the public one."""
    return str(sample.metadata["record"]["id"])


def samples(log: EvalLog) -> list[EvalSample]:
    """All samples of a log that succeeded."""
    assert log.status == "success", log.error
    found: list[EvalSample] | None = log.samples
    assert found
    return found


def metrics(log: EvalLog) -> dict[str, dict[str, float]]:
    """Figure -> metric -> value."""
    assert log.results is not None
    return {
        one.name: {name.removeprefix("calibrant/"): metric.value for name, metric in one.metrics.items()}
        for one in log.results.scores
    }


def rate(mean: float, benchmark: str) -> dict[str, Any]:
    """Return the metrics of items that are all right or all wrong; interactive blickets are one cluster."""
    return {"mean": mean, "stderr": pytest.approx(math.nan, nan_ok=True) if benchmark == "blickets" else 0.0}


def figures(sample: EvalSample) -> Mapping[str, Any]:
    """Return the figures of a sample's score."""
    assert sample.scores is not None
    value = sample.scores["verdict"].value
    assert isinstance(value, dict)
    return value


def all_figures(log: EvalLog) -> list[str]:
    """Those of every sample, in texts: NaN is not equal to itself."""
    return [json.dumps(dict(figures(sample))) for sample in samples(log)]
