"""Damaged pool files of both formats: each is read as what it says, or refused in one line."""

from __future__ import annotations

import json
import random
import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from calibrant.bench.core.registry import bundled_pools
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.replayscm.item import Pool, Problem, TaskKind
from calibrant.dsl.replayscm.pools.files import native_lines, read_pool
from calibrant.dsl.replayscm.score import Evaluator
from calibrant.dsl.replayscm.world import Panel, World
from tests.fuzz.corruption import CHARACTER_DAMAGE, LINE_DAMAGE, damaged, other_bit
from tests.fuzz.submissions import alternative, good_answer
from tests.oracles.independent import require
from tests.oracles.naive import (
    FORMS,
    Instance,
    SeenWorld,
    native_instances,
    official_instances,
    official_record,
    official_responses,
)

WORLDS, ROWS = 3, 4  # of each split and world that are kept: small files are damaged in more ways per second
TOKENS = (
    "&a ", "*a", "!!int ", "!!str ", "!!bool ", "!!binary ", "!!set ", "<<: ", "|", ">-", "- ", "? ", ": ", "[", "]",
    "{", "}", "'", '"', "#", "---\n", "...\n", "%YAML 1.1\n", "\t", "\0", "~", "yes", ".nan", "1e999",
    "0x" + "f" * 5_000,
    "2001-01-01", "1_000", "0o7", "null", "true", "NaN", "\\ud800", "- " * 3_000, "[" * 3_000, "modelResults:\n",
    "- problem:\n", "  ", "problems:", "rows", "train_00", "heldout_00", "X1", "0",
)  # fmt: skip


class Base(NamedTuple):
    """An undamaged file: its text, and what that parses to (the lines of a native file are a list)."""

    form: str
    text: str
    parsed: Any


@cache
def bases() -> tuple[Base, ...]:
    """Two small problems of each setting, in the native and all official forms."""
    made = []
    for path in bundled_pools():
        first, *_, last = (_cut(problem) for problem in read_pool(path).problems)
        small = [first, alternative(last) if last.task.kind is TaskKind.SCM else last]
        lines = [line.decode() for line in native_lines(Pool("fuzz", tuple(small)))]
        made.append(_native([json.loads(line) for line in lines]))
        made += [_official({"problems": [official_record(p, form) for p in small]}, form) for form in FORMS]
    return tuple(made)


def _cut(problem: Problem) -> Problem:
    """Return a problem with few worlds of few rows; gold still replays."""
    training, heldout = (
        Panel(panel.variables, tuple(_first_rows(world) for world in panel.worlds[:WORLDS]))
        for panel in (problem.task.training, problem.sealed.heldout)
    )
    task = replace(problem.task, training=training, num_heldout=len(heldout.worlds))
    kept = {world.id for world in (*training.worlds, *heldout.worlds)}
    environments = {name: levels for name, levels in problem.sealed.environments.items() if name in kept}
    return replace(problem, task=task, sealed=replace(problem.sealed, heldout=heldout, environments=environments))


def _first_rows(world: World) -> World:
    columns = tuple(column & ((1 << ROWS) - 1) for column in world.columns)
    return replace(world, units=world.units[:ROWS], columns=columns)


def _native(records: list[Any]) -> Base:
    return Base("native", "\n".join(json.dumps(record) for record in records) + "\n", records)


def _official(document: Any, form: str) -> Base:
    return Base(form, yaml.dump(document, Dumper=yaml.CSafeDumper, sort_keys=False), document)


def case(rng: random.Random) -> str:
    """One damaged file; the outcome tells its format and whether it was read."""
    base = rng.choice(bases())
    data = _damaged_bytes(rng, _damaged_text(rng, base))
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        path = Path(folder) / "damaged.pool"
        path.write_bytes(data)
        outcome = _read(path)
    kind = "native" if base.form == "native" else "official"
    return f"{kind} {outcome}{', as it was' if data == base.text.encode() else ''}"


