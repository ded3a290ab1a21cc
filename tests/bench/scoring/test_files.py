"""Input files: logs of Inspect, and inputs that are too large, too deep or compressed.

The archives are made by hand here; tests/integrations has logs that Inspect wrote.

Each is refused before what it holds is made. On the code before the limits: 4.7 GB for the line of empty lists,
5.1 GB for the log, a MemoryError with its traceback for the line without end.
"""

from __future__ import annotations

import gzip
import io
import json
import random
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.bench.cli import main
from calibrant.bench.core.registry import benchmark, bundled_pools
from calibrant.bench.pools.generated import write_drawn
from calibrant.bench.protocols import protocols_of
from calibrant.bench.runs.records import step_records
from calibrant.bench.runs.workers import timed_answer
from calibrant.bench.scoring import files
from calibrant.bench.scoring import formats as logs
from calibrant.bench.scoring.formats import EvalLog, is_eval_log
from calibrant.dsl.errors import CalibrantError, PoolError
from calibrant.dsl.parse_limits import MAX_JSON_BYTES, MAX_JSON_TOKENS
from tests.support.commands import called, jsonl, refused
from tests.support.effort import examples
from tests.support.processes import MEGABYTE, command_costs, repeated_gzip

# --- The fast reader of JSON lines takes what the plain one takes, and nothing else -----------------------------------
JSON_TEXTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from([":", '":', "\ud800"]),
    lambda value: st.lists(value, max_size=3) | st.dictionaries(st.text(max_size=2), value, max_size=3),
    max_leaves=12,
).map(json.dumps) | st.sampled_from(["1e400", "NaN", "-0", "1" * 30, r'"\u003a"', '"\x01"', "[1,]", ""])


@given(st.lists(st.tuples(st.sampled_from(["a", "b", ":", "\\u0061"]), JSON_TEXTS), max_size=4), st.binary(max_size=2))
@settings(deadline=None, max_examples=examples(300))
def test_the_fast_reader_takes_what_the_plain_one_takes(members: list[tuple[str, str]], more: bytes) -> None:
    raw = b"{" + ", ".join(f'"{key}": {text}' for key, text in members).encode() + b"}" + more
    try:
        plain = files._object(raw, files._scan_unique_keys)
    except PoolError as error:  # a key that occurs twice
        with pytest.raises(PoolError, match=re.escape(str(error))):
            files.json_object(raw)
        assert files._object_by_msgspec(raw) is None
        return
    assert repr(files.json_object(raw)) == repr(plain)


def test_the_fast_reader_takes_verdicts_and_leaves_escaped_colons() -> None:
    assert files._object_by_msgspec(b'{"a": {"b": "x: y"}, "c": [{"b": 1}]}') == {"a": {"b": "x: y"}, "c": [{"b": 1}]}
    assert files._object_by_msgspec(rb'{"a": 1, "a": "\u003a"}') is None


# --- Logs of Inspect as predictions: they score as the same answers in JSON lines do; what cannot be read is one line
POOL = bundled_pools()[0]
REPLAY = benchmark("replayscm")
IDS = [item.id for item in REPLAY.items.read_pool(POOL).items]
HEADER = {
    "eval": {"model": "maker/model-1", "dataset": {"sample_ids": IDS}},
    "plan": {"steps": [{"solver": "generate"}]},
}
TEXTS = ['{"mechanisms": {}}', "no JSON at all", ""]


def _sample(instance: object, epoch: object = 1, text: str = "", **more: Any) -> dict[str, Any]:
    return {"id": instance, "epoch": epoch, "output": {"completion": text}, **more}


def _log(path: Path, samples: list[dict[str, Any]], header: object = HEADER, name: str = "header.json") -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for sample in samples:
            archive.writestr(f"samples/{sample['id']}_epoch_{sample['epoch']}.json", json.dumps(sample))
        archive.writestr(name, header if isinstance(header, str) else json.dumps(header))
    return path


def _lines(path: Path) -> list[dict[str, Any]]:
    return [line for _, line in EvalLog(path).lines()]


