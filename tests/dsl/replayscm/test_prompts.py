"""Prompts say everything that a task says, and nothing else. What a prompt says is read back from its text here."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings

from calibrant.bench.cli import main
from calibrant.bench.scoring.ids import PublicIds
from calibrant.dsl.formulas.text import parse
from calibrant.dsl.replayscm.disclosure import Blocks, HiddenOrder, HiddenRoots, Ordered
from calibrant.dsl.replayscm.item import Problem, Task, TaskKind
from calibrant.dsl.replayscm.pools.files import write_pool
from calibrant.dsl.replayscm.prompt import prompt
from calibrant.dsl.replayscm.world import Intervention, World
from tests.support.commands import refused
from tests.support.effort import examples
from tests.support.replayscm.pools import shared_problems
from tests.support.replayscm.records import POOLS
from tests.support.replayscm.strategies import problems
from tests.support.stub_protocols import small_pool


def names(text: str) -> tuple[str, ...]:
    return tuple(text.split(", ")) if text else ()


def field(text: str, name: str) -> str | None:
    found = re.findall(rf"^{re.escape(name)}: (.*)$", text, re.MULTILINE)
    assert len(found) <= 1
    return found[0] if found else None


def read_world(text: str, variables: tuple[str, ...]) -> World:
    header, intervention, _, *rows = text.rstrip("\n").split("\n")
    constants: dict[str, int] = {}
    assigned: tuple[str, ...] = ()
    for part in intervention.removeprefix("Intervention: ").split("; "):
        mode, _, targets = part.partition(" ")
        if mode == "constant":
            constants = {v: int(bit) for v, bit in (target.split("=") for target in names(targets))}
        elif mode == "assigned":
            assigned = names(targets)
    units, values = zip(*(row.removeprefix("- ").split(": ", 1) for row in rows), strict=True)
    table = [dict(cell.split("=") for cell in row.split(" ")) for row in values]
    columns = tuple(sum(int(row[v]) << r for r, row in enumerate(table)) for v in variables)
    return World(header.removeprefix("World "), Intervention(constants, assigned), variables, units, columns)


def check_structure(task: Task, text: str) -> None:
    endogenous = field(text, "Endogenous variables")
    match task.disclosure:
        case HiddenRoots(_, count):
            assert field(text, "Roots") == f"{count} of them, not told which"
            assert endogenous is None
        case disclosure:
            assert disclosure.roots is not None
            assert set(names(field(text, "Roots") or "")) == set(disclosure.roots)
            assert set(names(endogenous or "")) == set(task.variables) - set(disclosure.roots)
    order, blocks = field(text, "Topological order"), field(text, "Topological blocks, earlier ones first")
    match task.disclosure:
        case Ordered(latent, _):
            assert names(order or "") == latent
        case Blocks(expected, _):
            assert order is None
            assert [set(names(block)) for block in (blocks or "").split(" | ")] == [set(block) for block in expected]
        case HiddenOrder() | HiddenRoots():
            assert (order, blocks) == ("not told", None)


def check(problem: Problem) -> None:
    task, text = problem.task, prompt(problem.task)
    head, *worlds = text.split("\n\nWorld ")
    worlds[-1], _, tail = worlds[-1].partition("\n\nAnswer with")
    variables = names(field(head, "Observed variables (all binary)") or "")
    assert variables == task.variables
    assert field(head, "Task") == task.kind.value
    check_structure(task, head)
    assert re.findall(r"^- (\w+): .*argument", head, re.MULTILINE) == list(task.grammar.operators)
    assert ("0 and 1 are allowed" in head) == task.grammar.allow_constants
    assert ("same unit id is the same unit" in head) == task.shares_units
    read = [read_world("World " + world, variables) for world in worlds]
    assert [(w.id, w.units, w.columns) for w in read] == [(w.id, w.units, w.columns) for w in task.training.worlds]
    for world, expected in zip(read, task.training.worlds, strict=True):
        assert world.intervention.signature == expected.intervention.signature
    shown = json.loads(tail.split("\n")[1])
    assert (
        shown.keys()
        == {
            TaskKind.SCM: {"mechanisms"},
            TaskKind.ROOTS: {"roots", "mechanisms"},
            TaskKind.ALTERNATIVE: {"alternative", "experiment", "witness"},
        }[task.kind]
    )


@settings(max_examples=examples(150), deadline=None)
@given(problem=problems())
def test_a_prompt_says_all_that_a_task_says(problem: Problem) -> None:
    check(problem)


@pytest.mark.parametrize("setting", POOLS)
def test_prompts_of_the_shared_pools(setting: str) -> None:
    for problem in shared_problems(POOLS[setting])[::7]:
        check(problem)
        assert not any(world.id in prompt(problem.task) for world in problem.sealed.heldout.worlds)


def test_the_reference_of_an_alternative_task_is_in_its_prompt() -> None:
    for problem in shared_problems(POOLS["Alt-Ordered"]):
        reference = problem.task.reference
        assert reference is not None
        head = prompt(problem.task).split("Reference model:\n")[1].split("\n\n")[0]
        read = {v: parse(text) for v, text in (line.split(" = ") for line in head.split("\n"))}
        assert read == dict(reference.mechanisms)


def test_the_order_in_which_a_file_names_targets_is_not_told() -> None:
    """It may be the latent order."""
    problem = small_pool(["good"]).problems[0]
    texts = set()
    for constants in ({"X1": 0, "X2": 1}, {"X2": 1, "X1": 0}):
        worlds = tuple(
            dataclasses.replace(w, intervention=Intervention(constants)) for w in problem.task.training.worlds
        )
        training = dataclasses.replace(problem.task.training, worlds=worlds)
        texts.add(prompt(dataclasses.replace(problem.task, training=training)))
    assert len(texts) == 1


def test_the_command_writes_one_object_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pool = tmp_path / "pool.jsonl"
    made = small_pool(["good", "or"])
    write_pool(made, pool)
    assert main(["prompts", str(pool), "--out", str(tmp_path / "out.jsonl")]) == 0
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    ids = [PublicIds(pool).public(name) for name in ("I0", "I1")]
    assert [line["instanceId"] for line in lines] == ids
    assert [line["prompt"] for line in lines] == [prompt(problem.task) for problem in made.problems]
    assert all(line.keys() == {"instanceId", "system", "prompt", "promptDigest"} for line in lines)
    capsys.readouterr()
    for name in ("I1", ids[1]):
        assert main(["prompts", str(pool), "--only", name, "--text"]) == 0
        printed = capsys.readouterr().out
        assert printed.startswith(f"# {ids[1]}\n\n")
        assert printed.endswith(prompt(made.problems[1].task))


def test_an_unknown_instance_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pool = tmp_path / "pool.jsonl"
    write_pool(small_pool(["good"]), pool)
    assert refused(capsys, "prompts", pool, "--only", "I9") == "small: no instance 'I9'; known: 'I0'"
