"""Results in the schema of Every Eval Ever, version 0.3.0: an aggregate file and a file of items for each system.

The schema requires texts as values of every `details`, `metadata` and `additional_details`. It accepts scores outside
their bounds; this writer refuses them. References are empty, because many answers may be right and gold may be private.
Identifiers and timestamps are derived from a submission and its card (the submitter's metadata), never from the clock,
so that a board (the pages of ranked submissions) written twice has the same bytes.
"""

from __future__ import annotations

import datetime
import json
import re
import uuid
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from calibrant.bench.core.registry import benchmark
from calibrant.bench.suites.manifest import Manifest
from calibrant.bench.suites.submissions import BoardCell, BoardRow, Card
from calibrant.bench.version import program_version
from calibrant.dsl.errors import CalibrantError

SCHEMA_VERSION = "0.3.0"
FOLDER = "every_eval_ever"
REQUIRED = {
    "schema_version": str,
    "evaluation_id": str,
    "retrieved_timestamp": str,
    "source_metadata": dict,
    "eval_library": dict,
    "model_info": dict,
    "evaluation_results": list,
}
OPTIONAL = {"evaluation_timestamp": str, "detailed_evaluation_results": dict}


def write_results(row: BoardRow, manifest: Manifest, site: Path) -> None:
    """Write the two files of a system below the folder of a site."""
    card = row.submission.card
    identity = sha256(f"{manifest.slug}\0{row.submission.digest}".encode()).digest()
    result_uuid = str(uuid.UUID(bytes=identity[:16], version=4))
    relative_folder = f"data/{manifest.slug}/{_model_id(card)}"
    folder = site / FOLDER / relative_folder
    folder.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(line) + "\n" for line in _item_lines(row, manifest, result_uuid)]
    text = "".join(lines)
    (folder / f"{result_uuid}_samples.jsonl").write_text(text, encoding="utf-8")
    aggregate = aggregate_of(row, manifest, result_uuid) | {
        "detailed_evaluation_results": {
            "format": "jsonl",
            "file_path": f"{relative_folder}/{result_uuid}_samples.jsonl",
            "hash_algorithm": "sha256",
            "checksum": sha256(text.encode()).hexdigest(),
            "total_rows": len(lines),
        }
    }
    check_aggregate(aggregate)
    (folder / f"{result_uuid}.json").write_text(json.dumps(aggregate, indent=1) + "\n", encoding="utf-8")


def path_part(name: str) -> str:
    """Return a name as a part of a path: 80 characters at most, each a letter, digit, dot, - or _.

    Other characters become -. A name that changes gets a digest of itself appended, so that names stay different.
    """
    plain = re.sub(r"[^A-Za-z0-9._-]", "-", name).strip(".-")[:80] or "system"
    return plain if plain == name else f"{plain}-{sha256(name.encode()).hexdigest()[:8]}"


def aggregate_of(row: BoardRow, manifest: Manifest, result_uuid: str) -> dict[str, Any]:
    """Return the content of the aggregate file, without the reference to the file of items."""
    card = row.submission.card
    stamp = _timestamp(card)
    return {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": _evaluation_id(card, manifest, result_uuid),
        "retrieved_timestamp": stamp,
        "evaluation_timestamp": stamp,
        "source_metadata": {
            "source_type": "evaluation_run",
            "source_organization_name": card.submitter,
            "evaluator_relationship": card.relationship,
        },
        "eval_library": {"name": "calibrant", "version": program_version()},
        "model_info": {
            "name": card.system,
            "id": _model_id(card),
            "developer": card.developer,
            "additional_details": {
                "deployment_type": card.deployment,
                "model_availability": card.availability,
                "version": card.version,
            },
        },
        "evaluation_results": [result for cell in row.cells.values() for result in _results(cell, card, manifest)],
    }


def check_aggregate(aggregate: Mapping[str, Any]) -> None:
    """Raise `CalibrantError` for a missing or unknown field, a detail that is no text, or a score out of bounds."""
    for field, kind in REQUIRED.items():
        if not isinstance(aggregate.get(field), kind):
            raise CalibrantError(f"Every Eval Ever: {field} is missing or of another type")
    if unknown := aggregate.keys() - REQUIRED.keys() - OPTIONAL.keys():
        raise CalibrantError(f"Every Eval Ever: unknown field {min(unknown)}")
    for result in aggregate["evaluation_results"]:
        config, score = result["metric_config"], result["score_details"]["score"]
        if config["score_type"] == "continuous":
            low, high = (float(config[name]) for name in ("min_score", "max_score"))
            if not low <= score <= high:
                raise CalibrantError(f"Every Eval Ever: {result['evaluation_name']}: {score} is out of bounds")
        for detail in result["score_details"].get("details", {}).values():
            if not isinstance(detail, str):
                raise CalibrantError(f"Every Eval Ever: {result['evaluation_name']}: a detail is no text")


