"""Official runtime YAML as text: read record by record if it is plain, and written in its compact form."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import IO, Any

import msgspec
import yaml

from calibrant.dsl.atomic_write import open_atomically
from calibrant.dsl.errors import PoolError, short_repr
from calibrant.dsl.formulas.text import render
from calibrant.dsl.memory import rare_collections
from calibrant.dsl.records import copied_items, plain_pool, text_lines
from calibrant.dsl.replayscm.disclosure import Disclosure
from calibrant.dsl.replayscm.item import ModelResult, Pool, Problem, TaskKind
from calibrant.dsl.replayscm.pools.official import (
    OWN_LABELS,
    EmbeddedResults,
    OfficialRecord,
    ResultsCut,
    cut_results,
    problem_from_official,
)
from calibrant.dsl.replayscm.pools.records import Fields, ProblemRecord, ResultsInMemory, problem_from_record
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.world import World
from calibrant.dsl.yaml_text import UNREADABLE, ListedRecords, NotPlainError, load_yaml

# --- The benchmark's official runtime files: one YAML document, read record by record if it is plain ------------------
# Official files are 34 to 86 MB because they embed model results. Those blocks are removed by indentation before the
# YAML parser, and are parsed on demand. Records of a large pool are stored, as native ones, in an unnamed file
# (dsl.records). A document that cannot be read record by record is left to `load_yaml`, with equal problems and errors.
RECORDS = "problems"
_NO_RESULTS = ResultsInMemory(())
_LINES = 512  # lines that the parser gets at once


def read_official(file: IO[bytes], name: str, *, keep_results: bool = True) -> Pool:
    """Read the pool of an official runtime file; `PoolError` names instance and field.

    file: seekable
    keep_results: keep the embedded model results (as text, parsed on demand)
    """
    cut = ResultsCut()
    try:
        return _stream_pool(file, name, cut, keep_results=keep_results)
    except NotPlainError:
        return read_official_whole(file, name, keep_results=keep_results)
    except PoolError:
        if cut.is_whole:
            raise
    try:  # perhaps an unusual layout, so the error came from the cut: parse the uncut text
        return _stream_pool(file, name, None, keep_results=keep_results)
    except NotPlainError:
        return read_official_whole(file, name, keep_results=keep_results)


def raw_records(path: Path) -> Iterator[Any]:
    """Yield the records of an official file as parsed from YAML, without their results if these can be cut out.

    Requires a file that was read without error.
    """
    with plain_pool(path) as file:
        index = 0
        try:
            with _open_records(file, ResultsCut()) as document:
                for raw in document:
                    yield raw
                    index += 1
        except (NotPlainError, PoolError):
            yield from islice(load_yaml(_text(file))[RECORDS], index, None)


class _Text:
    """Lines of a text as a file for the YAML parser; failed: the error that ended the text early, or None."""

    name = "<unicode string>"  # as in YAML errors of texts in memory

    def __init__(self, lines: Iterator[str]) -> None:
        self.failed: PoolError | OSError | None = None
        self._lines = lines
        self._chunk = BytesIO()
        self._separator = ""

    def read(self, size: int = -1, /) -> bytes:
        """Read at most `size` bytes; b"" only at the end of the text."""
        if chunk := self._chunk.read(size):
            return chunk
        try:
            lines = list(islice(self._lines, _LINES))
        except (PoolError, OSError) as error:  # stored, because the parser would swallow it
            self.failed = error
            return b""
        if not lines:
            return b""
        self._chunk = BytesIO((self._separator + "\n".join(lines)).encode())
        self._separator = "\n"
        return self.read(size)

    def require_read(self, lines: Iterable[str]) -> None:
        """Read the remaining lines; raise an error of the text itself, which takes precedence over others."""
        if self.failed is None:
            for _ in lines:
                pass
        else:
            raise self.failed


@contextmanager
def _open_records(file: IO[bytes], cut: ResultsCut | None) -> Iterator[ListedRecords]:
    file.seek(0)
    lines = text_lines(file)
    text = _Text(lines if cut is None else cut.remove_results(lines))
    try:
        yield ListedRecords(text, RECORDS)
    except (NotPlainError, PoolError):
        text.require_read(lines)
        raise
    text.require_read(lines)


def _top_fields(raw: Any) -> Fields:
    """Return the outermost fields of an official file."""
    if not isinstance(raw, Mapping):
        content = "it is empty" if raw is None else f"it is {short_repr(raw)}"
        raise PoolError(f"no pool: {content}; expected JSON lines with a header, or YAML in the official format")
    return Fields(raw, "the file")


def _stream_pool(file: IO[bytes], name: str, cut: ResultsCut | None, *, keep_results: bool) -> Pool:
    with rare_collections(), _open_records(file, cut) as document:
        problems = copied_items(
            _parse_records(document, cut, keep_results), attrgetter("problem"), _stored_line, _parse_stored
        )
        top = _top_fields(document.rest)
        top.sequence(RECORDS)
        if cut is not None and not cut.is_whole and not (cut.are_self_contained and len(cut.blocks) == len(problems)):
            raise PoolError("results that belong to no record", field="modelResults")
        return Pool(name, problems, top.mapping("metadata", {}), num_extended=0)


def _parse_records(document: Iterable[Any], cut: ResultsCut | None, keep_results: bool) -> Iterator[OfficialRecord]:
    """Parse the records; raise the error of the first invalid one at the end, after any YAML error."""
    refusal: PoolError | None = None
    for index, raw in enumerate(document):
        if refusal is not None:
            continue
        block = cut.take(index) if cut is not None else ""
        results = (EmbeddedResults(block) if block else None) if keep_results else _NO_RESULTS
        try:
            record = OfficialRecord(raw, index, results)
        except PoolError as error:
            refusal = error
        else:
            yield record
    if refusal is not None:
        raise refusal


def read_official_whole(file: IO[bytes], name: str, *, keep_results: bool = True) -> Pool:
    """Read the pool by parsing the whole document."""
    text = _text(file)
    lean, cut = cut_results(text)
    if not cut.is_whole and cut.are_self_contained:
        try:
            return _parse_whole(lean, cut.blocks, name, keep_results=keep_results)
        except PoolError:
            pass
    return _parse_whole(text, [], name, keep_results=keep_results)


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return "\n".join(text_lines(file))


def _parse_whole(text: str, blocks: list[str], name: str, *, keep_results: bool) -> Pool:
    """Parse the whole text; blocks: the results that were cut out of it, empty if it still has them."""
    top = _top_fields(load_yaml(text))
    records = top.sequence(RECORDS)
    if blocks and len(blocks) != len(records):
        raise PoolError(f"results of {len(blocks)} records, but {len(records)} records", field="modelResults")
    problems = []
    for index, raw in enumerate(records):
        results = EmbeddedResults(blocks[index]) if blocks and blocks[index] else None
        problems.append(OfficialRecord(raw, index, results if keep_results else _NO_RESULTS).problem)
    return Pool(name, tuple(problems), top.mapping("metadata", {}), num_extended=0)


class _Stored(msgspec.Struct):
    """A line of the unnamed file.

    results: YAML, as `EmbeddedResults` takes it; empty if there are none
    """

    record: ProblemRecord
    results: str


def _stored_line(official: OfficialRecord) -> bytes:
    try:
        results = official.results.as_text() if isinstance(official.results, EmbeddedResults) else ""
    except UNREADABLE:  # such as an integer of more digits than are written
        raise NotPlainError from None
    return msgspec.json.encode(_Stored(official.native, results))


def _parse_stored(line: str) -> Problem:
    stored = msgspec.json.decode(line, type=_Stored)
    return problem_from_record(stored.record, EmbeddedResults(stored.results) if stored.results else None)


# --- Writing pools as official runtime YAML, in its compact form, for the official scorer -----------------------------
#
# Records have what a scorer or a prompt reads: signature, task, worlds, gold, reference, results; the generator's
# diagnostics are not known. Every record is read back and compared before it is written.
SUFFIXES = (".yaml", ".yml")
_METADATA = {
    "runtimeSchemaVersion": "cind-a-scm-runtime-v2",
    "problemEncoding": "scm-panel-binary-rows-v1",
    "resultEncoding": "scm-current-model-results-v1",
}
_NUMBER = re.compile(r"0|-?[1-9]\d{0,17}")


class _Dumper(yaml.CSafeDumper):
    """YAML writer without aliases, which official files do not have."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def write_official(pool: Pool, path: Path) -> None:
    """Write the official runtime YAML; the file appears complete or not at all.

    `PoolError` names an instance that official files cannot express, such as one with two results of one model.
    """
    try:
        with open_atomically(path) as file:
            for text in _yaml_texts(pool):
                file.write(text.encode())
    except OSError as error:
        raise PoolError(f"cannot be written: {error.strerror or error}", file=path.name) from None
    except yaml.YAMLError as error:  # metadata and results hold whatever their file held
        raise PoolError(f"does not fit YAML: {' '.join(str(error).split())}", file=path.name) from None


