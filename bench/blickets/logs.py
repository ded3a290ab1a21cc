"""The public text game's question runs under `calibrant score`: replayed, graded, and what their readings had decided.

Its answers are not public, only how many of the questions were answered rightly. All of them right is `correct`, and
decided means that the readings left one set of blickets, for its questions ask for no more.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from calibrant.audits.blickets.attribution import attribute_run
from calibrant.bench.core.attribution import KEY, attribution_record
from calibrant.bench.scoring.input.json_lines import json_object, numbered_lines, shown_name
from calibrant.bench.scoring.lines import context_of_line
from calibrant.bench.scoring.scorer import ScoredPrediction
from calibrant.dsl.blickets.score import grade
from calibrant.dsl.blickets.text_game import TextRun, text_run
from calibrant.dsl.episode import Step
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.records import pool_digest


def scored_runs(path: Path) -> Iterator[ScoredPrediction]:
    """Score every trial of a results file; `CalibrantError` names file and line of an invalid one."""
    file, digest, num_trials = shown_name(path), pool_digest(path), 0
    for number, raw in numbered_lines(path):
        try:
            line = json_object(raw)
            if line is None:
                raise CalibrantError("not a JSON object in UTF-8")
            if line.get("metric_type") == "trial":
                num_trials += 1
                yield _score_run(text_run(line), number, path.name, digest)
        except CalibrantError as error:
            raise CalibrantError(f"{file}: line {number}: {error}") from None
    if not num_trials:
        raise CalibrantError(f"{file}: no line with the metric_type trial in it")


def _score_run(run: TextRun, number: int, file: str, digest: str) -> ScoredPrediction:
    """Return the score of a logged run; poolSize is 0, as a log is not a pool."""
    item = run.item(f"line {number}")
    grade_record = grade(item, [_as_played(step) for step in run.steps]).as_json(item.task.objects)
    attributed = attribute_run(run)
    times = {"decided_at": attributed.decided_at, "submitted_at": attributed.submitted_at}
    line = {
        "benchmark": "blickets",
        "instanceId": item.id,
        "model": run.answered_by or None,
        "sample": 0,
        **grade_record,
        "correct": run.right,
        "errors": [],
        "strict": None,
        "closed": "answered",
        "problem": "",
        KEY: attribution_record(attributed.attribution) | times,
        "pool": file,
        "poolDigest": digest,
        "poolSize": 0,
        "setting": item.setting,
        "stratum": item.stratum,
        "seconds": None,
    }
    return ScoredPrediction(context_of_line(line), line)


def _as_played(step: Step[str]) -> Step[str]:
    """Return the step as the episode replays it: an action that the text game refused becomes unreadable."""
    return Step({"unreadable": str(dict(step.action))}, None, step.refused, step.cost) if step.refused else step
