"""Prompts say everything that a task says; what is sealed reaches no solver."""

from __future__ import annotations

import dataclasses
import json
import random
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings

from calibrant.bench.cli import main
from calibrant.bench.core.benchmark import PublicIds
from calibrant.dsl.replayscm.disclosure import Blocks, HiddenOrder, HiddenRoots, Ordered
from calibrant.dsl.replayscm.item import Pool, Problem, Task, TaskKind
from calibrant.dsl.replayscm.pools.files import record_from_problem, write_pool
from calibrant.dsl.replayscm.pools.records import SealedRecord
from calibrant.dsl.replayscm.prompt import prompt
from calibrant.dsl.replayscm.world import Intervention, World
from tests.support.effort import examples
from tests.support.replayscm.pools import shared_problems
from tests.support.replayscm.records import POOLS, Record, official_records, read_records
from tests.support.replayscm.strategies import problems
from tests.support.stub_protocols import small_pool


# --- Prompts say everything that a task says, and nothing else. What a prompt says is read back from its text here ----
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


# --- Nothing that docs/semantics.md, "Official records", seals reaches a solver: scrambling it leaves the task as
# it was
#
# A solver is a function of `Problem.task`. So if the task is equal, and written out equal byte for byte, whatever the
# hidden fields say, then no solver's answer can depend on them.
Scramble = Callable[[Record, random.Random], None]


def _scm(record: Record) -> Record:
    found: Record = record["problem"]["goldAnswer"]["scm"]
    return found


def _parameters(record: Record) -> Record:
    found: Record = record["problem"]["task"]["parameters"]
    return found


def _worlds(record: Record, split: str) -> list[Record]:
    return [world for world in record["problem"]["worlds"] if world["split"] == split]


def _hides_roots(record: Record) -> bool:
    name: str = record["problem"]["task"]["taskName"]
    return name == "CIND_A_SCM_ROOT_UNKNOWN"


def _hides_order(record: Record) -> bool:
    variant: str = _parameters(record)["scmPromptVariant"]
    return variant != "with_topological_order"


# --- one function per leak; each changes what it names and nothing that is disclosed ----------------------------------


def gold_mechanisms(record: Record, rng: random.Random) -> None:
    gold = _scm(record)
    parents = gold["rootVariables"]
    for variable in gold["mechanisms"]:
        gold["mechanisms"][variable] = f"(iff {' '.join(rng.sample(parents, 2))})"
    gold["totalAst"] = 3 * len(gold["mechanisms"])
    gold["parentsByVar"] = dict.fromkeys(gold["mechanisms"], parents[:2])
    for key in ("mechanismStatsByVar", "expandedMechanismStatsByVar"):
        gold.pop(key, None)


def order_of_gold_lists(record: Record, rng: random.Random) -> None:
    gold = _scm(record)
    for key in ("rootVariables", "endogenousVariables", "topologicalOrder", "topologicalLayers"):
        if key in gold:
            rng.shuffle(gold[key])
    gold["mechanisms"] = dict(sorted(gold["mechanisms"].items(), key=lambda _: rng.random()))


def other_pair_of_the_item(record: Record, rng: random.Random) -> None:
    """Alternative-SCM: everything of the pair but the reference, which is the question."""
    pair = record["problem"]["goldAnswer"].get("scm_alt_exp", {})
    for key in [key for key in pair if key != "referenceMechanisms"]:
        pair[key] = rng.random()


def knobs_and_diagnostics(record: Record, rng: random.Random) -> None:
    parameters = _parameters(record)
    parameters["knobs"] = {"n": rng.randrange(99)}
    parameters["generationDiagnostics"] = {"attempts": rng.randrange(99)}
    parameters["difficulty"] = rng.choice(["hard_small", "very_hard_small", "none"])
    parameters["maxPredecessorsPerMechanism"] = rng.randrange(10, 99)


def budget_deltas(record: Record, rng: random.Random) -> None:
    _parameters(record)["budgetDeltas"] = [rng.randrange(50)]


def environments(record: Record, rng: random.Random) -> None:
    """Their keys are the root set, in latent order."""
    variables = record["problem"]["signature"]["variables"]
    for world in record["problem"]["worlds"]:
        world["envProfile"] = {v: rng.random() for v in rng.sample(variables, rng.randrange(len(variables)))}


