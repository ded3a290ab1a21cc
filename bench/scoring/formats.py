"""Formats of lines that providers and harnesses write; a line has the first format of `LINES` that matches.

A format is recognised by keys of the line, and parsed into responses. Sources: type definitions of inspect_ai, lm_eval,
verifiers and trl; HELM's request states; Every Eval Ever 0.2.1; for providers' objects see bench.scoring.providers.

A log of Inspect is a ZIP archive of JSON files. It is read with the standard library as untrusted input; Inspect is not
imported. Its entries are compressed with Zstandard, which Python has from 3.14 on; before, the extra `inspect` has it.
"""

from __future__ import annotations

import gzip
import math
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

from calibrant.bench.core.responses import FAILED, NOT_RUN, REFUSED, STOP_CLASSES, Response, error_reason
from calibrant.bench.scoring.providers import (
    PROVIDERS,
    Format,
    JsonMapping,
    ParsedLine,
    add_stop,
    as_object,
    as_objects,
    as_text,
    failed_line,
    has_thought_fields,
    last_assistant,
    message_response,
    messages_in_text,
    parse_anthropic,
    provider_responses,
    refuse_chunk,
)
from calibrant.dsl.errors import CalibrantError, MissingExtraError, in_one_line, short_repr
from calibrant.dsl.parse_limits import MAX_JSON_BYTES, load_json, unique_keys
from calibrant.dsl.text import has_unclear_comma, replace_decimal_comma

# --- Predictions in a log of Inspect (`.eval`): its samples as lines, its epochs as several samples of an item --------
_ZIP = b"PK\x03\x04"
GZIP = b"\x1f\x8b"
_ZSTANDARD = 93  # compression method of ZIP
_HEADERS = ("header.json", "_journal/start.json")  # an unfinished log has only the second
_UNREADABLE = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, ValueError, RuntimeError, OverflowError)
_PROTOCOL_SOLVER = "calibrant/protocol"  # solver of Inspect by which this project runs its methods


def uncompress(file: BinaryIO) -> BinaryIO:
    """Return a file with the content of another from its position on, uncompressed if that begins as gzip."""
    source: Any = file if hasattr(file, "peek") else BufferedReader(cast(Any, file))
    return cast(BinaryIO, gzip.GzipFile(fileobj=source) if source.peek(len(GZIP))[: len(GZIP)] == GZIP else source)


def read_beginning(path: Path, num_bytes: int) -> bytes:
    """Return the first bytes of a file, uncompressed; none of standard input or of a damaged compressed file."""
    if not path.is_file():
        return b""
    with path.open("rb") as file, suppress(gzip.BadGzipFile, EOFError, zlib.error):
        return uncompress(file).read(num_bytes)
    return b""


def is_eval_log(path: Path) -> bool:
    """Return whether a file begins as a ZIP archive; False for standard input."""
    return read_beginning(path, len(_ZIP)) == _ZIP