def _evaluation_id(card: Card, manifest: Manifest, result_uuid: str) -> str:
    return f"{manifest.slug}/{path_part(card.system)}/{_timestamp(card)}/{result_uuid}"


def _model_id(card: Card) -> str:
    return f"{path_part(card.developer)}/{path_part(card.system)}"


def _timestamp(card: Card) -> str:
    moment = datetime.datetime.combine(card.date, datetime.time(), datetime.UTC)
    return str(int(moment.timestamp()))


def _results(cell: BoardCell, card: Card, manifest: Manifest) -> Iterator[dict[str, Any]]:
    """Yield the metrics of a pool: rate, skill, attribution shares, and the cost, which the schema has no field for."""
    result = cell.result
    # expected rates with the same evidence: of a random answer among those that fit, and of the most probable one
    details = {"chance": cell.chance, "best": cell.best}
    yield _result(
        cell,
        manifest,
        "rate",
        _metric("rate", "accuracy", 0.0, 1.0),
        {
            "score": cell.rate,
            "details": {name: repr(value) for name, value in details.items() if value is not None},
            "uncertainty": {
                "confidence_interval": _interval(cell.low, cell.high, "wilson, or clustered by latent model"),
                "num_samples": len(result.items),
            },
        },
    )
    if cell.skill is not None:
        middle, low, high = cell.skill
        interval = _interval(low, high, "wilson, or clustered by latent model; rescaled")
        yield _result(
            cell,
            manifest,
            "skill",
            _metric("skill", "skill", "-Infinity", "Infinity"),
            {"score": middle, "uncertainty": {"confidence_interval": interval, "num_samples": len(result.items)}},
        )
    for kind, share in cell.kinds.items():
        yield _result(cell, manifest, kind, _metric(kind, "attribution", 0.0, 1.0), {"score": share})
    if card.cost is not None and card.currency == "USD":
        metric = _metric("cost", "cost", 0.0, "Infinity") | {"metric_unit": "usd", "lower_is_better": True}
        yield _result(cell, manifest, "cost", metric, {"score": card.cost, "details": {"source": "self-stated"}})


def _result(
    cell: BoardCell, manifest: Manifest, name: str, metric: dict[str, Any], score: dict[str, Any]
) -> dict[str, Any]:
    return {
        "evaluation_name": f"{manifest.slug} {cell.pool} {name}",
        "source_data": source_of(manifest),
        "metric_config": metric,
        "score_details": score,
        "evaluation_result_id": f"{manifest.slug}/{cell.pool}/{name}",
    }


def _metric(name: str, kind: str, low: float | str, high: float | str) -> dict[str, Any]:
    """Return the description of a metric; infinite bounds are texts because JSON lacks infinities."""
    return {
        "metric_id": name,
        "metric_kind": kind,
        "lower_is_better": False,
        "score_type": "continuous",
        "min_score": low,
        "max_score": high,
    }


def _interval(low: float, high: float, method: str) -> dict[str, Any]:
    return {"lower": low, "upper": high, "confidence_level": 0.95, "method": method}


def source_of(manifest: Manifest) -> dict[str, Any]:
    """Return the source of the items: the suite's name and, if it has one, its address."""
    if not manifest.url:
        return {"dataset_name": manifest.slug, "source_type": "other"}
    return {"dataset_name": manifest.slug, "source_type": "url", "url": [manifest.url]}


def _item_lines(row: BoardRow, manifest: Manifest, result_uuid: str) -> Iterator[dict[str, Any]]:
    card = row.submission.card
    evaluation_id, model_id = _evaluation_id(card, manifest, result_uuid), _model_id(card)
    benchmark_by_pool = {pool.name: pool.benchmark for pool in manifest.pools}
    for cell in row.cells.values():
        for item in cell.result.items:
            is_episode = item.num_steps > 0
            title = benchmark(benchmark_by_pool[cell.pool]).title
            raw: dict[str, str | list[str]] = {"raw": f"{title}, item {item.id}", "reference": []}
            output = (
                {"messages": [{"turn_idx": 0, "role": "assistant", "content": item.answer}]}
                if is_episode
                else {"output": {"raw": [item.answer]}}
            )
            yield {
                "schema_version": SCHEMA_VERSION,
                "evaluation_id": evaluation_id,
                "model_id": model_id,
                "evaluation_name": f"{manifest.slug} {cell.pool} rate",
                "sample_id": item.id,
                "interaction_type": "agentic" if is_episode else "single_turn",
                "input": raw,
                "answer_attribution": [],
                "evaluation": {"score": item.right, "is_correct": item.right == 1.0},
                "sample_hash": sha256(json.dumps(raw, sort_keys=True, separators=(",", ":")).encode()).hexdigest(),
                # kinds[0] is the kind of the first answer, as are `answer` and `reason`
                "metadata": {"verdict": item.kinds[0], "reason": item.reason},
                **output,
            }
