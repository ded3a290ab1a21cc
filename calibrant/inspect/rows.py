"""Rows of `calibrant run` as solvers, so that they stand in the same logs as models."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from inspect_ai.model import ModelOutput
from inspect_ai.solver import Generate, Solver, TaskState, solver

from calibrant.bench.core.registry import benchmark
from calibrant.bench.protocols.base import Protocol
from calibrant.bench.protocols.registry import make_protocol, protocols_of, with_installed
from calibrant.bench.runs.workers import timed_answer
from calibrant.dsl.episode import verify_transcript
from calibrant.dsl.errors import CalibrantError, short_repr
from calibrant.inspect.episodes import Transcript
from calibrant.inspect.samples import item_of


@solver
def protocol(name: str, **options: Any) -> Solver:
    """Answer by a row of ours; no model is asked: `--model none/none`.

    name: one of `calibrant protocols`; options: its options
    """

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        of = item_of(state.metadata)
        row = _row(of.benchmark.name, name, json.dumps(options, sort_keys=True))
        answer = timed_answer(row, of.benchmark.handout(of.item))
        submitted = of.benchmark.scoring.no_answer(of.item) if answer.result.answer is None else answer.result.answer
        transcript = state.store_as(Transcript)
        if answer.steps is not None:
            transcript.keep(of, verify_transcript(of.benchmark.play.open(of.item), answer.steps))
        transcript.outcome, transcript.seconds = answer.result.outcome, answer.timing.seconds
        text = json.dumps(submitted) if submitted else ""
        state.output = ModelOutput.from_content(f"calibrant/{name}", text)
        state.messages.append(state.output.message)
        return state

    return solve


@lru_cache(maxsize=64)
def _row(of: str, name: str, options: str) -> Protocol:
    """Return the protocol, warmed up; file names are not accepted: logs hold the names of their solvers."""
    methods = with_installed(protocols_of(benchmark(of)), of)
    if name not in methods:
        raise CalibrantError(f"unknown protocol {short_repr(name)}; of {of} there are {', '.join(methods)}")
    row = make_protocol(methods, name, json.loads(options))
    row.require()
    row.warm_up()
    return row