def order_of_disclosed_sets(record: Record, rng: random.Random) -> None:
    """Put the lists of roots and endogenous variables in latent order."""
    for part in (_parameters(record), record["problem"]["signature"]):
        rng.shuffle(part["rootVariables"])
        rng.shuffle(part["endogenousVariables"])


def signature_order(record: Record, rng: random.Random) -> None:
    rng.shuffle(record["problem"]["signature"]["topologicalOrder"])


def hidden_order(record: Record, rng: random.Random) -> None:
    if _hides_order(record):
        rng.shuffle(_parameters(record)["topologicalOrder"])


def hidden_layers(record: Record, rng: random.Random) -> None:
    """Within disclosed blocks the order; where no blocks are disclosed, the whole level partition."""
    layers = _parameters(record).get("topologicalLayers", [])
    for layer in layers:
        rng.shuffle(layer)
    if not record["problem"]["instanceId"].endswith("BLOCK"):
        rng.shuffle(layers)


def hidden_root_set(record: Record, rng: random.Random) -> None:
    """Where only their number is disclosed: other roots everywhere, in gold too."""
    if not _hides_roots(record):
        return
    order = list(record["problem"]["signature"]["variables"])
    rng.shuffle(order)
    roots, endogenous = order[: len(_scm(record)["rootVariables"])], order[len(_scm(record)["rootVariables"]) :]
    for part in (_parameters(record), record["problem"]["signature"], _scm(record)):
        part["rootVariables"], part["endogenousVariables"] = list(roots), list(endogenous)
    _scm(record)["mechanisms"] = dict.fromkeys(endogenous, f"(xor {roots[0]} {roots[1]})")


def heldout_rows(record: Record, rng: random.Random) -> None:
    for world in _worlds(record, "heldout"):
        constants = world["interventionSummary"]["InterventionTargetsConstant"]
        variables = record["problem"]["signature"]["variables"]
        rows = range(len(world["rows"]))
        world["rows"] = ["".join(str(constants.get(v, rng.randrange(2))) for v in variables) for _ in rows]


def heldout_interventions(record: Record, rng: random.Random) -> None:
    variables = record["problem"]["signature"]["variables"]
    for world in _worlds(record, "heldout"):
        targets = rng.sample(variables, 2)
        world["intervention"] = {"type": "hard_do", "mode": "hard_assigned", "assignments": {}, "targets": targets}
        world["interventionSummary"] = {
            "do": "do(something)",
            "interventionMode": "hard_assigned",
            "InterventionMode": "hard_assigned",
            "InterventionTargetsAssigned": targets,
            "InterventionTargetsConstant": {},
            "InterventionTargetsAll": targets,
        }


def heldout_ids(record: Record, rng: random.Random) -> None:
    for world in _worlds(record, "heldout"):
        world["worldId"] = f"{rng.random()}"


def place_of_heldout_worlds(record: Record, rng: random.Random) -> None:
    """Held-out worlds between the training worlds, in another order; the latter keep theirs."""
    slots = sorted(rng.random() for _ in _worlds(record, "train"))
    training = list(zip(slots, _worlds(record, "train"), strict=True))
    heldout = [(rng.random(), world) for world in _worlds(record, "heldout")]
    record["problem"]["worlds"] = [world for _, world in sorted([*training, *heldout], key=lambda pair: pair[0])]


def splits_and_prose(record: Record, rng: random.Random) -> None:
    everything = [world["worldId"] for world in record["problem"]["worlds"]]
    splits = {"train": rng.sample(everything, 3), "heldout": rng.sample(everything, 2)}
    _parameters(record)["worldSplits"] = splits
    record["problem"]["goldAnswer"]["worldSplits"] = splits
    for world in record["problem"]["worlds"]:
        world["interventionSummary"]["do"] = f"do(X1={rng.randrange(2)})"
        world["interventionSummary"]["interventionMode"] = rng.choice(["hard_constant", "hard_assigned"])


def description_and_seed(record: Record, rng: random.Random) -> None:
    record["problemDescription"] = {"seed": rng.randrange(10**9), "extra": {"knobs": {"n": rng.randrange(99)}}}


def names_of_the_item(record: Record, rng: random.Random) -> None:
    record["problem"]["instanceId"] += f"_{rng.random()}"
    record["problem"]["subslice"] = record["subslice"] = f"{rng.random()}"


def model_results(record: Record, rng: random.Random) -> None:
    gold = {"mechanisms": _scm(record)["mechanisms"]}
    record["modelResults"] = {"m": {"model": "m", "rawResponse": f"{rng.random()}", "extractedAnswer": gold}}