def _scored(capsys: pytest.CaptureFixture[str], *arguments: object) -> list[dict[str, Any]]:
    assert main(["score", *map(str, arguments), "--json"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_log_scores_as_the_same_answers_in_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answers = [(instance, epoch, text) for instance in IDS[:4] for epoch, text in enumerate(TEXTS, 1)]
    shuffled = [_sample(instance, epoch, text) for instance, epoch, text in answers]
    random.Random(1).shuffle(shuffled)
    log = _log(tmp_path / "log.eval", shuffled)
    lines = [
        {"instanceId": instance, "model": "maker/model-1", "sample": epoch - 1, "response": text}
        for instance, epoch, text in answers
    ]
    predictions = jsonl(tmp_path / "predictions.jsonl", *lines)
    assert _scored(capsys, POOL, log) == _scored(capsys, POOL, predictions)


def test_a_log_is_read_compressed_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = _log(
        tmp_path / "log.eval", [_sample(instance, text=text) for instance, text in zip(IDS, TEXTS, strict=False)]
    )
    compressed = tmp_path / "log.eval.gz"
    compressed.write_bytes(gzip.compress(log.read_bytes()))
    assert _scored(capsys, POOL, compressed) == _scored(capsys, POOL, log)
    compressed.write_bytes(compressed.read_bytes()[:-20])
    message = refused(capsys, "score", POOL, compressed)
    assert "not whole as a gzip file" in message


def test_samples_in_lines_are_numbered_by_their_epochs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    choice = {"message": {"role": "assistant", "content": TEXTS[0]}, "stop_reason": "stop"}
    output = {"model": "m", "choices": [choice], "completion": TEXTS[0]}
    lines = [{"id": IDS[0], "epoch": epoch, "messages": [], "output": output} for epoch in (2, 1)]
    log = {"eval": {"model": "m"}, "samples": lines}
    for file in (jsonl(tmp_path / "samples.jsonl", *lines), jsonl(tmp_path / "log.json", log)):
        assert [line["sample"] for line in _scored(capsys, POOL, file)] == [1, 0]


@pytest.mark.parametrize(
    ("thinking", "reason"), [({"text": "a"}, "only_thoughts"), ({"text": ""}, "empty"), (None, "empty")]
)
def test_thoughts_of_helm_are_a_text(
    thinking: object, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = {"success": True, "completions": [{"text": "", "thinking": thinking}]}
    line = {"instance": {"id": IDS[0]}, "request": {"model": "m", "prompt": "q"}, "result": result}
    assert [line["reason"] for line in _scored(capsys, POOL, jsonl(tmp_path / "p.jsonl", line))] == [reason]


def test_samples_come_in_the_order_of_the_data_set_and_of_epochs(tmp_path: Path) -> None:
    log = _log(tmp_path / "log.eval", [_sample(instance, epoch) for epoch in (10, 9, 1) for instance in IDS[::-1]])
    assert [(line["instanceId"], line["sample"]) for line in _lines(log)] == [(i, e) for i in IDS for e in (0, 8, 9)]


@pytest.mark.parametrize(
    ("steps", "system"),
    [
        ([{"solver": "generate", "params": {}}], "maker/model-1"),
        ([{"solver": "calibrant/protocol", "params": {"name": "exact"}}], "exact"),
        (
            [{"solver": "s"}, {"solver": "calibrant/protocol", "params": {"name": "a", "z": 1, "k": True}}],
            "a k=True z=1",
        ),
        (None, "maker/model-1"),
    ],
)
def test_who_answered(tmp_path: Path, steps: object, system: str) -> None:
    log = _log(tmp_path / "log.eval", [_sample(IDS[0])], {**HEADER, "plan": {"steps": steps}})
    assert [line["model"] for line in _lines(log)] == [system]


def test_a_log_that_was_not_finished_has_its_samples(tmp_path: Path) -> None:
    log = _log(tmp_path / "log.eval", [_sample(IDS[0], text="a")], name="_journal/start.json")
    assert [line["response"] for line in _lines(log)] == ["a"]


def test_samples_that_failed_are_left_out_and_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    samples = [_sample(IDS[0]), _sample(IDS[1], error={"message": "no connection"}), _sample(IDS[2])]
    log = _log(tmp_path / "log.eval", samples)
    assert main(["score", str(POOL), str(log), "--json"]) == 0
    printed = capsys.readouterr()
    lines = [json.loads(line) for line in printed.out.splitlines()]
    assert [line["reason"] for line in lines] == ["empty", "infrastructure_error", "empty"]
    assert [line["sample"] for line in lines] == [0, None, 0]
    assert "1 response is left out of all rates" in printed.err
    assert ": infrastructure_error 1; 2 responses in the rates" in printed.err


@pytest.mark.parametrize("instance", [None, True, 1.5, ["a"], {"id": "a"}], ids=str)
def test_a_sample_without_an_id_is_refused(instance: object, tmp_path: Path) -> None:
    """Such an id was read as the text 'None' or 'True': an answer to an instance that no pool has."""
    log = _log(tmp_path / "log.eval", [_sample(IDS[0]), _sample(instance)])
    with pytest.raises(CalibrantError, match=r"^sample .*_epoch_1\.json.*: id is .*a text or a whole number$"):
        _lines(log)


def test_a_sample_may_be_a_number(tmp_path: Path) -> None:
    assert [line["instanceId"] for line in _lines(_log(tmp_path / "log.eval", [_sample(7)]))] == ["7"]


def test_a_numbered_sample_is_named_by_its_metadata(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = _log(tmp_path / "log.eval", [_sample(7, metadata={"item_id": IDS[1]})])
    assert [line["instanceId"] for line in _scored(capsys, POOL, log)] == [IDS[1]]


def test_a_report_finds_the_pools_that_a_log_is_about(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Pools of two benchmarks, and a log of the second of them."""
    other = tmp_path / "pool.jsonl"
    write_drawn(benchmark("causim"), other, ["chain"], 2, 2)
    samples = [_sample(item.id, text="no JSON") for item in benchmark("causim").items.read_pool(other).items]
    log = _log(tmp_path / "log.eval", samples)
    assert main(["report", "--predictions", str(log), "--pools", str(POOL), "--pools", str(other)]) == 0
    printed = capsys.readouterr()
    assert "maker/model-1" in printed.out
    assert f"{log}: 2 predictions; " in printed.err


def test_an_episode_is_replayed_and_a_false_reading_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bench, pool = benchmark("blickets"), tmp_path / "pool.jsonl"
    write_drawn(bench, pool, ["conjunctive"], 2, 1)
    (item,) = bench.items.read_pool(pool).items
    row = protocols_of(bench)["exact"]()
    answer = timed_answer(row, bench.handout(item))
    assert answer.steps is not None
    steps = [
        {"action": s.action, "reading": s.reading, "refused": s.refused, "cost": s.cost}
        for s in step_records(answer.steps)
    ]
    store = {"Transcript:steps": steps, "Transcript:handed_in": True, "Transcript:seconds": 0.25}
    text = '{"rule": "disjunctive", "blickets": []} was said last, and does not count'
    log = _log(tmp_path / "log.eval", [_sample(item.id, text=text, store=store)])
    (line,) = _scored(capsys, pool, log)
    assert answer.result.answer is not None
    read_answer = {**answer.result.answer, "blickets": sorted(answer.result.answer["blickets"])}  # a set, in its order
    assert (line["correct"], line["answer"], line["seconds"]) == (True, read_answer, 0.25)
    read = next(index for index, step in enumerate(steps) if step["reading"])
    steps[read]["reading"] = "ACTIVE" if steps[read]["reading"] == "INACTIVE" else "INACTIVE"
    false = _log(tmp_path / "false.eval", [_sample(item.id, store=store)])
    said = refused(capsys, "score", pool, false)
    assert f": step {read}: reading " in said
    assert said.startswith(f"{false}: sample 'samples/")


@pytest.mark.parametrize("verb", ["table", "report"])
def test_a_log_among_scored_answers_is_told_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    log = _log(tmp_path / "log.eval", [_sample(IDS[0])])
    assert "a log of Inspect; `calibrant score` and" in refused(capsys, verb, log)


@pytest.mark.parametrize(
    ("sample", "said"),
    [
        (_sample(IDS[0], "x"), "sample is 'x', not a number of a sample"),
        (_sample(IDS[0], 0), "sample is -1, not a number of a sample"),
        (_sample("nobody"), "has no instance 'nobody'"),
        (_sample(IDS[0], text=3), "no answer in it"),  # type: ignore[arg-type]
    ],
)
def test_what_a_sample_cannot_mean_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], sample: dict[str, Any], said: str
) -> None:
    assert said in refused(capsys, "score", POOL, _log(tmp_path / "log.eval", [sample]))


def _patched(path: Path, compression: int) -> Path:
    """Return an archive that claims another compression of all its entries."""
    raw = bytearray(path.read_bytes())
    for start, offset in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        place = raw.find(start)
        while place >= 0:
            raw[place + offset : place + offset + 2] = compression.to_bytes(2, "little")
            place = raw.find(start, place + 1)
    path.write_bytes(raw)
    return path


def test_without_zstandard_it_says_what_brings_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    log = _patched(_log(tmp_path / "log.eval", [_sample(IDS[0])]), 93)
    monkeypatch.setattr(logs, "import_module", missing)
    monkeypatch.delattr(zipfile, "ZIP_ZSTANDARD", raising=False)  # which zipfile of 3.14 needs to write
    assert "pip install 'calibrant[inspect]'" in refused(capsys, "score", POOL, log)


def test_what_is_no_log_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = _log(tmp_path / "good.eval", [_sample(IDS[0])])
    raw = good.read_bytes()
    assert is_eval_log(good)
    assert not is_eval_log(POOL)
    assert not is_eval_log(Path("-"))
    broken = {
        "cut off": raw[: len(raw) // 2],
        "no directory": raw[:-30],
        "bytes of a sample": raw[:60] + b"\0\0\0\0" + raw[64:],
    }
    for name, content in broken.items():
        (tmp_path / name).write_bytes(content)
        refused(capsys, "score", POOL, tmp_path / name)
    no_object, too_deep = "not a JSON object", "nested more than 200 deep"
    headers = (("no object", "[]", no_object), ("no JSON", "{", no_object), ("deep", "[" * 100_000, too_deep))
    for name, header, reason in headers:
        said = refused(capsys, "score", POOL, _log(tmp_path / name, [_sample(IDS[0])], header))
        assert f"'header.json': {reason}" in said
    assert "there is no header.json" in refused(
        capsys, "score", POOL, _log(tmp_path / "other", [_sample(IDS[0])], name="a.json")
    )
    assert "no predictions in it" in refused(capsys, "score", POOL, _log(tmp_path / "empty", []))
    assert "'header.json'" in refused(capsys, "score", POOL, _patched(_log(tmp_path / "odd", [_sample(IDS[0])]), 97))


def test_an_entry_that_grows_without_end_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "MAX_JSON_BYTES", 1 << 16)
    log = _log(tmp_path / "log.eval", [_sample(IDS[0], text=" " * (1 << 20))])
    assert log.stat().st_size < 1 << 14
    assert "larger than 65536 bytes" in refused(capsys, "score", POOL, log)


def test_any_damage_is_one_line_or_a_verdict(tmp_path: Path) -> None:
    raw = _log(tmp_path / "log.eval", [_sample(IDS[0], text='{"mechanisms": {}}')]).read_bytes()
    chance, path = random.Random(4), tmp_path / "damaged.eval"
    for _ in range(600):
        damaged = bytearray(raw)
        for _ in range(chance.choice((1, 1, 2, 8))):
            damaged[chance.randrange(4, len(raw))] = chance.randrange(256)
        path.write_bytes(damaged)
        said = ""
        try:
            _lines(path)
        except CalibrantError as error:
            said = str(error)
        assert said.isprintable()


def test_objects_around_answers_are_refused_with_the_query_for_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, answer = tmp_path / "answers.json", {"id": IDS[0], "response": "{}"}
    by_item = "to_entries[] | {id: .key, response: .value}"
    for document, query in (
        ({"results": [answer], "total": 1}, '."results"[]'),
        ({IDS[0]: "{}"}, by_item),
        ({IDS[0]: {"text": "{}"}}, by_item),
    ):
        file.write_text(json.dumps(document), "utf-8")
        said = refused(capsys, "score", POOL, file)
        assert f"one object around many answers; give each as a line: jq -c '{query}' FILE" in said
    file.write_text(json.dumps({"messages": [{"role": "user", "content": "q"}], "choices": [{}]}), "utf-8")
    prompted = "it names no item, and holds no prompt of the pools; its keys are messages, choices"
    assert prompted in refused(capsys, "score", POOL, file)
    file.write_text(json.dumps({"version": 2, "status": "success", "eval": {}, "plan": {}}), "utf-8")
    assert "a log of Inspect without samples, as of its header alone" in refused(capsys, "score", POOL, file)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{'id': 'I0'}", ": expecting property name enclosed in double quotes at character 2"),
        ('{"id": "I0"}{"id": "I1"}', " alone: text behind it from character 13 on; a line holds one object"),
        ('{"id": "I0"},', " alone: text behind it from character 13 on; a line holds one object"),
        ('{"id": undefined}', ": no value at character 8"),
        ('{"id": "a\tb"}', ": invalid control character at character 10"),
        ("null", ""),
    ],
)
def test_lines_that_are_no_json_state_the_first_fault(
    line: str, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "answers.jsonl"
    file.write_text(f"{json.dumps({'id': IDS[0], 'response': '{}'})}\n{line}\n", "utf-8")
    said = refused(capsys, "score", POOL, file)
    assert f"answers.jsonl: line 2: not a JSON object in UTF-8{reason}; the line before it is good" in said


@pytest.mark.parametrize("is_piped", [False, True])
@pytest.mark.parametrize("head", ["{bad", '{"id": "a\nb"}', "[1]", "{bad\noops"])
def test_broken_lines_at_the_head_cost_those_alone(
    head: str, is_piped: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Standard input cannot be read again once its head has been taken for that of a document."""
    content = "".join(f"{line}\n" for line in (head, *(json.dumps({"id": name, "response": ""}) for name in IDS[:2])))
    file = tmp_path / "answers.jsonl"
    file.write_text(content, "utf-8")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content.encode())))
    *verdicts, last = _scored(capsys, POOL, "-" if is_piped else file, "--on-error", "skip")
    assert [line["instanceId"] for line in verdicts] == IDS[:2]
    assert [line["line"] for line in last["summary"]["skipped"]] == [1, 2][: head.count("\n") + 1]


@pytest.mark.parametrize("name", ["answers.csv", "answers.tsv"])
@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("head", ["", "sep={}\n"])
def test_tables_by_the_separator_of_their_head(name: str, separator: str, head: str, tmp_path: Path) -> None:
    """As spreadsheets write them, with or without a line that states the separator; samples as of frames with gaps."""
    rows = [["id", "sample", "response"], [IDS[0], "1.0", "none"], [IDS[0], "0", "none"]]
    file = tmp_path / name
    file.write_text(head.format(separator) + "".join(separator.join(row) + "\r\n" for row in rows), "utf-8", newline="")
    result = called("score", POOL, file, "--json")
    assert result.returncode == 0, result.stderr
    assert [json.loads(line)["sample"] for line in result.stdout.splitlines()] == [1, 0]


def test_tables_that_are_refused_state_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "answers.csv"
    for content, problem in (
        (
            b"sep=;\nid;response\nI0;a;b\n",
            "row 1: 3 cells, but the header has 2; it begins in line 3; quote cells that",
        ),
        (b"id,sample,response\nI0,1.5,x\n", "row 1: sample is '1.5', not a number of a sample"),
        (b"PK\x03\x04\x14\x00", "a workbook; save the sheet as CSV in UTF-8"),
    ):
        file.write_bytes(content.replace(b"I0", IDS[0].encode()))
        assert problem in refused(capsys, "score", POOL, file)
    lines = tmp_path / "answers.jsonl"
    lines.write_text('data: {"id": "I0"}\n\ndata: [DONE]\n', "utf-8")
    assert "an event of a stream; collect the response first" in refused(capsys, "score", POOL, lines)


# --- Small files that hold more than memory: one line on standard error, exit code 2, bounded memory and time ---------
INSTANCE = benchmark("replayscm").items.read_pool(POOL).items[0].id
MAX_PEAK = 400  # megabytes; a line of the largest size, undecoded, beside the 150 of the program
MAX_SECONDS = 60.0  # of the processor; 3 to 25
LISTS = b"[]," * (MEGABYTE // 2)
SAID = "(?:longer|larger) than 67108864 bytes|more than (?:[14]000000|100000 blank lines) "  # which of the limits
NESTED = json.dumps({"id": INSTANCE}).encode()[:-1]

Bomb = Callable[[Path], list[object]]


def _line_without_end(folder: Path) -> list[object]:
    file = repeated_gzip(folder / "said.jsonl.gz", NESTED + b', "response": "', b"x" * MEGABYTE, 4096, b'"}\n')
    return ["score", POOL, file]


def _empty_lists_within_the_bytes(folder: Path) -> list[object]:
    file = repeated_gzip(folder / "said.jsonl.gz", NESTED + b', "answer": [', LISTS, 10, b"[]]}\n")
    return ["score", POOL, file]


def _objects_in_a_response(folder: Path) -> list[object]:
    block = b"{{{" * (MEGABYTE // 2)
    return ["score", POOL, repeated_gzip(folder / "said.gz", NESTED + b', "response": "', block, 10, b'"}\n')]


def _table_of_verdicts(folder: Path) -> list[object]:
    return ["table", repeated_gzip(folder / "verdicts.gz", b'{"x": [', LISTS, 10, b"[]]}\n")]


def _large_log(folder: Path, blocks: int) -> list[object]:
    log = folder / "log.eval"
    with zipfile.ZipFile(log, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps({"eval": {"model": "m", "dataset": {"sample_ids": [INSTANCE]}}}))
        with archive.open(f"samples/{INSTANCE}_epoch_1.json", "w", force_zip64=True) as sample:
            sample.write(NESTED + b', "events": [')
            for _ in range(blocks):
                sample.write(LISTS)
            sample.write(b"[]]}")
    return ["score", POOL, log]


def _log_of_lists(folder: Path) -> list[object]:
    return _large_log(folder, 46)


def _log_of_lists_within_the_bytes(folder: Path) -> list[object]:
    return _large_log(folder, 10)


def _native_pool(folder: Path) -> list[object]:
    header = b'{"format": "calibrant-pool", "version": 1, "benchmark": "blickets", "metadata": {"x": ['
    return ["pool", "stats", repeated_gzip(folder / "pool.jsonl", header, LISTS, 10, b"[]]}}\n")]


def _native_pool_of_one_line(folder: Path) -> list[object]:
    header = b'{"format": "calibrant-pool", "version": 1, "benchmark": "blickets", "name": "'
    return ["pool", "stats", repeated_gzip(folder / "pool.jsonl", header, b"x" * MEGABYTE, 200, b'"}\n')]


def _yaml_pool(folder: Path) -> list[object]:
    return ["pool", "stats", repeated_gzip(folder / "pool.yaml", b"problems: [", LISTS, 140, b"[]]\n")]


def _yaml_pool_with_an_anchor(folder: Path) -> list[object]:
    return ["pool", "stats", repeated_gzip(folder / "pool.yaml", b"a: &a 1\nproblems: [", LISTS, 3, b"[]]\n")]


def _blank_lines(folder: Path) -> list[object]:
    return ["score", POOL, repeated_gzip(folder / "said.gz", NESTED + b"}\n", b"\n" * MEGABYTE, 100, b"\n")]


def _native_pool_of_blank_lines(folder: Path) -> list[object]:
    return ["pool", "stats", repeated_gzip(folder / "pool.jsonl", b"", b"\n" * MEGABYTE, 100, b"\n")]


def _yaml_pool_of_blank_lines(folder: Path) -> list[object]:
    return ["pool", "stats", repeated_gzip(folder / "pool.yaml", b"problems:\n", b" \n" * MEGABYTE, 50, b"\n")]


def _records(folder: Path) -> list[object]:
    (folder / "run").mkdir()
    (folder / "run" / "records.jsonl").write_bytes(b'{"pool": "p", "x": [' + LISTS * 10 + b"[]]}\n")
    return ["table", folder / "run"]


BOMBS: list[Bomb] = [
    _line_without_end,
    _empty_lists_within_the_bytes,
    _objects_in_a_response,
    _table_of_verdicts,
    _log_of_lists,
    _log_of_lists_within_the_bytes,
    _native_pool,
    _native_pool_of_one_line,
    _yaml_pool,
    _yaml_pool_with_an_anchor,
    _blank_lines,
    _native_pool_of_blank_lines,
    _yaml_pool_of_blank_lines,
    _records,
]


def _certificate(folder: Path) -> list[object]:
    file = folder / "certificate.json"
    file.write_bytes(b'{"x": [' + LISTS * 10 + b"[]]}")
    return ["verify", file, POOL]


def test_a_bomb_is_one_line(tmp_path: Path) -> None:
    """Of certificates in the table that `verify` prints, where a refusal is no error of the command."""
    folders = [tmp_path / bomb.__name__ for bomb in (*BOMBS, _certificate)]
    for folder in folders:
        folder.mkdir()
    lines = [bomb(folder) for bomb, folder in zip((*BOMBS, _certificate), folders, strict=True)]
    *costs, certificate = command_costs(lines)
    for bomb, cost in zip(BOMBS, costs, strict=True):
        assert cost.code == 2, (bomb, cost)
        assert cost.error.startswith("error  "), (bomb, cost)
        assert cost.error.count("\n") == 1, (bomb, cost)
        assert re.search(SAID, cost.error), (bomb, cost)
    assert (certificate.code, certificate.error) == (1, "")
    for line, cost in zip(lines, (*costs, certificate), strict=True):
        assert cost.peak < MAX_PEAK, (line, cost)
        assert cost.seconds < MAX_SECONDS, (line, cost)


def test_a_long_honest_line_is_scored(tmp_path: Path) -> None:
    """Commas, quotes and brackets of prose are no structure: 17 MB of it stay a response, in a line of 40 MB."""
    words = "a," * 1_000
    text = f'{words}"{words}" [d]. ' * 4_400
    assert text.count(",") // 2 > MAX_JSON_TOKENS  # those between quotes alone
    file = jsonl(tmp_path / "said.jsonl", {"id": INSTANCE, "response": text, "note": "x" * (20 * MEGABYTE)})
    assert MAX_JSON_BYTES // 2 < file.stat().st_size < MAX_JSON_BYTES
    (cost,) = command_costs([["score", POOL, file]])
    assert cost.code == 0, cost


UNREAD = {
    "utf-16.jsonl": ("{}".encode("utf-16"), "text in UTF-16; save it in UTF-8"),
    "utf-16.csv": ("id,response\n".encode("utf-16"), "text in UTF-16; save it in UTF-8"),
    "a.jsonl.zst": (b"\x28\xb5\x2f\xfd\x00", "compressed with Zstandard"),
    "a.jsonl.bz2": (b"BZh91AY", "compressed with bzip2"),
    "a.jsonl.xz": (b"\xfd7zXZ\x00", "compressed with xz"),
    "a.xlsx": (b"PK\x03\x04", "a workbook; save the sheet as CSV in UTF-8"),
    "latin.jsonl": (b'{"id": "caf\xe9"}\n', "byte 11 is 0xe9; save the file in UTF-8"),
}


@pytest.mark.parametrize("name", UNREAD)
def test_a_file_in_another_encoding_is_named(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    raw, problem = UNREAD[name]
    (tmp_path / name).write_bytes(raw)
    assert problem in refused(capsys, "score", POOL, tmp_path / name)


def test_columns_in_capital_letters_have_a_hint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.csv"
    file.write_text(f"ID,Model,Response\n{IDS[0]},m,none\n", encoding="utf-8")
    assert main(["score", str(POOL), str(file)]) == 2
    assert "--id-field ID --model-field Model --text-field Response" in capsys.readouterr().err
    options = ("--id-field", "ID", "--model-field", "Model", "--text-field", "Response")
    assert main(["score", str(POOL), str(file), *options]) == 0


def test_one_of_two_lines_that_breaks_off_costs_that_line_alone(tmp_path: Path) -> None:
    file = tmp_path / "two.json"
    file.write_bytes(b'{"id": "I0"\n{"id": "I1"}\n')
    assert [entry.line for entry in files.PredictionFile(file).entries()] == [None, {"id": "I1"}]
