"""JSON Schemas: every field described, and every line that the commands write is of its schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import msgspec
import pytest

from calibrant.audits.replayscm.certificates.verify import CertificateFile
from calibrant.bench.cli import main
from calibrant.bench.commands.schema import schema as command_schema
from calibrant.bench.core.registry import NAMES, bundled_pool, bundled_sample
from calibrant.bench.replayscm.fields import VerdictLine
from calibrant.bench.schemas import SCHEMAS, line_schema
from tests.bench.pools.sample_suites import SAMPLES
from tests.support.commands import jsonl, refused
from tests.support.shared import shared_file, shared_records

POOL = bundled_pool("ordered")


@pytest.mark.parametrize("of", NAMES)
@pytest.mark.parametrize("name", SCHEMAS)
def test_every_record_and_every_field_is_described(name: str, of: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", name, "--benchmark", of]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["$schema"].startswith("https://json-schema.org/")
    assert made["title"]
    for part in made["$defs"].values():
        assert part["description"]
        for field in part.get("properties", {}).values():
            assert len(field["description"]) >= 5
            assert "\n" not in field["description"]


def test_the_command_knows_every_schema() -> None:
    annotated = get_type_hints(command_schema, include_extras=True)["name"]
    assert set(get_args(get_args(annotated)[0])) == set(SCHEMAS)


def test_a_description_is_one_line_and_a_field_without_one_has_none() -> None:
    class Part(msgspec.Struct, rename="camel"):
        """A part.

        Of a whole.
        """

        other_size: Annotated[int, msgspec.Meta(description="in bytes")]
        version: int

    part = line_schema("t", Part)["$defs"]["Part"]
    assert part["description"] == "A part. Of a whole."
    assert part["properties"] == {
        "otherSize": {"type": "integer", "description": "in bytes"},
        "version": {"type": "integer"},
    }


def _holds(schema: dict[str, Any], value: Any, whole: dict[str, Any]) -> bool:
    """Whether a value is of a schema; the keywords that ours use, and no other."""
    known = {"$ref", "anyOf", "type", "properties", "required", "additionalProperties", "items", "enum", "default"}
    known |= {"description", "title", "$schema", "$defs", "discriminator", "prefixItems", "minItems", "maxItems"}
    assert schema.keys() <= known, schema.keys() - known
    if "$ref" in schema:
        return _holds(whole["$defs"][schema["$ref"].rpartition("/")[2]], value, whole)
    if "anyOf" in schema:
        return any(_holds(one, value, whole) for one in schema["anyOf"])
    if "enum" in schema:
        return value in schema["enum"]
    match schema.get("type"):
        case "object":
            if not isinstance(value, dict) or not value.keys() >= set(schema.get("required", ())):
                return False
            properties, rest = schema.get("properties", {}), schema.get("additionalProperties", {})
            if rest is False and value.keys() - properties.keys():
                return False
            rest = {} if isinstance(rest, bool) else rest
            return all(_holds(properties.get(key, rest), one, whole) for key, one in value.items())
        case "array" if "prefixItems" in schema:
            each = schema["prefixItems"]
            return len(value) == len(each) and all(_holds(*pair, whole) for pair in zip(each, value, strict=True))
        case "array":
            return isinstance(value, list) and all(_holds(schema.get("items", {}), one, whole) for one in value)
        case "integer":
            return type(value) is int
        case "number":
            return type(value) in (int, float)
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "null":
            return value is None
    return True


def _all_hold(name: str, lines: list[Any], of: str = "replayscm") -> bool:
    schema = SCHEMAS[name](of)
    assert not _holds(schema, {**lines[-1], "nonsense": 1}, schema)
    return bool(lines) and all(_holds(schema, line, schema) for line in lines)


def _lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_pools_hold(tmp_path: Path) -> None:
    for setting in ("ordered", "block", "hidden-order", "hidden-roots"):
        assert _all_hold("pools", _lines(bundled_pool(setting)))
    official = tmp_path / "official.jsonl"
    assert main(["pool", "convert", str(shared_file("official_sample.runtime.yaml")), str(official)]) == 0
    assert _all_hold("pools", _lines(official))


def test_records_audits_and_certificates_hold(tmp_path: Path) -> None:
    first = tmp_path / "one.jsonl"
    first.write_text("".join(POOL.read_text(encoding="utf-8").splitlines(keepends=True)[:3]), encoding="utf-8")
    assert main(["run", "exact,copy-parent", str(first), "--out", str(tmp_path / "runs"), "--workers", "1"]) == 0
    assert _all_hold("records", _lines(tmp_path / "runs" / "records.jsonl"))
    folder, certificates = tmp_path / "audits", tmp_path / "certificates"
    line = ["audit", str(first), "--out", str(folder), "--certificates", str(certificates), "--workers", "1"]
    assert main(line) == 0
    assert _all_hold("audits", _lines(folder / "audits.jsonl"))
    found = [json.loads(path.read_text(encoding="utf-8")) for path in certificates.glob("*.json")]
    assert len(found) == 2
    assert _all_hold("certificates", found)
    for one in found:
        msgspec.convert(one, CertificateFile, strict=True)


@pytest.mark.parametrize("of", SAMPLES)
def test_every_file_of_the_other_benchmarks_holds(of: str, tmp_path: Path) -> None:
    pool, runs, out = bundled_sample(of), tmp_path / "runs", tmp_path / "scored.jsonl"
    assert _all_hold("pools", _lines(pool), of)
    everything = tmp_path / "everything.jsonl"
    drawn = ["--strata", "all", "--per-stratum", "1", "--seed", "2", "--out", str(everything)]
    assert main(["generate", "--benchmark", of, *drawn]) == 0
    assert _all_hold("pools", _lines(everything), of)
    row = "copy" if of == "causim" else "abstain"
    assert main(["run", f"exact,{row}", str(pool), "--out", str(runs), "--workers", "1", "--limit", "6"]) == 0
    assert _all_hold("records", _lines(runs / "records.jsonl"), of)
    line = ["--id-field", "instance", "--model-field", "protocol", "--out", str(out)]
    assert main(["score", str(pool), str(runs / "records.jsonl"), *line]) == 0
    assert _all_hold("verdicts", _lines(out), of)
    certificates, audits = tmp_path / "certificates", tmp_path / "audits"
    assert main(["audit", str(pool), "--certificates", str(certificates), "--out", str(audits)]) == 0
    assert _all_hold("audits", _lines(audits / "audits.jsonl"), of)
    made = [json.loads(path.read_text(encoding="utf-8")) for path in certificates.glob("*.json")]
    assert _all_hold("certificates", made, of)


def test_a_schema_of_no_benchmark_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert "unknown benchmark 'chess'; known: replayscm" in refused(capsys, "schema", "pools", "--benchmark", "chess")
    assert main(["pool", "schema", "--benchmark", "causalab"]) == 0
    assert "LabRecord" in json.loads(capsys.readouterr().out)["$defs"]


@pytest.mark.parametrize("structure", [[], ["--structure"]])
def test_every_verdict_of_the_official_sample_holds(tmp_path: Path, structure: list[str]) -> None:
    pool, predictions = shared_file("official_sample.runtime.yaml"), shared_file("official_sample_predictions.jsonl")
    out = tmp_path / "scored.jsonl"
    assert main(["score", str(pool), str(predictions), "--out", str(out), *structure]) == 0
    lines = _lines(out)
    assert _all_hold("verdicts", lines)
    for line in lines:
        msgspec.convert(line, VerdictLine, strict=True)


@pytest.mark.parametrize("variant", ["ordered", "hidden_roots"])
def test_verdicts_of_every_kind_of_answer_hold(tmp_path: Path, variant: str) -> None:
    """The conformance answers reach every stage of validity."""
    vectors = list(shared_records("conformance_dev.jsonl", variant=variant))
    asked = [
        {"instanceId": vector["instanceId"], "model": vector["id"], "extractedAnswer": vector["submission"]}
        for vector in vectors
        if isinstance(vector.get("submission"), dict)
    ]
    out = tmp_path / "scored.jsonl"
    pool = shared_file(vectors[0]["poolFile"])
    assert main(["score", str(pool), str(jsonl(tmp_path / "asked.jsonl", *asked)), "--out", str(out)]) == 0
    lines = _lines(out)
    assert len(lines) == len(asked) > 100
    assert _all_hold("verdicts", lines)