SCRAMBLES: tuple[Scramble, ...] = (
    gold_mechanisms,
    order_of_gold_lists,
    other_pair_of_the_item,
    knobs_and_diagnostics,
    budget_deltas,
    environments,
    order_of_disclosed_sets,
    signature_order,
    hidden_order,
    hidden_layers,
    hidden_root_set,
    heldout_rows,
    heldout_interventions,
    heldout_ids,
    place_of_heldout_worlds,
    splits_and_prose,
    description_and_seed,
    names_of_the_item,
    model_results,
)


def _task_bytes(problem: Problem) -> bytes:
    """Return the native record without its sealed part.

    Every list and mapping in the order in which the task holds it.
    """
    record = msgspec.structs.replace(record_from_problem(problem), id="", sealed=SealedRecord(), results=[])
    for world in record.training:
        world.environment = {}  # kept in the sealed part of a problem; the record writes it beside the world
    return msgspec.json.encode(record) + _spelled(problem.task).encode()


def _spelled(value: object) -> str:
    """Every field of a value and of the values in it: what their own short reprs leave out, too."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = (f"{field.name}={_spelled(getattr(value, field.name))}" for field in dataclasses.fields(value))
        return f"{type(value).__name__}({', '.join(fields)})"
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(_spelled, value))}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key!r}: {_spelled(one)}' for key, one in value.items())}}}"
    return repr(value)


def _changed(before: Problem, after: Problem) -> list[str]:
    one, other = before.task, after.task
    found = [f.name for f in dataclasses.fields(one) if getattr(one, f.name) != getattr(other, f.name)]
    return found or (["spelling"] if _task_bytes(before) != _task_bytes(after) else [])


@pytest.fixture(scope="module", params=POOLS)
def untouched(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Pool]:
    """Return a setting and what is read of its first records; two, as many as the official sample has."""
    setting: str = request.param
    return setting, read_records(official_records(setting, 2), tmp_path_factory.mktemp("untouched"))


@pytest.mark.parametrize("scramble", SCRAMBLES, ids=lambda scramble: scramble.__name__)
def test_a_hidden_field_does_not_reach_the_task(
    scramble: Scramble, untouched: tuple[str, Pool], tmp_path: Path
) -> None:
    setting, before = untouched
    records = official_records(setting, 2)
    for index, record in enumerate(records):
        scramble(record, random.Random(index))
    after = read_records(records, tmp_path)
    for one, other in zip(before.problems, after.problems, strict=True):
        assert _changed(one, other) == []


DISCLOSED: dict[str, Callable[[Record], Any]] = {
    "a bit of a training row": lambda r: _worlds(r, "train")[0]["rows"].__setitem__(0, _flipped(r)),
    "the number of held-out worlds": lambda r: r["problem"]["worlds"].remove(_worlds(r, "heldout")[0]),
    "the operators": lambda r: _parameters(r)["allowedOperators"].remove("iff"),
    "whether units are shared": lambda r: r["problem"]["signature"].update(PanelSemantics=False),
    "a unit's id": lambda r: r["problem"]["panelUnits"].__setitem__(0, "somebody"),
    "a training world's id": lambda r: _worlds(r, "train")[0].update(worldId="another"),
}


def _flipped(record: Record) -> str:
    row: str = _worlds(record, "train")[0]["rows"][0]
    return str(1 - int(row[0])) + row[1:]


@pytest.mark.parametrize("field", DISCLOSED)
def test_a_disclosed_field_does_reach_the_task(field: str, tmp_path: Path) -> None:
    """So that the comparison above can fail."""
    records = official_records("Hidden-order", 1)
    (before,) = read_records(records, tmp_path).problems
    DISCLOSED[field](records[0])
    (after,) = read_records(records, tmp_path).problems
    assert before.task != after.task
    assert _task_bytes(before) != _task_bytes(after)


def test_the_orders_that_are_disclosed_reach_the_task(tmp_path: Path) -> None:
    for setting, key in (("Ordered", "topologicalOrder"), ("Block", "topologicalLayers")):
        records = official_records(setting, 1)
        (problem,) = read_records(records, tmp_path).problems
        told = _parameters(records[0])[key]
        disclosure = problem.task.disclosure
        if isinstance(disclosure, Ordered):
            assert list(disclosure.order) == told
        else:
            assert isinstance(disclosure, Blocks)
            assert [set(block) for block in disclosure.blocks] == [set(block) for block in told]