def _yaml_texts(pool: Pool) -> Iterator[str]:
    yield _dump({"metadata": {**pool.metadata, **_METADATA}})
    yield "problems:\n" if pool.problems else "problems: []\n"
    for index, problem in enumerate(pool.problems):
        record = official_record(problem)
        text = _dump([record])
        (parsed_record,) = load_yaml(text)
        if problem_from_official(parsed_record, index) != problem:
            raise PoolError("official files have no way to say all of it", instance=problem.id)
        yield text


def _dump(value: Any) -> str:
    return str(yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=2**31 - 1))


def official_record(problem: Problem) -> dict[str, Any]:
    """Return the official record of a problem."""
    task, sealed, labels = problem.task, problem.sealed, problem.sealed.labels
    splits = {
        "train": [world.id for world in task.training.worlds],
        "heldout": [world.id for world in sealed.heldout.worlds],
    }
    units = task.training.worlds[0].units
    are_shared = all(world.units == units for world in problem.worlds)
    lists = _latent_lists(problem)
    record: dict[str, Any] = {
        "problem": {
            "instanceId": problem.id,
            "schemaVersion": "fol-causal-reasoning-v1",
            "scenario": "CIND_A_SCM",
            "signature": {
                "variables": list(task.variables),
                "domains": "binary",
                "observationStructure": "panel_same_units_across_worlds",
                "PanelSemantics": task.shares_units,
                **lists,
            },
            "task": {
                "taskName": task.kind.value,
                "taskVersion": "0.3.0",
                "parameters": _parameters(problem, lists, splits),
            },
            "problemEncoding": _METADATA["problemEncoding"],
            **({"panelUnits": list(units)} if are_shared else {}),
            "worlds": [
                _world(world, split, sealed.environments.get(world.id, {}), has_units=not are_shared)
                for split, panel in (("train", task.training), ("heldout", sealed.heldout))
                for world in panel.worlds
            ],
            "goldAnswer": {
                "budgetDeltas": list(sealed.budget_deltas),
                "worldSplits": splits,
                "scm": _gold(problem, lists),
                **({"scm_alt_exp": {"referenceMechanisms": _formula_texts(task.reference)}} if task.reference else {}),
            },
        },
        "problemDescription": {"difficulty": labels.get("difficulty"), "seed": _number(labels.get("seed"))},
        "problemType": "foCausalReasoning",
        "subslice": labels.get("stratum"),
        "modelResults": _results(problem),
    }
    if task.kind is TaskKind.ALTERNATIVE:
        record["problemDescription"]["scenarioType"] = task.kind.value
    extra: dict[str, Any] = {"pairedSourceInstanceId": labels["latent"]} if "latent" in labels else {}
    record["problemDescription"]["extra"] = extra
    if problem_from_official(record, 0).sealed.labels != labels:
        extra[OWN_LABELS] = dict(labels)
    return record