class EvalLog:
    """The samples of a log, sorted by data set and epoch; `CalibrantError` for an unreadable part.

    file: the log, or its uncompressed content
    """

    def __init__(self, file: Path | BinaryIO) -> None:
        self._file = file

    def lines(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield (location in the log, prediction)."""
        try:
            with zipfile.ZipFile(self._file) as archive:
                header = _header(archive)
                system = log_system(header)
                for name in _samples(archive, header):
                    where = f"sample {short_repr(name)}"
                    yield where, sample_line(_sample_object(archive, name), system, where)
        except CalibrantError:
            raise
        except _UNREADABLE as error:
            raise CalibrantError(f"not a whole log of Inspect: {in_one_line(str(error))[:200]}") from None


def _header(archive: zipfile.ZipFile) -> Mapping[str, Any]:
    names = set(archive.namelist())
    for name in _HEADERS:
        if name in names:
            return _sample_object(archive, name)
    raise CalibrantError(f"not a log of Inspect: there is no {_HEADERS[0]} in the archive")


def _sample_object(archive: zipfile.ZipFile, name: str) -> dict[str, Any]:
    """Return the JSON object in an entry of the archive."""
    entry = archive.getinfo(name)
    if entry.compress_type == _ZSTANDARD:
        _with_zstandard()
    try:
        with archive.open(entry) as file:
            raw = file.read(MAX_JSON_BYTES + 1)
    except (NotImplementedError, RuntimeError) as error:  # another compression; encryption
        raise CalibrantError(f"{short_repr(name)}: {in_one_line(str(error))[:200]}") from None
    except Exception as error:  # each decompressor has errors of its own
        raise CalibrantError(f"{short_repr(name)}: damaged: {in_one_line(str(error))[:200]}") from None
    if len(raw) > MAX_JSON_BYTES:
        raise CalibrantError(f"{short_repr(name)}: larger than {MAX_JSON_BYTES} bytes")
    try:
        value = load_json(raw, object_pairs_hook=unique_keys)
    except CalibrantError as error:
        raise CalibrantError(f"{short_repr(name)}: {error}") from None
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise CalibrantError(f"{short_repr(name)}: not a JSON object in UTF-8")
    return value


def _with_zstandard() -> None:
    """Add Zstandard to zipfile, unless it has it; `MissingExtraError` if the package is missing."""
    if hasattr(zipfile, "ZIP_ZSTANDARD"):
        return
    try:
        import_module("zipfile_zstd")
    except ImportError:
        raise MissingExtraError(
            "a log of Inspect, compressed with Zstandard: pip install 'calibrant[inspect]' has what reads it"
        ) from None


def _samples(archive: zipfile.ZipFile, header: Mapping[str, Any]) -> list[str]:
    """Return the names of the entries of samples, by data set and epoch, each once.

    Of entries with equal names zipfile reads the last, as Inspect does.
    """
    ids = _at(header, "eval", "dataset", "sample_ids")
    order = {str(sample_id): index for index, sample_id in enumerate(ids if isinstance(ids, list) else ())}

    def sort_key(name: str) -> tuple[int, str, int, str]:
        sample, _, epoch = name.removeprefix("samples/").removesuffix(".json").rpartition("_epoch_")
        epoch_number = int(epoch) if epoch.isascii() and epoch.isdecimal() and len(epoch) < 10 else 0
        return order.get(sample, len(order)), sample, epoch_number, name

    names = {name for name in archive.namelist() if name.startswith("samples/") and name.endswith(".json")}
    return sorted(names, key=sort_key)


def log_system(header: Mapping[str, Any]) -> str | None:
    """Return the system of a log: the project's method with its options if that was the solver, else the model."""
    steps = _at(header, "plan", "steps")
    for step in steps if isinstance(steps, list) else ():
        if _at(step, "solver") == _PROTOCOL_SOLVER:
            params = _at(step, "params")
            options = dict(params) if isinstance(params, Mapping) else {}
            name = options.pop("name", "")
            return " ".join([str(name), *(f"{key}={value}" for key, value in sorted(options.items()))])
    model = _at(header, "eval", "model")
    return model if isinstance(model, str) else None


def _at(value: Any, *keys: str) -> Any:
    """Return the value under nested keys; None if one is missing."""
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


_SAMPLE_KEYS = ("epoch", "messages", "output", "error", "limit", "input")  # keys by which `LINES` recognises the format


def sample_line(sample: Mapping[str, Any], system: str | None, where: str) -> dict[str, Any]:
    """Return a sample as a line of predictions; `CalibrantError` if its id is neither a text nor an integer.

    The answer of a submitted episode is in its steps, so the messages are left out. Seconds are those that a method of
    this project took, else the sample's working time, which excludes waiting and retries.
    """
    instance = sample.get("id")
    if type(instance) not in (str, int):
        raise CalibrantError(
            f"{where}: id is {short_repr(instance)}; it has to be the item's id, a text or a whole number"
        )
    sample = _with_attachments(sample)
    line: dict[str, Any] = {"instanceId": str(instance), "model": system}
    epoch = sample.get("epoch")
    if epoch is not None:
        line["sample"] = epoch - 1 if type(epoch) is int else epoch
    pool = _at(sample, "metadata", "poolDigest")
    if pool is not None:
        line["pool"] = pool
    if "metadata" in sample:  # names the item of a sample whose id is a number of the data set
        line["metadata"] = sample["metadata"]
    store = _at(sample, "store")
    steps = _at(store, "Transcript:steps") or None
    if steps is not None:
        line["steps"] = steps
    if steps is None or _at(store, "Transcript:handed_in") is not True:
        line |= {key: sample[key] for key in _SAMPLE_KEYS if key in sample}
        output = _at(sample, "output")
        if steps is not None or not isinstance(output, Mapping) or "choices" not in output:
            line["response"] = _at(sample, "output", "completion") or ""
    elif sample.get("error"):
        line["error"] = sample["error"]
    seconds = _at(store, "Transcript:seconds") or sample.get("working_time")
    if isinstance(seconds, int | float) and not isinstance(seconds, bool) and math.isfinite(seconds) and seconds >= 0:
        line["seconds"] = seconds
    return line


_ATTACHMENT = "attachment://"


def _with_attachments(sample: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a sample in which addresses of attachments are replaced by the texts."""
    attachments = sample.get("attachments")
    if not isinstance(attachments, Mapping) or not attachments:
        return sample

    def resolve(value: Any) -> Any:
        if isinstance(value, str) and value.startswith(_ATTACHMENT):
            return attachments.get(value.removeprefix(_ATTACHMENT), value)
        if isinstance(value, dict):
            return {key: resolve(part) for key, part in value.items()}
        return [resolve(part) for part in value] if isinstance(value, list) else value

    return {key: resolve(value) if key in ("output", "messages", "input") else value for key, value in sample.items()}


# --- Lines of harnesses and batches -----------------------------------------------------------------------------------


def _parse_traces(line: JsonMapping) -> ParsedLine:
    traces = as_objects(line.get("traces"))
    if not traces:
        data = as_object(as_object(line.get("task")).get("data"))
        return ParsedLine("verifiers traces", (Response(reason=NOT_RUN),), None, (data,), (data,))
    responses, model = [], None
    for trace in traces:
        nodes = [as_object(node.get("message")) for node in as_objects(trace.get("nodes"))]
        calls, errors = as_objects(trace.get("calls")), trace.get("errors") or line.get("errors") or [None]
        stop = calls[-1].get("finish_reason") if calls else None
        model = (as_text(calls[-1].get("model")) if calls else None) or model
        error = errors[-1] if isinstance(errors, list) else errors
        responses.append(add_stop(last_assistant(nodes), stop, error, is_limited=trace.get("is_truncated") is True))
    data = as_object(as_object(traces[0].get("task")).get("data"))
    users = [node.get("message") for node in as_objects(traces[0].get("nodes"))]
    return ParsedLine("verifiers traces", tuple(responses), model, (data,), (data, {"messages": users}))


def _parse_helm(line: JsonMapping) -> ParsedLine:
    request, instance, result = (as_object(line.get(key)) for key in ("request", "instance", "result"))
    prompts = ({"prompt": request.get("prompt"), "input": instance.get("input")},)
    model = as_text(request.get("model"))
    if line.get("result") is None:
        return ParsedLine("HELM", (Response(reason=NOT_RUN),), model, (instance,), prompts)
    reason = failed_line(result)
    responses = []
    for completion in as_objects(result.get("completions")):
        stop = as_object(completion.get("finish_reason")).get("reason")
        has_thoughts = bool(as_object(completion.get("thinking")).get("text"))
        response = Response(as_text(completion.get("text")), has_thoughts=has_thoughts)
        responses.append(add_stop(response, "stop" if stop == "endoftext" else stop)._replace(reason=reason))
    return ParsedLine("HELM", tuple(responses) or (Response(reason=reason),), model, (instance,), prompts)


def _parse_every_eval(line: JsonMapping) -> ParsedLine:
    output = as_object(line.get("output"))
    raw = output.get("raw")
    texts = map(as_text, [] if raw is None else raw if isinstance(raw, list) else [raw])  # None for a null sample
    has_thoughts = has_thought_fields(output)
    responses = [Response(text, has_thoughts=has_thoughts) for text in texts] or [last_assistant(line.get("messages"))]
    reason = error_reason(line.get("error"))
    failed_responses = tuple(response._replace(reason=reason) if reason else response for response in responses)
    return ParsedLine("Every Eval Ever", failed_responses, as_text(line.get("model_id")))


def _parse_lm_eval(line: JsonMapping) -> ParsedLine:
    entries = line.get("resps") or line.get("filtered_resps")
    entries = entries if isinstance(entries, list) else [entries]
    texts = [text for entry in entries for text in (entry if isinstance(entry, list) else [entry])]
    responses = tuple(map(Response, map(as_text, texts))) or (Response(),)  # a sample that is no text counts as empty
    return ParsedLine("lm-eval samples", responses, None, (), (as_object(line.get("arguments")),))


def parse_inspect(sample: JsonMapping, model: str | None = None) -> ParsedLine:
    """Return the response of a sample of Inspect. model: the model of its log."""
    output = as_object(sample.get("output"))
    choices = as_objects(output.get("choices"))
    response = message_response(as_object(choices[0].get("message"))) if choices else Response()
    completion = output.get("completion")
    if isinstance(completion, str) and completion:
        response = response._replace(text=completion)
    stop = choices[0].get("stop_reason") if choices else None
    is_limited = bool(as_object(sample.get("limit")).get("type"))
    response = add_stop(response, stop, sample.get("error"), is_limited=is_limited)
    if output.get("error") and not response.reason:
        response = response._replace(reason=REFUSED)
    epoch = sample.get("epoch")
    if type(epoch) is int and epoch > 0:
        response = response._replace(sample=epoch - 1)
    return ParsedLine("Inspect", (response,), model or as_text(output.get("model")), (), (sample,))


def _parse_batch_input(line: JsonMapping) -> ParsedLine:
    body = next((as_object(line[key]) for key in ("body", "params", "request") if key in line), {})
    return ParsedLine("batch input", (Response(reason=NOT_RUN),), as_text(body.get("model")))


def _is_batch_input(line: JsonMapping) -> bool:
    has_request = ("custom_id" in line and ("body" in line or "params" in line)) or (
        "key" in line and "request" in line
    )
    return has_request and not {"response", "result", "error"} & line.keys()


_ANTHROPIC_RESULTS: Final = {"canceled": NOT_RUN, "expired": NOT_RUN}


def _result_type(line: JsonMapping) -> Any:
    return as_object(line.get("result")).get("type")


def _parse_anthropic_batch(line: JsonMapping) -> ParsedLine:
    result = as_object(line.get("result"))
    kind = str(_result_type(line))
    if kind == "succeeded":
        return parse_anthropic(as_object(result.get("message")))._replace(format="Anthropic batch")
    reason = _ANTHROPIC_RESULTS.get(kind) or error_reason(result.get("error")) or FAILED
    return ParsedLine("Anthropic batch", (Response(reason=reason),))


def _parse_bedrock_batch(line: JsonMapping) -> ParsedLine:
    """Return the response in `modelOutput`, the body of the model's provider."""
    output, named = as_object(line.get("modelOutput")), {"id": line.get("recordId")}
    parsed = provider_responses(output)
    if parsed is None and output and not line.get("error"):
        raise _unknown_body("modelOutput", output)
    if parsed is None:
        parsed = ParsedLine("", (Response(reason=error_reason(line.get("error")) or NOT_RUN),))
    prompts = (as_object(line["modelInput"]),)
    return parsed._replace(format="Bedrock batch", objects=(named, *parsed.objects), prompts=prompts)


def _unknown_body(name: str, body: JsonMapping) -> CalibrantError:
    return CalibrantError(f"{name} has none of the known forms; its keys are {', '.join(map(str, body))[:80]}")


def _parse_batch_output(line: JsonMapping) -> ParsedLine:
    response = as_object(line.get("response"))
    body = response["body"] if isinstance(response.get("body"), Mapping) else response
    status = line.get("status")
    reason = error_reason(line.get("error")) or error_reason(response.get("error"))
    if isinstance(status, str) or as_object(status).get("code"):  # Vertex: a text; others: a google.rpc.Status
        reason = reason or error_reason(status)
    reason = reason or error_reason(body.get("error")) or failed_line(response)
    parsed = provider_responses(body) if body else None
    if parsed is None and not reason and body:
        raise _unknown_body("response", body)
    if parsed is None:
        parsed = ParsedLine("batch output", (Response(reason=NOT_RUN),), as_text(body.get("model")))
    responses = tuple(part._replace(reason=reason or part.reason) for part in parsed.responses)
    return parsed._replace(format="batch output", responses=responses)


def _is_batch_output(line: JsonMapping) -> bool:
    if line.keys() <= {"custom_id", "key", "model", "status"}:  # a failed request; another field may be an answer
        return bool(line.get("status")) and not {"custom_id", "key"}.isdisjoint(line)
    if "response" not in line or not {"custom_id", "key", "request", "status"} & line.keys():
        return False
    response = line["response"]
    if response is None:
        return True
    if not isinstance(response, Mapping):
        return False
    body = response.get("body", response)
    is_failed = bool(error_reason(line.get("error")) or failed_line(response) or line.get("status"))
    has_body = "body" in response or "status_code" in response
    return is_failed or has_body or (isinstance(body, Mapping) and any(form.matches(body) for form in PROVIDERS))


def _parse_completion(line: JsonMapping) -> ParsedLine:
    completion = line.get("completion")
    messages = messages_in_text(completion) if isinstance(completion, str) else completion
    if messages is None:
        response = Response(as_text(completion))
    else:
        response = last_assistant(messages if isinstance(messages, list) else [messages])
    condition = line.get("stop_condition")
    is_known = isinstance(condition, str) and condition.lower() in STOP_CLASSES
    stop = condition if is_known else line.get("finish_reason", line.get("stop_reason"))
    response = add_stop(response, stop, line.get("error"), is_limited=line.get("is_truncated") is True)
    response = response._replace(has_thoughts=response.has_thoughts or has_thought_fields(line))
    return ParsedLine("completion", (response,))


def _is_completion(line: JsonMapping) -> bool:
    return "prompt" in line and isinstance(line.get("completion"), str | list)


LINES: Final = (
    Format("verifiers traces", lambda line: isinstance(line.get("traces"), list), _parse_traces),
    Format("HELM", lambda line: {"request", "instance", "result"} <= line.keys(), _parse_helm),
    Format("Every Eval Ever", lambda line: {"schema_version", "interaction_type"} <= line.keys(), _parse_every_eval),
    Format(
        "lm-eval samples",
        lambda line: "doc_id" in line and ("resps" in line or "filtered_resps" in line),
        _parse_lm_eval,
    ),
    Format(
        "Inspect",
        lambda line: {"epoch", "messages", "output"} <= line.keys() and "choices" in as_object(line["output"]),
        parse_inspect,
    ),
    Format("batch input", _is_batch_input, _parse_batch_input),
    Format("Anthropic batch", lambda line: isinstance(_result_type(line), str), _parse_anthropic_batch),
    Format("Bedrock batch", lambda line: {"recordId", "modelInput"} <= line.keys(), _parse_bedrock_batch),
    Format("batch output", _is_batch_output, _parse_batch_output),
    Format("completion", _is_completion, _parse_completion),
    *PROVIDERS,
)
_LINE_KEYS: Final = frozenset(
    {
        *("traces", "request", "schema_version", "doc_id", "epoch", "custom_id", "key", "result", "response", "prompt"),
        *("choices", "message", "candidates", "promptFeedback", "prompt_feedback", "output", "outputs", "done"),
        *("content", "object"),
        *("generated_text", "generation", "meta_info", "recordId"),
    }
)
_PLAIN_KEYS: Final = frozenset({"instanceId", "id", "item_id", "model", "response", "sample", "seconds", "pool"})


def parse_line(line: JsonMapping) -> ParsedLine | None:
    """Parse a line in the first matching format; None for plain lines (bench.scoring.answers)."""
    if _LINE_KEYS.isdisjoint(line) or (line.keys() <= _PLAIN_KEYS and isinstance(line.get("response"), str)):
        return None
    refuse_chunk(line)
    return next((form.parse(line) for form in LINES if form.matches(line)), None)


# --- Rows of tables as lines ------------------------------------------------------------------------------------------
SAMPLE_FIELDS = ("sample", "epoch")
OPTIONAL_CELLS = frozenset(
    {*SAMPLE_FIELDS, "seconds", "error", "model", "finish_reason", "stop_reason", "refusal", "promptDigest", "pool"}
)


def line_of_cells(header: Sequence[str], row: Sequence[str], *, decimal_comma: bool = False) -> dict[str, Any]:
    """Return a row of texts as a line; empty cells of optional fields are omitted. header, row: of equal length.

    decimal_comma: whether seconds may have a decimal comma
    """
    line = {name: cell for name, cell in zip(header, row, strict=True) if cell or name not in OPTIONAL_CELLS}
    # spreadsheets that separate by semicolons write 1.5 as 1,5; 1,500 may be 1500, and stays a text
    if decimal_comma and "seconds" in line and not has_unclear_comma(seconds := line["seconds"].strip()):
        line["seconds"] = replace_decimal_comma(seconds)
    return {**line, **_cell_numbers(line)}


_WHOLE = re.compile(r"(\d+)(?:\.0+)?", re.ASCII)


def _cell_numbers(line: Mapping[str, str]) -> dict[str, Any]:
    """Return the cells of sample index and seconds as numbers, without those that hold no number."""
    # frames with gaps write whole numbers as 1.0
    numbers: dict[str, Any] = {
        name: int(stated[1]) for name in SAMPLE_FIELDS if (stated := _WHOLE.fullmatch(line.get(name, "")))
    }
    try:
        return numbers | ({"seconds": float(line["seconds"])} if "seconds" in line else {})
    except ValueError:
        return numbers
