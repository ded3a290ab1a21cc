"""Prediction files: their lines, digests of prompts, thoughts, and models without answers."""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import calibrant
from calibrant.bench.cli import main
from calibrant.bench.core.attribution import KEY
from calibrant.bench.core.metrics import InvalidHandling, Metric
from calibrant.bench.core.registry import NAMES, benchmark, bundled_pool, bundled_sample
from calibrant.bench.core.responses import Reading, ReadingOptions, Response
from calibrant.bench.scoring.reading import item_rules, read_response
from calibrant.dsl.answer_text import read_answer_text
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.json_objects import without_think_pairs
from calibrant.dsl.records import file_digest
from calibrant.dsl.replayscm.item import Pool, Problem
from calibrant.dsl.replayscm.pools.files import read_pool, write_pool
from tests.support.commands import called, command, jsonl, refused
from tests.support.stub_protocols import small_pool

# --- Predictions as people have them: names of fields, chats, samples, compressed files, several pools ----------------
GOOD, WRONG = {"mechanisms": {"X3": "(and X1 X2)"}}, {"mechanisms": {"X3": "(xor X1 X2)"}}
TEXT = json.dumps(GOOD)
FENCED = f"So:\n```json\n{TEXT}\n```"


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    path = tmp_path / "small.jsonl"
    write_pool(small_pool(["good", "or", "good"]), path)
    return path