def _latent_lists(problem: Problem) -> dict[str, list[str]]:
    """Return topological order, roots and endogenous variables, in latent order, as far as they are known."""
    order = list(problem.sealed.latent_order)
    gold, disclosed_roots = problem.sealed.gold, problem.task.disclosure.roots
    roots = gold.roots if gold is not None else disclosed_roots
    if roots is None:
        return {"topologicalOrder": order}
    return {
        "topologicalOrder": order,
        "rootVariables": [v for v in order if v in roots],
        "endogenousVariables": [v for v in order if v not in roots],
    }


def _parameters(problem: Problem, lists: Mapping[str, Any], splits: Mapping[str, Any]) -> dict[str, Any]:
    task, sealed = problem.task, problem.sealed
    parameters: dict[str, Any] = {
        "family": "IMS_CIND_A",
        "variant": "A_SCM",
        "variables": list(task.variables),
        "inputVariables": list(task.variables),
        **lists,
        **_disclosure_fields(task.disclosure),
        "promptVariableOrder": list(task.variables),
        "allowedOperators": list(task.grammar.operators),
        "allowConstants": task.grammar.allow_constants,
        "budgetDeltas": list(sealed.budget_deltas),
        "worldSplits": dict(splits),
        "PanelSemantics": task.shares_units,
        "scmEvaluationMode": "simulate_endogenous_nonintervened",
    }
    if sealed.max_predecessors is not None:
        parameters["maxPredecessorsPerMechanism"] = sealed.max_predecessors
    if "difficulty" in sealed.labels:
        parameters["difficulty"] = sealed.labels["difficulty"]
    return parameters


