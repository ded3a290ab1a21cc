"""A counted family and the audit of a list, ready for JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from calibrant.bench.logic.family.counted import Counted
from calibrant.dsl.logic.clause import Clause, Model, model_size, model_texts
from calibrant.dsl.logic.files.midas import Dataset
from calibrant.dsl.logic.reference import misfit
from calibrant.dsl.logic.task import Task
from calibrant.solvers.logic.comparison import Comparison
from calibrant.solvers.logic.export import family_record
from calibrant.solvers.logic.next_experiment import NextExperiment


def counted_record(counted: Counted) -> dict[str, Any]:
    """Return a counted family, ready for JSON; numbers of members are texts."""
    record: dict[str, Any] = {
        "data": {
            "prior": counted.prior.name,
            "measurements": counted.data.name,
            **use_record(counted.dataset),
            "stimuli": list(counted.task.setup.stimuli),
            "inhibitors": list(counted.task.setup.inhibitors),
            "readouts": list(counted.task.setup.readouts),
        },
        **family_record(counted.family, counted.ranking.best),
        "notes": list(counted.notes),
        "models_of_class": None if counted.total is None else str(counted.total),
        "members_of_whole_family": str(counted.whole.count),
        "candidates": counted.ranking.num_candidates,
        "next_not_computed": counted.ranking.reason or None,
    }
    if counted.ranking.best is not None:
        record["predictions"] = list(_predictions(counted.ranking.best))
    if counted.members is not None:
        record["listed" if not counted.members.is_drawn else "drawn"] = [
            member_record(model, counted.task) for model in counted.members.models
        ]
    if counted.comparison is not None:
        record["comparison"] = comparison_record(counted.comparison)
    return record


def use_record(dataset: Dataset) -> dict[str, Any]:
    """Return how much of a file is used, ready for JSON."""
    use = dataset.use
    return {
        "experiments": len(dataset.experiments),
        "rows_in_file": use.num_rows,
        "values": dataset.num_values,
        "values_in_file": use.num_values,
        "time": use.time,
        "values_at_other_times": {f"{time:g}": number for time, number in use.other_times},
        "normalise": use.normalisation,
        "ranges": {
            entry.readout: {"measured": list(entry.measured), "normalised": list(entry.normalised)}
            for entry in use.ranges
        },
    }


def _predictions(best: NextExperiment) -> Iterator[dict[str, Any]]:
    predictions = best.predictions
    for number, experiment in enumerate(predictions.experiments):
        yield {
            "stimuli": sorted(experiment.on),
            "inhibited": sorted(experiment.inhibited),
            "shares": [float(share) for share in predictions.shares(number)],
            "outcomes": {answers: str(count) for answers, count in predictions.outcomes[number].items()},
            "squares": str(predictions.sum_of_squared_counts(number)),
            "done": best.is_done[number],
        }


def member_record(model: Model, task: Task) -> dict[str, Any]:
    """Return a model with its misfit and size, ready for JSON."""
    return {"clauses": model_texts(model), "misfit": misfit(model, task), "size": model_size(model)}


def comparison_record(comparison: Comparison) -> dict[str, Any]:
    """Return the audit of a list, ready for JSON; models are numbered from 0 in its order."""
    outside = [
        {"model": entry.number, "rule": entry.rule or "outside the limits", "misfit": entry.misfit, "size": entry.size}
        for entry in (*comparison.outside_class, *comparison.outside_limits)
    ]
    overclaims = [
        {
            "kind": "clause" if isinstance(claim.part, Clause) else "edge",
            "part": str(claim.part),
            "claimed": claim.claimed,
            "members": str(claim.count),
            "witness": model_texts(claim.witness),
        }
        for claim in comparison.overclaims
    ]
    misstatements = [
        {"model": entry.number, "field": entry.field, "stated": entry.stated, "actual": entry.actual}
        for entry in comparison.misstatements
    ]
    clause = comparison.max_difference_clause
    return {
        "listed": comparison.num_listed,
        "distinct": comparison.num_distinct,
        "members": comparison.num_members,
        "share": float(comparison.share),
        "outside": outside,
        "overclaims": overclaims,
        "misstatements": misstatements,
        "unknown_edges": [str(edge) for edge in comparison.unknown_edges],
        "merged_nodes": list(comparison.merged_nodes),
        "max_difference": float(comparison.max_difference),
        "max_difference_clause": None if clause is None else str(clause),
    }