def _read(path: Path) -> str:
    try:
        pool = read_pool(path)
    except CalibrantError as error:
        message = str(error)
        require(message.isprintable() and message.startswith(path.name), f"not one line that names the file: {message}")
        return "refused"
    check_content(pool, path.read_bytes().decode())
    _check_use(pool, path)
    return "read"


def _damaged_text(rng: random.Random, base: Base) -> str:
    text = base.text
    if rng.random() < 0.5:
        parsed = damaged(rng, base.parsed)
        while rng.random() < 0.2:
            parsed = damaged(rng, parsed)
        text = _native(parsed).text if base.form == "native" else _official(parsed, base.form).text
        if rng.random() < 0.8:
            return text
    for _ in range(rng.choice([1, 1, 2, 4])):
        match rng.randrange(6):
            case 5:
                text = other_bit(rng, text)
            case 0:
                text = rng.choice(LINE_DAMAGE)(rng, text)
            case 1:
                start = rng.randrange(len(text) + 1)
                text = text[:start] + rng.choice(TOKENS) + text[start + rng.choice([0, 0, 1, 5]) :]
            case _:
                text = rng.choice(CHARACTER_DAMAGE)(rng, text)
    return text


def _damaged_bytes(rng: random.Random, text: str) -> bytes:
    data = bytearray(text.encode("utf-8", "surrogatepass"))
    if data and rng.random() < 0.1:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(data)


# --- what was read -----------------------------------------------------------------------------------------------


def check_content(pool: Pool, text: str) -> None:
    """Every instance, world, row and response of the text is in the pool, and nothing else."""
    is_native = text.lstrip().startswith("{")
    try:
        instances = native_instances(text) if is_native else official_instances(text)
    except yaml.YAMLError:  # model results are read on demand: whatever is broken has to be in there
        require(not all(map(_has_readable_results, pool.problems)), "read although YAML cannot be")
        return
    require([p.id for p in pool.problems] == [name for name, _, _ in instances], "other instances than in the text")
    for problem, instance in zip(pool.problems, instances, strict=True):
        _check_instance(problem, instance)
    if not is_native:
        _check_responses(pool, official_responses(text))


def _check_instance(problem: Problem, instance: Instance) -> None:
    name, training, heldout = instance
    for split, worlds, seen in (
        ("training", problem.task.training.worlds, training),
        ("held-out", problem.sealed.heldout.worlds, heldout),
    ):
        require(len(worlds) == len(seen), f"{name}: {len(worlds)} {split} worlds, not {len(seen)}")
        for world, other in zip(worlds, seen, strict=True):
            found = SeenWorld(
                world.id,
                list(world.units),
                list(world.rows()),
                dict(world.intervention.constants),
                set(world.intervention.assigned),
            )
            require(found == other, f"{name}: {split} world {found} reads {other}")


def _has_readable_results(problem: Problem) -> bool:
    try:
        problem.results()
    except CalibrantError:
        return False
    return True


def _check_responses(pool: Pool, seen: list[dict[str, Any] | None]) -> None:
    for problem, responses in zip(pool.problems, seen, strict=True):
        if not _has_readable_results(problem) or responses is None:
            require(not _has_readable_results(problem), f"{problem.id}: results read that are none")
            continue
        found = {result.model: result.raw_response for result in problem.results()}
        expected = {model: text if isinstance(text, str) else None for model, text in responses.items()}
        require(found == expected, f"{problem.id}: responses {found} read {expected}")


def _check_use(pool: Pool, path: Path) -> None:
    """Score a pool that was read, write it and read it again."""
    for problem in pool.problems:
        if problem.sealed.gold is not None:
            Evaluator(problem).score_answer(good_answer(problem)).to_dict()
    try:
        lines = list(native_lines(pool))
    except (CalibrantError, TypeError, ValueError):  # metadata and results may hold what JSON has no notation for
        return
    path.write_bytes(b"\n".join(lines))
    again = read_pool(path)
    require(again.problems == pool.problems, "written and read again it is another pool")