def _disclosure_fields(disclosure: Disclosure) -> dict[str, Any]:
    if disclosure.order is not None:
        return {"scmPromptVariant": "with_topological_order"}
    if disclosure.blocks is not None:
        layers = [list(block) for block in disclosure.blocks]
        return {"scmPromptVariant": "partial_topological_order", "topologicalLayers": layers}
    hidden = {"scmPromptVariant": "no_topological_order"}
    return hidden if disclosure.roots is not None else {**hidden, "rootCount": disclosure.num_roots}


def _world(world: World, split: str, levels: Mapping[str, float], *, has_units: bool) -> dict[str, Any]:
    constants, assigned = dict(world.intervention.constants), list(world.intervention.assigned)
    targets = [*constants, *assigned]
    mode = world.intervention.mode
    do_texts = [f"{v}={constants[v]}" for v in constants] + [f"{v}=assigned_per_row" for v in assigned]
    plain = "hard_constant" if mode == "none" else mode  # the field with a small letter has no "none"
    world_record: dict[str, Any] = {
        "worldId": world.id,
        "observationMode": "panel_full",
        "intervention": {"type": "hard_do", "mode": plain, "assignments": constants, "targets": targets},
        "split": split,
        "envProfile": dict(levels),
        "rows": world.row_texts(),
        "interventionSummary": {
            "do": f"do({', '.join(do_texts)})" if do_texts else "none",
            "interventionMode": plain,
            "InterventionMode": mode,
            "InterventionTargetsAssigned": assigned,
            "InterventionTargetsConstant": constants,
            "InterventionTargetsAll": targets,
        },
    }
    return world_record | ({"domain": list(world.units), "domainSize": len(world.units)} if has_units else {})


def _gold(problem: Problem, lists: Mapping[str, Any]) -> dict[str, Any]:
    gold, size = problem.sealed.gold, problem.sealed.gold_size
    gold_record: dict[str, Any] = dict(lists)
    if gold is not None:
        parents = {variable: sorted(mechanism.mentioned) for variable, mechanism in gold.mechanisms.items()}
        gold_record |= {"mechanisms": _formula_texts(gold), "parentsByVar": parents}
        gold_record["totalEdges"] = sum(map(len, parents.values()))
    return gold_record | ({} if size is None else {"totalAst": size})


def _formula_texts(model: Scm) -> dict[str, str]:
    return {variable: render(mechanism) for variable, mechanism in model.mechanisms.items()}


def _number(text: str | None) -> int | str | None:
    return int(text) if text is not None and _NUMBER.fullmatch(text) else text


def _results(problem: Problem) -> dict[str, Any]:
    results = problem.results()
    by_model = {result.model: _result(result) for result in results}
    if len(by_model) != len(results):
        raise PoolError("several results of one model", instance=problem.id, field="results")
    return by_model


def _result(result: ModelResult) -> dict[str, Any]:
    result_record = {
        "model": result.model,
        "rawResponse": result.raw_response,
        "extractedAnswer": result.extracted_answer,
    }
    result_record |= dict(result.verdict)
    return result_record | ({"evaluation": dict(result.evaluation)} if result.evaluation else {})