def scored(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[list[dict[str, Any]], str]:
    """Return the verdicts and what was said of them."""
    assert main(["score", *map(str, arguments), "--json"]) == 0
    printed = capsys.readouterr()
    return [json.loads(line) for line in printed.out.splitlines()], printed.err


@pytest.mark.parametrize(
    "way",
    [
        *[{name: TEXT} for name in ("response", "completion", "output", "text", "answer", "extractedAnswer")],
        *[{name: GOOD} for name in ("response", "completion", "output", "text", "answer", "extractedAnswer")],
        {"rawResponse": FENCED},
        {"messages": [{"role": "user", "content": "?"}, {"role": "assistant", "content": FENCED}]},
        {"messages": [{"role": "assistant", "content": [{"type": "text", "text": FENCED}]}]},
        {"choices": [{"index": 0, "message": {"role": "assistant", "content": FENCED}}]},
        {"choices": [{"text": FENCED, "finish_reason": "stop"}]},
        {"response": {"status_code": 200, "body": {"choices": [{"message": {"content": FENCED}}]}}},
        {"output": {"model": "m", "choices": [{"message": {"content": FENCED}}], "completion": FENCED}},
        {"output": [{"type": "reasoning"}, {"role": "assistant", "content": [{"type": "output_text", "text": TEXT}]}]},
        {"response": {"role": "assistant", "content": [{"type": "text", "text": FENCED}]}},
        {"extractedAnswer": None, "response": TEXT},
        {"answer": {"text": FENCED}},
        {"text": "the prompt", "extractedAnswer": GOOD},
        {"messages": [{"role": "user", "content": "?"}], "completion": TEXT},
    ],
    ids=str,
)
def test_an_answer_is_found_where_tools_put_it(
    way: dict[str, Any], pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (line,), _ = scored(capsys, pool, jsonl(tmp_path / "p.jsonl", {"instanceId": "I0", **way}))
    assert (line["valid"], line["correct"]) == (True, True)


@pytest.mark.parametrize("name", ["instanceId", "custom_id", "id", "item_id", "task_id", "sample_id"])
def test_an_item_is_found_under_the_names_that_tools_give_it(
    name: str, pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (line,), said = scored(capsys, pool, jsonl(tmp_path / "p.jsonl", {name: "I0", "response": TEXT}))
    assert line["instanceId"] == "I0"
    assert f"item from {name}; model from no field; answer from response (text)" in said


def test_the_id_is_the_one_that_a_pool_knows(pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = {"id": "chatcmpl-1", "task_id": "I2", "response": TEXT}
    (found,), said = scored(capsys, pool, jsonl(tmp_path / "p.jsonl", line))
    assert found["instanceId"] == "I2"
    assert "item from task_id" in said
    stray = jsonl(tmp_path / "stray.jsonl", {"id": "nobody", "task_id": "nothing", "response": TEXT})
    assert "small has no instance 'nobody'" in refused(capsys, "score", pool, stray)


def batch_line(custom_id: str, **body: Any) -> dict[str, Any]:
    """Return a line of an output file of OpenAI's Batch API, as its reference shows it."""
    response = {"status_code": 200, "request_id": "req_1", "body": {"id": "resp_1", "model": "maker-1", **body}}
    return {"id": "batch_req_1", "custom_id": custom_id, "response": response, "error": None}


def test_lines_of_openai_batches_are_read_as_they_are_and_named_by_custom_id(
    pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Other bodies: test_provider_shapes.py."""
    body = {"object": "chat.completion", "choices": [{"index": 0, "message": {"role": "assistant", "content": FENCED}}]}
    (found,), said = scored(capsys, pool, jsonl(tmp_path / "p.jsonl", batch_line("I2", **body)))
    assert (found["instanceId"], found["model"], found["correct"]) == ("I2", "maker-1", True)
    assert "item from custom_id; model from response.body.model; answer from batch output (format)" in said
    file = jsonl(tmp_path / "p.jsonl", batch_line("request-7", **body))
    assert "small has no instance 'request-7'" in refused(capsys, "score", pool, file)


def test_swapped_arguments_are_named(pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = jsonl(tmp_path / "p.jsonl", {"instanceId": "I0", "model": "m", "response": TEXT})
    order = "pools are given first, the predictions last"
    said = refused(capsys, "score", file, pool)
    assert said == (
        f"p.jsonl: no pool: its first line is about an instance, with the fields instanceId, model, response; {order}"
    )
    assert refused(capsys, "score", pool, pool) == f"small.jsonl is a pool, no file of predictions; {order}"
    assert "p.jsonl: no pool" in refused(capsys, "score", pool, file, file)
    assert "p.jsonl: no pool" in refused(capsys, "run", "exact", file, "--out", tmp_path / "run")


def test_named_fields_are_taken_and_dots_lead_into_objects(
    pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = {"custom": {"key": "I0"}, "llm": "m", "data": {"said": FENCED}, "response": "not this", "model": "nor this"}
    names = ["--id-field", "custom.key", "--text-field", "data.said", "--model-field", "llm"]
    file = jsonl(tmp_path / "p.jsonl", line)
    (found,), said = scored(capsys, pool, file, *names)
    assert (found["instanceId"], found["model"], found["correct"]) == ("I0", "m", True)
    assert "item from custom.key; model from llm; answer from data.said (text)" in said
    told = refused(capsys, "score", pool, file, *names[:3], "gone")
    assert "line 1: no answer in the field 'gone'; its keys are custom, llm, data, response, model" in told
    assert "no field 'nope'; its keys are" in refused(capsys, "score", pool, file, "--id-field", "nope")
    assert "no field 'nope'; its keys are" in refused(capsys, "score", pool, file, *names[:2], "--model-field", "nope")


@pytest.mark.parametrize(
    "way",
    [
        {"prediction": TEXT},
        {"response": 4},
        {"response": {"usage": {"tokens": 4}}},
        {"messages": [{"role": "assistant", "content": "?"}, {"role": "user", "content": TEXT}]},
        {"output": [TEXT, 4]},
    ],
    ids=str,
)
def test_a_line_without_an_answer_is_refused_and_never_scored(
    way: dict[str, Any], pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = jsonl(tmp_path / "p.jsonl", {"instanceId": "I0", "response": TEXT}, {"instanceId": "I1", **way})
    told = refused(capsys, "score", pool, file)
    keys = f"instanceId, {next(iter(way))}"
    assert f"line 2: no answer in it; its keys are {keys}; --text-field names the one that holds it" in told


def test_a_chunk_of_a_stream_is_refused(pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = jsonl(tmp_path / "p.jsonl", {"instanceId": "I1", "choices": [{"delta": {}}]})
    assert "line 1: no answer in it, but a chunk of a stream" in refused(capsys, "score", pool, file)


@pytest.mark.parametrize("content", ["", "\n \n", "\ufeff"])
def test_an_empty_file_is_an_error(
    content: str, pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "p.jsonl"
    file.write_text(content, encoding="utf-8")
    assert refused(capsys, "score", pool, file) == f"{file}: no predictions in it"


def test_a_file_of_which_everything_is_passed_over_is_an_error(
    pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = jsonl(tmp_path / "p.jsonl", *[{"instanceId": "I9", "response": TEXT}] * 3)
    told = refused(capsys, "score", pool, file, "--skip-unknown")
    assert told == f"{file}: none of its 3 lines is about an item of these pools"


def test_compressed_files_and_byte_order_marks_are_read(
    pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "\ufeff" + json.dumps({"instanceId": "I0", "response": TEXT}) + "\r\n"
    plain, packed = tmp_path / "p.jsonl", tmp_path / "p.jsonl.gz"
    plain.write_text(text, encoding="utf-8", newline="")
    packed.write_bytes(gzip.compress(text.encode()))
    out = tmp_path / "scores.jsonl.gz"
    for file in (plain, packed):
        found, _ = scored(capsys, pool, file)
        assert [line["correct"] for line in found] == [True]
    with packed.open("rb") as redirected:
        done = command("score", pool, "-", "--json", stdin=redirected)
    assert json.loads(done.stdout)["correct"] is True
    assert done.stderr.startswith("standard input: 1 prediction; item from instanceId")
    out.write_bytes(gzip.compress(done.stdout.encode()))
    assert main(["table", str(out)]) == 0  # what tables read may be compressed too
    capsys.readouterr()
    packed.write_bytes(gzip.compress(text.encode())[:-9])
    assert "not whole as a gzip file" in refused(capsys, "score", pool, packed)


def of_pool(name: str, ids: list[str], path: Path) -> Path:
    problems = small_pool(["good"] * len(ids)).problems
    renamed = (Problem(i, p.task, p.sealed) for i, p in zip(ids, problems, strict=True))
    write_pool(Pool(name, tuple(renamed)), path)
    return path


def test_several_pools_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = of_pool("one", ["A", "B"], tmp_path / "one.jsonl")
    two = of_pool("two", ["C", "B"], tmp_path / "two.jsonl")
    lines = [{"id": i, "model": "m", "response": TEXT} for i in ("A", "C")]
    found, _ = scored(capsys, one, two, jsonl(tmp_path / "p.jsonl", *lines))
    assert [(line["instanceId"], line["pool"], line["poolSize"]) for line in found] == [
        ("A", "one", 2),
        ("C", "two", 2),
    ]
    both = {"id": "B", "model": "m", "response": TEXT}
    told = refused(capsys, "score", one, two, jsonl(tmp_path / "q.jsonl", both))
    assert "line 1: 2 pools have 'B': one, two; a field 'pool' names one; --on-error skip" in told
    for name in ("two", "two.jsonl", file_digest(two)):
        (line,), _ = scored(capsys, one, two, jsonl(tmp_path / "q.jsonl", both | {"pool": name}))
        assert line["pool"] == "two"
    assert "give at least one pool" in refused(capsys, "score", tmp_path / "q.jsonl")


def test_pools_of_one_name_are_told_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = (of_pool("same", [name], tmp_path / f"{name}.jsonl") for name in "AB")
    lines = [{"id": i, "model": "m", "response": TEXT} for i in "AB"]
    out = tmp_path / "scores.jsonl"
    assert main(["score", str(one), str(two), str(jsonl(tmp_path / "p.jsonl", *lines)), "--out", str(out)]) == 0
    labels = [f"same ({file_digest(path)[:8]})" for path in (one, two)]
    printed = capsys.readouterr().out
    assert all(label in printed for label in labels)
    assert main(["report", str(out), "--format", "csv", "--table", "1", "--no-paper"]) == 0
    assert all(label in capsys.readouterr().out for label in labels[:1])
    assert main(["table", str(out), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert sorted(row["pool"] for row in rows) == sorted(labels)
    assert {row["pools"][0]["digest"] for row in rows} == {file_digest(one), file_digest(two)}
    assert main(["table", str(out), "--by", "setting"]) == 0
    assert "2 pools" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("separator", "cell", "seconds"),
    [
        (";", "1,5", 1.5),
        (";", "0,125", 0.125),
        (";", "1500,250", 1500.25),
        (";", "1.5", 1.5),
        (";", "1,250", None),  # 1250 where the comma marks thousands
        (";", "1.250,5", None),
        (",", '"1,5"', None),
    ],
)
def test_seconds_have_a_decimal_comma_beside_semicolons(
    separator: str, cell: str, seconds: float | None, pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = tmp_path / "answers.csv", tmp_path / "out.jsonl"
    rows = ["id", "model", "response", "seconds"], ["I0", "m", '"{}"', cell]
    file.write_text("".join(f"{separator.join(row)}\n" for row in rows), "utf-8")
    assert main(["score", str(pool), str(file), "--out", str(out)]) == (2 if seconds is None else 0)
    if seconds is None:
        advice = "not a duration; write a decimal point, and no mark of thousands"
        assert f"seconds is {cell.strip(chr(34))!r}, {advice}" in capsys.readouterr().err
    else:
        assert json.loads(out.read_text("utf-8"))["seconds"] == seconds


def test_a_table_says_how_to_get_columns_of_the_structure(
    pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = jsonl(tmp_path / "p.jsonl", {"id": "I0", "model": "m", "response": TEXT})
    cases: list[tuple[tuple[str, ...], str, bool]] = [((), "structure", True), ((), "valid,F1", True)]
    for options, columns, is_said in [*cases, (("--structure",), "F1", False), ((), "valid", False)]:
        out = tmp_path / f"{columns}-{len(options)}.jsonl"
        assert main(["score", str(pool), str(file), "--out", str(out), *options]) == 0
        capsys.readouterr()
        assert main(["table", str(out), "--columns", columns]) == 0
        assert ("`calibrant score --structure` counts it" in capsys.readouterr().err) is is_said
    note = "No answer was scored with its structure, as by score --structure."
    for name, table, is_said in [
        *(("structure-0", table, True) for table in ("2", "C.3", "F.11", "F.12")),
        ("structure-0", "1", False),
        ("F1-1", "C.3", False),
    ]:
        assert main(["report", str(tmp_path / f"{name}.jsonl"), "--table", table]) == 0
        assert (note in capsys.readouterr().out) is is_said


def test_columns_of_numbers_that_are_not_read_are_named(
    pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, columns = tmp_path / "answers.csv", {"id": "I0", "model": "m", "response": "{}", "trial": "0", "took": "1,5"}
    for renamed, note in (
        ({}, "; not read: trial, took (columns that are: sample or epoch, seconds)\n"),
        ({"trial": "epoch"}, "; not read: took (columns that are: seconds)\n"),
        ({"trial": "sample", "took": "seconds"}, "response (text)\n"),
    ):
        names = ";".join(renamed.get(name, name) for name in columns)
        file.write_text(f"{names}\n{';'.join(columns.values())}\n", "utf-8")
        assert main(["score", str(pool), str(file)]) == 0
        assert note in capsys.readouterr().err
    line = {"id": "I0", "model": "m", "response": "{}", "runIndex": "first", "temperature": 1, "elapsed_ms": 1.5}
    for extra, note in (
        ({}, "; not read: runIndex, elapsed_ms (columns that are: sample or epoch, seconds)\n"),
        ({"sample": 0}, "; not read: elapsed_ms (columns that are: seconds)\n"),
        ({"sample": 0, "seconds": 1.5}, "response (text)\n"),
        ({"sample": 0, "seconds": 1.5, "error_message": "m"}, "; not read: error_message (columns that are: error)\n"),
        ({"sample": 0, "seconds": 1.5, "error": None, "errors": []}, "response (text)\n"),
        (
            {"sample": 0, "seconds": 1, "finishReason": ""},
            "finishReason (columns that are: finish_reason or stop_reason)\n",
        ),
    ):
        assert main(["score", str(pool), str(jsonl(tmp_path / "p.jsonl", line | extra))]) == 0
        assert note in capsys.readouterr().err
    file.write_text(",id,response\n0,I0,{}\n", "utf-8")  # the index of a frame, which has no name
    assert main(["score", str(pool), str(file)]) == 0
    assert "not read" not in capsys.readouterr().err


def test_seconds_are_kept_and_shown(pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [{"id": f"I{i}", "model": "m", "response": TEXT, "seconds": s} for i, s in enumerate((1, 2.5, 4))]
    out = tmp_path / "scores.jsonl"
    found, _ = scored(capsys, pool, jsonl(tmp_path / "p.jsonl", *lines), "--out", out)
    assert [line["seconds"] for line in found] == [1, 2.5, 4]
    assert main(["table", str(out), "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert (row["seconds_median"], row["seconds_max"]) == (2.5, 4)


def test_of_equal_keys_in_a_text_the_last_counts(
    pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Texts of systems are read as the published scorer reads them; keys of the line itself are refused."""
    text = '{"mechanisms": {"X3": "(xor X1 X2)", "X3": "(and X1 X2)"}}'
    fields = ("response", "extractedAnswer")
    said = jsonl(tmp_path / "said.jsonl", *({"instanceId": "I0", "model": name, name: text} for name in fields))
    assert [line["correct"] for line in scored(capsys, pool, said)[0]] == [True, True]


# --- Lines that carry the digest of the prompt that they answer: written by `prompts`, checked by whatever scores -----
BENCHMARKS = ("replayscm", "blickets", "causalab", "causim", "logic")
TEXT_OF_NONE = "I do not know."


@pytest.fixture(params=BENCHMARKS)
def digest_pool(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "pool.jsonl"
    name = request.param
    shutil.copyfile(bundled_pool("hidden-roots") if name == "replayscm" else bundled_sample(name), path)
    return path


def prompts(digest_pool: Path) -> list[dict[str, str]]:
    out = digest_pool.with_name("prompts.jsonl")
    assert main(["prompts", str(digest_pool), "--out", str(out)]) == 0
    return [json.loads(line) for line in out.read_text("utf-8").splitlines()]


def test_lines_that_repeat_it_are_scored(digest_pool: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [
        {key: line[key] for key in ("instanceId", "promptDigest")} | {"response": TEXT_OF_NONE}
        for line in prompts(digest_pool)
        if line["promptDigest"] == hashlib.sha256(line["prompt"].encode()).hexdigest()
    ]
    assert len(lines) == len(calibrant.load_pool(digest_pool))
    answers = jsonl(digest_pool.with_name("answers.jsonl"), *lines)
    capsys.readouterr()
    assert main(["score", str(digest_pool), str(answers), "--json"]) == 0
    assert capsys.readouterr().out.count("\n") == len(lines)
    verdicts = calibrant.score_many(calibrant.load_pool(digest_pool), answers.read_bytes().splitlines())
    assert len(list(verdicts)) == len(lines)


@pytest.mark.parametrize(
    ("digest_pool", "stated"),
    [*((name, "0" * 64) for name in BENCHMARKS), *(("causim", stated) for stated in ("", 7, {"sha256": "0"}))],
    indirect=["digest_pool"],
    ids=str,
)
def test_a_line_with_another_is_refused_by_every_reader(
    stated: object, digest_pool: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = ({"instanceId": line["instanceId"], "response": TEXT_OF_NONE} for line in prompts(digest_pool)[:2])
    named = calibrant.load_pool(digest_pool)[1].id
    answers = jsonl(digest_pool.with_name("answers.jsonl"), first, second | {"promptDigest": stated})
    packed = digest_pool.with_name("answers.jsonl.gz")
    packed.write_bytes(gzip.compress(answers.read_bytes()))
    capsys.readouterr()
    for line in (
        ["score", digest_pool, answers],
        ["score", digest_pool, packed, "--workers", "2"],
        ["report", "--predictions", answers, "--pool", digest_pool],
    ):
        said = refused(capsys, *line)
        assert f": line 2: promptDigest of '{named}' is " in said
        assert said.count("\n") <= 1
    with pytest.raises(CalibrantError, match="line 2: promptDigest of "):
        list(calibrant.score_many(calibrant.load_pool(digest_pool), answers.read_bytes().splitlines()))


def test_a_trace_is_held_to_it_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Lines with steps are read by another reader than answers are."""
    pool = tmp_path / "pool.jsonl"
    shutil.copyfile(bundled_sample("blickets"), pool)
    line = {"id": calibrant.load_pool(pool)[0].id, "steps": [], "promptDigest": "0" * 64}
    said = refused(capsys, "score", pool, jsonl(tmp_path / "steps.jsonl", line))
    assert "line 1: promptDigest of " in said


# --- An object in a closed <think> block never counts, whichever benchmark reads the reply ----------------------------
ANSWERS = {
    "causim": ({"a": 1}, {"b": 2}),
    "blickets": ({"rule": "conjunctive", "blickets": ["A", "B"]}, {"rule": "disjunctive", "blickets": ["C"]}),
    "causalab": ({"frequency": 7}, {"frequency": 8}),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_what_is_thought_is_no_answer(name: str) -> None:
    bench = benchmark(name)
    item = bench.items.read_pool(bundled_sample(name)).items[0]
    thought, answer = map(json.dumps, ANSWERS[name])
    rules = item_rules(bench, item)

    def read(text: str) -> Reading:
        return read_response(rules, Response(text), ReadingOptions())

    for text in (f"<think>{thought}</think> {answer}", f"{answer} <think>perhaps {thought}</think>"):
        assert rules.read(answer).answer == rules.read(_answer_text(text)).answer
    for text in (f"<think>{answer}</think> that is all", f"<think>{answer}</think><think>{thought}</think>"):
        assert read(text).reason in ("unreadable", "only_thoughts")


def _answer_text(text: str) -> str:
    return read_answer_text(text).text


def test_an_open_block_stays_for_the_published_readers() -> None:
    assert without_think_pairs("a<think>b") == "a<think>b"
    assert without_think_pairs("a<think>b</think>c</think>d<think>e</think>") == "ac</think>d"
    assert without_think_pairs("<think><think>x</think>y") == "y"


def test_kept_thoughts_are_an_answer_of_the_chosen_rule_alone() -> None:
    """The published readers drop closed <think> pairs whatever the policy."""
    for name, answers in ANSWERS.items():
        if name != "replayscm":
            item = benchmark(name).items.read_pool(bundled_sample(name)).items[0]
            right = json.dumps(benchmark(name).training.gold(item))
            for text, expected in (
                (f"<think>{right}</think>", (True, False)),
                (f"{right}<think>{json.dumps(answers[0])}</think>", (False, True)),
            ):
                score = calibrant.score(item, text, thoughts="keep")
                assert (bool(score.correct), score.correct_published) == expected, (name, text)


@pytest.mark.parametrize(
    ("text", "is_unclosed"),
    [("none", True), ("none<|end|>", False), ("none<|end|> \n", False), ("none<|end|>none", True)],
)
def test_text_behind_a_message_of_harmony_is_closed_by_an_end_token(text: str, is_unclosed: bool) -> None:
    read = read_answer_text(f"<|channel|>analysis<|message|>x<|end|>{text}")
    assert (read.text.strip(), read.is_unclosed) == ("none", is_unclosed)


@pytest.mark.parametrize("quote", ['"', "'", "`"])
@pytest.mark.parametrize("colon", [":", ": ", " :", " : "])
def test_a_quoted_value_is_whole_whatever_stands_around_the_colon(colon: str, quote: str) -> None:
    item = benchmark("causim").items.read_pool(bundled_sample("causim")).items[0]
    members = benchmark("causim").training.gold(item)
    assert members is not None
    assert all(isinstance(value, str) for value in members.values())
    text = "\n".join(f"{quote}{key}{quote}{colon}{quote}{value}{quote}" for key, value in members.items())
    assert calibrant.score(item, text).correct_lenient


def test_an_answer_that_only_the_lenient_reader_finds_and_that_cannot_be_submitted_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    item = calibrant.load_pool(bundled_sample("blickets"))[0]
    line = {"instanceId": item.id, "model": "m", "response": "{'rule': 'conjunctive', 'blickets': ['no object']}"}
    (verdict,), _ = scored(capsys, bundled_sample("blickets"), jsonl(tmp_path / "p.jsonl", line))
    assert (verdict["reason"], verdict["correct"], verdict["correctLenient"]) == ("wrong_format", False, False)


def test_prompts_may_ask_for_tags() -> None:
    path = bundled_sample("causim")
    usual, tagged = (
        json.loads(called("prompts", path, "--limit", 1, *words).stdout) for words in ([], ["--system", "think"])
    )
    assert usual["system"] == ""
    assert "<think>" in tagged["system"]
    assert usual["prompt"] == tagged["prompt"]


# --- An episode or item without an answer counts as not right in every rate that is not conditional by name -----------
SAMPLES = {"replayscm": "hidden_order"}
RIGHT = ("accuracy", "fits", "earned", "strict", "valid", "train_exact", "heldout_exact")


def _columns(name: str) -> list[Metric]:
    return [one for one in benchmark(name).metrics.columns if not one.conditional]


def _scores(name: str) -> list[tuple[str, Mapping[str, Any], Mapping[str, Any]]]:
    """Return (setting, score of a right answer, score of none) for the first items of the bundled sample."""
    bench = benchmark(name)
    scored: list[tuple[str, Mapping[str, Any], Mapping[str, Any]]] = []
    for item in bench.items.read_pool(bundled_sample(SAMPLES.get(name, name))).items[:2]:
        gold = bench.training.gold(item)
        assert gold is not None
        pair = [bench.scoring.score(item, answer, ()) for answer in (gold, bench.scoring.no_answer(item))]
        answers = (gold, bench.scoring.no_answer(item))
        for score, answer in zip(pair, answers, strict=True):
            said = bench.attribution(item, answer, (), score)
            if said is not None:
                score[KEY] = said
        scored.append((item.setting, pair[0], pair[1]))
    return scored


@pytest.mark.parametrize("name", NAMES)
def test_what_counts_an_answer_counts_a_missing_one_as_not_right(name: str) -> None:
    """ReplaySCM's published means leave invalid submissions out by definition (`InvalidHandling`)."""
    measures = benchmark(name).metrics
    for setting, right, missing in _scores(name):
        verdicts = [measures.verdict(score, setting, InvalidHandling.PUBLISHED) for score in (right, missing)]
        for column in _columns(name):
            answered, unanswered = (column.value(verdict) for verdict in verdicts)
            assert (unanswered is None) <= (answered is None) or name == "replayscm", column.key
            assert column.key not in RIGHT or not unanswered, column.key
        assert not any(measures.sample(verdicts[1])[1:4])


def test_a_template_s_digest_goes_into_verdicts_and_parts_the_rows(tmp_path: Path) -> None:
    """Answers to prompts of two templates are rows of their own; what is no digest is another tool's field."""
    first, second = "a" * 64, "b" * 64
    for pool in (bundled_pool("hidden-order"), bundled_sample("causim")):
        ids = [json.loads(line)["id"] for line in pool.read_text("utf-8").splitlines()[1:3]]
        predictions, scored = tmp_path / f"{pool.name}.p.jsonl", tmp_path / f"{pool.name}.s.jsonl"
        lines = [
            {"instanceId": name, "model": "m", "response": "{}", "sample": k, "template": template}
            for name in ids
            for k, template in enumerate((first, second, "chatml"))
        ]
        jsonl(predictions, *lines)
        assert called("score", pool, predictions, "--out", scored).returncode == 0
        records = [json.loads(line) for line in scored.read_text("utf-8").splitlines()]
        assert [record.get("template") for record in records] == [first, second, None] * 2
        table = called("table", scored, "--json")
        options = [row["options"] for row in json.loads(table.stdout)["rows"]]
        assert {"template": first[:12]} in options
        assert {"template": second[:12]} in options
        assert {} in options


def test_records_of_another_pool_with_equal_ids_are_said(tmp_path: Path) -> None:
    """Ordered and Hidden-order sample pools share ids; only a record states which of them it answers."""
    hidden, ordered = (bundled_pool("ordered").with_name(f"sample_{n}.jsonl") for n in ("hidden_order", "ordered"))
    item = read_pool(hidden).problems[0].id
    for field in ("pool_digest", "poolDigest"):
        record = {"instance": item, "protocol": "m", "outcome": "found", "answer": {}, field: file_digest(hidden)}
        file = jsonl(tmp_path / f"{field}.jsonl", record)
        said = {pool: called("score", pool, file, "--id-field", "instance", "--json") for pool in (hidden, ordered)}
        assert all(done.returncode == 0 for done in said.values()), said[ordered].stderr
        assert "other_pool 1" not in said[hidden].stderr
        assert (
            f"other_pool 1 (first: line 1, {item}): the line states the digest of another pool" in said[ordered].stderr
        )
