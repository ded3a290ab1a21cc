"""Help, completion, messages and JSON Schemas: every field is described, every written line is of its schema."""

from __future__ import annotations

import json
import os
import shlex
from functools import cache
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import msgspec
import pytest

from calibrant.audits.replayscm.certificates.verify import CertificateFile
from calibrant.bench.cli import main
from calibrant.bench.commands.protocols import schema as command_schema
from calibrant.bench.core.registry import NAMES, benchmarks, bundled_pool, bundled_sample
from calibrant.bench.help import EXAMPLES, GROUPS, MAX_SHORT_HELP, MIN_GROUPED_OPTIONS, PANELS
from calibrant.bench.protocols import PROTOCOLS, Protocol, describe_protocol, meanings
from calibrant.bench.replayscm.fields import VerdictLine
from calibrant.bench.runs.records import folder_records
from calibrant.bench.schemas import SCHEMAS, line_schema
from tests.bench.commands.lines import COMMANDS
from tests.bench.pools.sample_suites import SAMPLES
from tests.support.commands import called, jsonl, program, refused
from tests.support.shared import shared_file, shared_records


# --- Help, completion and messages: what a first user meets -----------------------------------------------------------
@cache
def long_help(name: str) -> str:
    done = called(*name.split(), "--help")
    assert done.returncode == 0
    return done.stdout


@pytest.mark.parametrize("name", ["", "pool", *COMMANDS])
def test_help_is_short_and_long(name: str) -> None:
    short = called(*name.split(), "-h")
    assert (short.returncode, short.stdout) == (0, long_help(name))
    assert "-h, --help" in short.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_every_help_has_examples_and_they_parse(name: str) -> None:
    start = ["calibrant", *name.split()]
    assert EXAMPLES[name]
    for example in EXAMPLES[name]:
        assert f"    {example}\n" in long_help(name)
        words = shlex.split(example.rpartition("| ")[2])
        assert words[: len(start)] == start
        with COMMANDS[name].make_context(start[-1], words[len(start) :]) as context:
            assert not context.args  # it parsed; a wrong option is an error


