"""Pool files: read the official runtime YAML and the native JSONL, write the latter.

The native file has a header line and one instance a line; dsl.replayscm.pools.records is its schema.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import IO

import msgspec

from calibrant.dsl.atomic_write import open_atomically
from calibrant.dsl.errors import PoolError, short_repr
from calibrant.dsl.formulas.text import render
from calibrant.dsl.parse_limits import TooLargeError, load_json
from calibrant.dsl.records import Line, decode_line, decoded_again, item_ids, plain_pool, pool_lines, stored_items
from calibrant.dsl.replayscm.extensions.records import extension_fields, rates_field
from calibrant.dsl.replayscm.item import Pool, Problem
from calibrant.dsl.replayscm.pools.records import (
    FORMAT,
    VERSION,
    HeaderRecord,
    ProblemRecord,
    ResultRecord,
    SealedRecord,
    WorldRecord,
    error_location,
    problem_from_record,
    record_from_disclosure,
)
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.world import World

BENCHMARK = "replayscm"  # headers of its native files need not name it


def read_pool(path: Path | str, *, keep_results: bool = True) -> Pool:
    """Read the pool in a file; `PoolError` names file, instance and field of invalid input.

    keep_results: keep embedded model results (official files: as text, parsed on demand)
    """
    path = Path(path)
    with error_location(file=path.name), plain_pool(path) as plain:
        lines = pool_lines(plain)
        first = next(lines, None)
        if first is not None and first.text.lstrip().startswith("{"):
            pool = _read_native(first, lines, plain, path.name, keep_results=keep_results)
        else:
            from calibrant.dsl.replayscm.pools.runtime_yaml import read_official  # the YAML parser is only needed here

            pool = read_official(plain, path.name, keep_results=keep_results)
        names: set[str] = set()
        for name in item_ids(pool.problems):
            if name in names:
                raise PoolError("a second instance of that id", instance=name, field="id")
            names.add(name)
    return pool


def _read_native(first: Line, lines: Iterator[Line], plain: IO[bytes], name: str, *, keep_results: bool) -> Pool:
    _require_replayscm(first.text)
    header = decode_line(first.text, HeaderRecord, where="line 1")
    if header.format != FORMAT or header.version != VERSION:
        actual_format = f"{short_repr(header.format)} version {header.version}"
        raise PoolError(f"{actual_format}; this program reads '{FORMAT}' version {VERSION}", field="format")
    records = ((line, decode_line(line.text, ProblemRecord, where=f"line {line.number}")) for line in lines)
    num_extended = 0

    def read() -> Iterator[tuple[Line, Problem]]:
        nonlocal num_extended
        for line, record in records:
            problem = _problem(record, keep_results)
            num_extended += problem.task.extension is not None
            yield line, problem

    problems = stored_items(plain, read(), partial(_parse_line, keep_results=keep_results))
    return Pool(header.name or name, problems, header.metadata, num_extended)


def _problem(record: ProblemRecord, keep_results: bool) -> Problem:
    with error_location(instance=record.id[:120]):
        record.results = record.results if keep_results else []
        return problem_from_record(record)


def _parse_line(line: str, *, keep_results: bool) -> Problem:
    return _problem(decoded_again(line, ProblemRecord), keep_results)


def _require_replayscm(header: str) -> None:
    """Raise `PoolError` if a header names another benchmark; other faults are left to the header's reader."""
    try:
        decoded_header = load_json(header)
    except TooLargeError as error:
        raise PoolError(str(error), field="line 1") from None
    except (ValueError, RecursionError):
        return
    if isinstance(decoded_header, dict) and decoded_header.get("benchmark", BENCHMARK) != BENCHMARK:
        raise PoolError(
            f"a pool of {short_repr(decoded_header['benchmark'])}; here one of ReplaySCM is needed", field="benchmark"
        )


