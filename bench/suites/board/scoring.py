"""Scoring of the files of submissions, each a job of its own with a limit of time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from calibrant.bench.runs.executors.opening import as_completed
from calibrant.bench.runs.jobs import Execution, Failure, Jobs, Progress
from calibrant.bench.suites.board.submissions import RefusedSubmission, Submission, refusal_text
from calibrant.bench.suites.opened import OpenSuite, pool_path
from calibrant.bench.suites.rescoring import CellResult, judge_of
from calibrant.dsl.errors import CalibrantError


class ScoredFile(NamedTuple):
    """Result of a file, or why there is none."""

    result: CellResult | None
    reason: str = ""


class _Job(NamedTuple):
    """A file of answers to a pool."""

    pool: str
    file: Path


def score_submissions(
    suite: OpenSuite, submissions: Sequence[Submission], execution: Execution, progress: Progress
) -> tuple[dict[str, dict[str, CellResult]], list[RefusedSubmission]]:
    """Score all files; return results by folder and pool, and the submissions that are refused.

    A submission is refused whole if one of its files cannot be scored. Pools whose gold is damaged are left out.
    """
    by_folder = {submission.folder: submission for submission in submissions}
    sound = {pool.name for pool in suite.sound_pools}
    jobs = {
        (folder, pool): _Job(pool, file)
        for folder, submission in by_folder.items()
        for pool, file in submission.files.items()
        if pool in sound
    }
    results: dict[str, dict[str, CellResult]] = {folder: {} for folder in by_folder}
    reasons: dict[str, dict[str, str]] = {}
    score = partial(_score, suite.folder)
    for number, ((folder, pool), scored) in enumerate(as_completed(score, Jobs(jobs, jobs.__getitem__), execution), 1):
        progress("submissions", number, len(jobs))
        if isinstance(scored, Failure):
            scored = ScoredFile(None, _failure_text(pool, scored, execution))
        if scored.result is None:
            reasons.setdefault(folder, {})[pool] = scored.reason
        else:
            results[folder][pool] = scored.result
    refused = [_refuse(by_folder[folder], texts) for folder, texts in reasons.items()]
    return {folder: cells for folder, cells in results.items() if folder not in reasons}, refused


def _score(suite: Path, job: _Job) -> ScoredFile:
    """Score a file in a worker."""
    try:
        return ScoredFile(judge_of(pool_path(suite, job.pool)).score_file(job.file))
    except (CalibrantError, OSError) as error:
        return ScoredFile(None, refusal_text(error, job.file.parent))


def _failure_text(pool: str, failure: Failure, execution: Execution) -> str:
    if failure.outcome == "out_of_budget":
        return f"{pool}.jsonl: not scored within {execution.wall_budget:g} s"
    return f"{pool}.jsonl: cannot be scored: {failure.error}"


def _refuse(submission: Submission, reasons: Mapping[str, str]) -> RefusedSubmission:
    system = f"{submission.card.system} {submission.card.version}"
    return RefusedSubmission(submission.name, system, reasons[min(reasons)])