def test_there_are_no_examples_of_commands_that_are_not_there() -> None:
    assert COMMANDS.keys() == EXAMPLES.keys()


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("calibrant sco", ["score"]),
        ("calibrant pool con", ["convert"]),
        ("calibrant score --extr", ["--extractor"]),
        ("calibrant score --extractor pub", ["published"]),
    ],
)
def test_a_shell_completes_commands_options_and_choices(words: str, completed: list[str]) -> None:
    asked = {"_CALIBRANT_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    done = program(
        "-c", "import sys; from calibrant.bench.cli import main; sys.exit(main())", env={**os.environ, **asked}
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == completed


def test_the_completion_of_a_shell_can_be_shown() -> None:
    environment = {**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    done = program("-m", "calibrant.bench.cli", "--show-completion", "bash", env=environment)
    assert done.returncode == 0
    assert "_CALIBRANT_COMPLETE=complete_bash" in done.stdout


REAL = [protocol for one in benchmarks() for protocol in one.require(PROTOCOLS)]


@pytest.mark.parametrize("protocol", REAL, ids=lambda protocol: protocol.name)
def test_every_option_of_every_protocol_has_a_meaning(protocol: type[Protocol]) -> None:
    told = describe_protocol(protocol)
    assert told["meanings"].keys() == told["options"].keys()
    assert all(told["meanings"].values())


def test_meanings_are_those_of_the_documentation_with_what_is_inherited() -> None:
    class Base(Protocol, frozen=True):
        """Does something.

        depth: how deep
        """

        depth: int = 1

    class Made(Base, frozen=True):
        """Does it otherwise.

        width: how wide it is, said in
            two lines
        near, far: how far it looks; late: one of two: now; or later
        Not an option: neither is this
        """

        width: int = 2
        near: int = 1
        far: int = 9
        late: bool = False

    far, late = "how far it looks", "one of two: now; or later"
    wide = "how wide it is, said in two lines"
    assert meanings(Made) == {"depth": "how deep", "width": wide, "near": far, "far": far, "late": late}


def test_protocols_say_what_their_options_mean(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["protocols", "exact"]) == 0
    assert "    max_parents=5  how many variables a mechanism may mention\n" in capsys.readouterr().out
    assert main(["protocols", "exact", "--json"]) == 0
    listed = {told["benchmark"]: told for told in json.loads(capsys.readouterr().out)}
    assert listed["ReplaySCM"]["meanings"] == {"max_parents": "how many variables a mechanism may mention"}
    assert listed["Extended blickets"]["options"] == {}


def test_errors_name_what_was_asked_for_and_no_temporary_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pool, gone = bundled_pool("block"), tmp_path / "p.jsonl" / "out.jsonl"
    predictions = tmp_path / "p.jsonl"
    predictions.write_text("{}\n", encoding="utf-8")
    assert refused(capsys, "pool", "convert", pool, gone) == "out.jsonl: cannot be written: Not a directory"
    assert refused(capsys, "score", pool, predictions, "--out", gone) == f"{gone}: Not a directory"


def test_ctrl_c_promises_to_go_on_only_where_that_holds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    pool = str(bundled_pool("block"))
    lines = {
        ("calibrant.bench.runs.audits.audit_items", True): ["audit", pool, "--out", str(tmp_path / "a")],
        ("calibrant.bench.runs.audits.audit_items", False): ["audit", pool],
        ("calibrant.bench.runs.runner.run", True): ["run", "exact", pool, "--out", str(tmp_path / "r")],
        ("calibrant.bench.replayscm.hardening.hardened_pool", True): [
            *("harden", pool, "--out", str(tmp_path / "h.jsonl"))
        ],
        ("calibrant.dsl.replayscm.pools.files.read_pool", False): ["pool", "convert", pool, str(tmp_path / "c.jsonl")],
    }
    for (where, goes_on), line in lines.items():
        with monkeypatch.context() as patched:
            patched.setattr(where, stopped)
            assert main(line) == 130
        said = "calibrant: interrupted" + "; the same command goes on from here" * goes_on
        assert capsys.readouterr().err.strip() == said


def test_the_list_of_commands_is_grouped_and_no_line_of_it_is_cut() -> None:
    """At 80 columns, in groups, every command once."""
    lines = called("--help").stdout.splitlines()
    start = lines.index("Start:")
    assert [line for line in lines[start:] if line.endswith(":")] == [f"{heading}:" for heading in GROUPS]
    rows = [line.split(None, 1) for line in lines[start:] if line.startswith("  ")]
    assert [name for name, _ in rows] == [name for group in GROUPS.values() for name in group]
    assert {name for name, _ in rows} == {name.split()[0] for name in COMMANDS}
    assert [text for _, text in rows] == [text for group in GROUPS.values() for text in group.values()]
    assert all(len(text) <= MAX_SHORT_HELP and text[0].isupper() and not text.endswith(".") for _, text in rows)
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_a_heading_and_longer_lists_show_them(name: str) -> None:
    options = [parameter for parameter in COMMANDS[name].params if parameter.param_type_name == "option"]
    panels = {option.rich_help_panel for option in options}
    assert panels <= set(PANELS)
    text = long_help(name)
    headings = panels if len(options) >= MIN_GROUPED_OPTIONS else {"Options"}
    expected = [f"{heading}:" for heading in (*PANELS, "Options") if heading in headings]
    assert [line for line in text.splitlines() if line in expected] == expected
    for option in options:
        assert option.opts[0] in text


# --- JSON Schemas: every field described, and every line that the commands write is of its schema ---------------------
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
    known |= {"propertyNames"}  # of msgspec 0.23
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
            if not all(_holds(schema.get("propertyNames", {}), key, whole) for key in value):
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
    verdicts = {(line["instanceId"], line["model"]): line for line in _lines(out)}
    assert _all_hold("verdicts", list(verdicts.values()), of)
    for record in folder_records(runs):  # of an answer from a file as of the same answer in a run
        verdict = verdicts[record.instance, record.protocol]
        assert record.protocol == row or verdict == verdict | record.score
        assert record.attribution in (msgspec.UNSET, verdict["attribution"])
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