def write_pool(pool: Pool, path: Path | str) -> None:
    """Write the native format; the file appears complete or not at all."""
    path = Path(path)
    try:
        with open_atomically(path) as file:
            file.writelines(line + b"\n" for line in native_lines(pool))
    except OSError as error:
        raise PoolError(f"cannot be written: {error.strerror or error}", file=path.name) from None
    except (TypeError, ValueError, RecursionError) as error:  # metadata and results hold whatever their file held
        raise PoolError(f"does not fit JSON: {error}", file=path.name) from None


def native_lines(pool: Pool) -> Iterator[bytes]:
    """Yield header and instances as JSON lines."""
    encode = msgspec.json.Encoder(order="deterministic").encode
    yield encode(HeaderRecord(FORMAT, VERSION, pool.name, dict(pool.metadata)))
    for problem in pool.problems:
        yield encode(file_record(problem))


def file_record(problem: Problem) -> ProblemRecord:
    """Return the native record with rows in the order of the file that the problem was read from.

    Not for solvers: an author may list the variables in the latent order.
    """
    return _record(problem, problem.columns or problem.task.variables)


def record_from_problem(problem: Problem) -> ProblemRecord:
    """Return the native record of a problem, rows in natural order.

    `problem_from_record` takes it back to an equal problem.
    """
    return _record(problem, problem.task.variables)


def _record(problem: Problem, variables: tuple[str, ...]) -> ProblemRecord:
    task, sealed = problem.task, problem.sealed
    if sealed.renaming is not None:
        raise ValueError(f"'{problem.id}' was renamed: read from a file it would have other flips and contexts")
    units = problem.worlds[0].units if problem.worlds else ()
    environments = sealed.environments
    disclosure = record_from_disclosure(task.disclosure)
    if task.extension is not None:  # its lists give row strings and contexts their order
        variables = task.extension.variables
        disclosure = msgspec.structs.replace(disclosure, roots=list(task.extension.roots))
    return ProblemRecord(
        id=problem.id,
        kind=task.kind.value,
        variables=list(variables),
        units=list(units),
        disclosure=disclosure,
        training=[_world_record(world, variables, units, environments) for world in task.training.worlds],
        sealed=SealedRecord(
            heldout=[_world_record(world, variables, units, environments) for world in sealed.heldout.worlds],
            gold=_formula_texts(sealed.gold),
            gold_size=sealed.gold_size,
            latent_order=list(sealed.latent_order),
            max_predecessors=sealed.max_predecessors,
            budget_deltas=list(sealed.budget_deltas),
            labels=dict(sealed.labels),
            seed=sealed.seed,
            noise=rates_field(sealed.rates, task.extension),
        ),
        operators=list(task.grammar.operators),
        allow_constants=task.grammar.allow_constants,
        shares_units=task.shares_units,
        reference=_formula_texts(task.reference),
        # the default itself: msgspec compares by identity what it omits
        wording="standard" if task.wording == "standard" else task.wording,
        **extension_fields(task.extension),
        results=[
            ResultRecord(r.model, r.raw_response, r.extracted_answer, dict(r.evaluation), dict(r.verdict))
            for r in problem.results()
        ],
    )


def as_written(problem: Problem) -> Problem:
    """Return the problem as read back from its line in a native file; `PoolError` if the line is invalid."""
    line = msgspec.json.encode(record_from_problem(problem)).decode()
    return problem_from_record(decode_line(line, ProblemRecord, where=problem.id))


def _formula_texts(model: Scm | None) -> dict[str, str] | None:
    return None if model is None else {v: render(mechanism) for v, mechanism in model.mechanisms.items()}


def _world_record(
    world: World,
    variables: tuple[str, ...],
    units: tuple[str, ...],
    environments: Mapping[str, Mapping[str, float]],
) -> WorldRecord:
    return WorldRecord(
        world.id,
        world.row_texts(variables),
        dict(world.intervention.constants),
        list(world.intervention.assigned),
        None if world.units == units else list(world.units),
        dict(environments.get(world.id, {})),
    )
