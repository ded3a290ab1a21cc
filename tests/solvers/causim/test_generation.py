"""Generated items: labels by running every world, files that are read as written, any number of programs alike."""

from __future__ import annotations

import hashlib
import os
import pickle
import subprocess
import sys
from fractions import Fraction
from itertools import combinations, islice
from pathlib import Path

import msgspec
import numpy as np
import pytest

from calibrant.bench.causim.verdict import METRICS
from calibrant.dsl.causim.bundle import module_text
from calibrant.dsl.causim.generated_functions import TOPOLOGIES
from calibrant.dsl.causim.generation import Version, grow
from calibrant.dsl.causim.item import CausimItem, Task
from calibrant.dsl.causim.model import Model, ModelError, assignment_text, plain, run, symbol
from calibrant.dsl.causim.question import TYPES, Question, project
from calibrant.dsl.causim.records import read_pool, record_of_item, write_pool
from calibrant.dsl.causim.reference import work_out, worlds
from calibrant.dsl.errors import PoolError
from calibrant.dsl.json_objects import without_think_pairs
from calibrant.solvers.causim.exact import Judge
from calibrant.solvers.causim.experiments import minimal_evidence, observable
from calibrant.solvers.causim.generation import (
    Caps,
    built_in_items,
    generated_items,
    items_of_version,
    sample_question,
    sampled_items,
    sampled_supports,
    store_answers,
)
from calibrant.solvers.outcome import Budget, Found, Impossible, OutOfBudget
from tests.support.causim.models import bundles, questions, random_graph, random_model, random_question, vectors
from tests.support.commands import CHECKOUT


@pytest.fixture(scope="module")
def items() -> list[CausimItem]:
    return [item for topology in TOPOLOGIES for item in generated_items(8, topology, 1, nodes=5, num_questions=2)]


def test_labels_are_what_running_every_world_says(items: list[CausimItem]) -> None:
    assert len(items) > 150
    for item in items:
        worked = work_out(item.task.model, item.task.question)
        labels = item.labels
        assert item.task.scenario == worked.scenario
        assert (labels.size, labels.trivial) == (len(worked.answers), worked.trivial)
        assert (labels.effect_all, labels.effect_some) == (worked.effect_all, worked.effect_some)
        assert labels.copy is worked.copy


def test_a_program_depends_on_seed_and_number_alone(tmp_path: Path) -> None:
    digests = []
    for programs in (2, 3):
        kept = [
            item for item in generated_items(4, "chain", programs, nodes=3, num_questions=1) if item.scm == "chain-0001"
        ]
        write_pool(tmp_path / "pool.jsonl", kept)
        digests.append(hashlib.sha256((tmp_path / "pool.jsonl").read_bytes()).hexdigest())
    assert digests[0] == digests[1]


@pytest.mark.parametrize("kind", TYPES)
def test_a_scenario_that_is_asked_for_is_the_scenario_that_comes(items: list[CausimItem], kind: str) -> None:
    model = items[-1].task.model
    for scenario in ("deterministic", "stochastic"):
        for seed in range(5):
            found = sample_question(model, kind, seed, scenario=scenario, effect="some")  # type: ignore[arg-type]
            if isinstance(found, Found):
                assert found.value.scenario == scenario
                if kind == "intervention":
                    assert work_out(model, found.value.question).effect_some


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"type":"deduction"', '"type":"abduction"', ""),
        ('"fixed_exogenous":{', '"fixed_exogenous":{"U_none":1,', "U_none"),
        ('"program":"import random', '"program":"import random\\nprint(1)', "top of the module"),
        ('"world":{', '"world":{"U_none":1,', "world"),
        ('"size":', '"sise":', "sise"),
    ],
)
def test_changed_lines_are_refused_with_the_file(
    items: list[CausimItem], tmp_path: Path, old: str, new: str, message: str
) -> None:
    path = tmp_path / "pool.jsonl"
    item = next(item for item in items if item.task.question.type == "deduction" and item.task.question.fixed)
    write_pool(path, [item])
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    if message:
        with pytest.raises(PoolError, match=rf"pool\.jsonl.*{message}"):
            read_pool(path)
    else:
        assert read_pool(path).items[0].task.question.type == "abduction"


def test_items_do_not_depend_on_the_hash_seed() -> None:
    """Of this process, whose seed is another in each run, and of a fresh one."""
    program = (
        "from calibrant.solvers.causim.generation import generated_items\n"
        "from calibrant.solvers.causim.experiments import minimal_evidence\n"
        "for item in generated_items(5, 'layered', 1, nodes=5, num_questions=1):\n"
        "    print(item, minimal_evidence(item.task.model, item.task.question, item.sealed.world))\n"
    )
    variables = {**os.environ, "PYTHONHASHSEED": "0"}
    fresh = subprocess.run(
        [sys.executable, "-c", program], cwd=CHECKOUT, env=variables, capture_output=True, text=True, check=True
    )
    items = list(generated_items(5, "layered", 1, nodes=5, num_questions=1))
    here = [f"{i} {minimal_evidence(i.task.model, i.task.question, i.sealed.world)}" for i in items]
    assert len(here) > 15
    assert fresh.stdout.splitlines() == here


def test_a_copied_item_has_the_same_record() -> None:
    """What went through another process is written in the same bytes."""
    item = next(generated_items(3, "chain", 1, nodes=2, num_questions=1))
    copied = pickle.loads(pickle.dumps(item))
    assert msgspec.json.encode(record_of_item(copied)) == msgspec.json.encode(record_of_item(item))


def test_no_two_seeds_share_an_id_and_ids_alone_have_the_seed() -> None:
    """Of grown programs and of built-in models; what is drawn together still shares its unit."""
    drawn = {
        seed: [*islice(sampled_items(seed, "chain"), 8), *islice(built_in_items(seed, "asia"), 8)] for seed in (1, 2)
    }
    names = {seed: {item.id for item in items} for seed, items in drawn.items()}
    assert [len(own) for own in names.values()] == [16, 16]
    assert not names[1] & names[2]
    assert all(f"-s{seed}-" in name for seed, own in names.items() for name in own)
    assert {item.scm for item in drawn[1]} == {"chain-0000", "chain-0001", "asia"} == {item.scm for item in drawn[2]}
    assert METRICS.unit(drawn[1][0].id) == METRICS.unit(drawn[1][1].id) != METRICS.unit(drawn[2][0].id)


# --- Minimal evidence against trying every set of observations -------------------------------------------------------


Seen = dict[str, str]


def fitting(model: Model, question: Question) -> list[tuple[Seen, str]]:
    """Noise and factual values of every fitting world, with its answer."""
    found = []
    for noise, _ in worlds(model, question.fixed):
        factual = run(model, noise, {})
        if all(factual[name] == value for name, value in question.observed.items()):
            answer = project(question, model, noise, run(model, noise, question.do))
            found.append(({**noise, **factual}, assignment_text(answer)))
    return found


def least(names: tuple[str, ...], truth: tuple[Seen, str], all_worlds: list[tuple[Seen, str]]) -> int | None:
    """Return the size of the smallest set of names that tells the truth from every other answer, by trying all."""
    for size in range(len(names) + 1):
        for chosen in combinations(names, size):
            left = {answer for seen, answer in all_worlds if all(seen[name] == truth[0][name] for name in chosen)}
            if left == {truth[1]}:
                return size
    return None


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_it_is_the_smallest_set_that_leaves_one_answer(topology: str) -> None:
    rng = np.random.default_rng(31)
    compared = 0
    for _ in range(25):
        model = random_model(rng, random_graph(rng, topology, int(rng.integers(2, 5))))
        question = random_question(rng, model)
        all_worlds = fitting(model, question)
        if not all_worlds:
            continue
        truth = all_worlds[int(rng.integers(len(all_worlds)))]
        noise = {name: truth[0][name] for name in model.noises}
        found = minimal_evidence(model, question, noise)
        assert isinstance(found, Found)
        names = observable(model, question)
        assert len(found.value.observe) == least(names, truth, all_worlds)
        left = {
            answer for seen, answer in all_worlds if all(seen[name] == truth[0][name] for name in found.value.observe)
        }
        assert left == {truth[1]}
        few = [name for name in names if name in model.position]
        limited = minimal_evidence(model, question, noise, few)
        expected = least(tuple(few), truth, all_worlds)
        if expected is None:
            assert isinstance(limited, Impossible)
        else:
            assert isinstance(limited, Found)
            assert len(limited.value.observe) == expected
        compared += 1
    assert compared > 10


def test_a_world_that_does_not_fit_is_refused_and_a_spent_budget_is_told() -> None:
    rng = np.random.default_rng(5)
    model = random_model(rng, random_graph(rng, "chain", 3))
    world = {node.noise: node.support[0] for node in model.nodes}
    factual = run(model, world, {})
    name, wrong = model.names[-1], symbol("nowhere")
    with pytest.raises(ModelError, match="does not fit"):
        minimal_evidence(model, Question("counterfactual", {}, model.noises, {}, {name: wrong}), world)
    question = Question("abduction", {}, model.noises, {}, factual)
    assert isinstance(minimal_evidence(model, question, world, budget=Budget(0)), OutOfBudget)


# --- Query files from items and back; what a pipeline with caps stores of complete answer sets ------------------------


@pytest.fixture(scope="module")
def versions() -> list[Version]:
    return grow(21, "p", "layered", 5)


@pytest.fixture(scope="module")
def exchanged_items(versions: list[Version]) -> list[CausimItem]:
    return [item for version in versions for item in items_of_version(version, "p", num_questions=3)]


def test_without_caps_the_pipeline_stores_the_complete_set_and_with_caps_a_part(
    exchanged_items: list[CausimItem],
) -> None:
    cut = 0
    for item in exchanged_items[::3]:
        model, question = item.task.model, item.task.question
        complete = set(work_out(model, question).answers)
        everything = store_answers(
            model, question, Caps(domain_samples=None, max_combinations=10**6, max_support=10**6)
        )
        assert set(everything.answers) == complete
        assert everything.exhausted
        few = store_answers(model, question, Caps(None, max_combinations=4, max_support=2))
        assert set(few.answers) <= complete
        assert len(few.answers) <= 2
        if few.exhausted:
            assert set(few.answers) == complete
        cut += not few.exhausted
    assert cut > 5


def test_sampled_domains_are_parts_of_the_exact_ones_and_lack_what_is_rare(versions: list[Version]) -> None:
    model = versions[-1].model
    exact = {node.noise: set(node.support) for node in model.nodes}
    found = sampled_supports(model, 2_000, 1)
    assert all(set(values) <= exact[noise] for noise, values in found.items())
    assert all(len(values) == 1 for values in sampled_supports(model, 1, 1).values())
    common = {node.noise for node in model.nodes if min(node.weights) > Fraction(1, 50)}
    assert all(set(found[noise]) == exact[noise] for noise in common)


# --- Verdicts on the replies of the vectors, and their reasons -------------------------------------------------------


def judge(name: str) -> Judge:
    record = next(record for record in vectors("question") if record["id"] == name)
    source = module_text(bundles()[record["program"]], comments=False)
    return Judge(Task(source, questions()[name][1], record["scenario"]))


def test_replies_of_the_vectors_get_their_rewards() -> None:
    compared = 0
    for record in vectors("verdict"):
        judging = judge(record["question"])
        for reply in record["replies"]:
            verdict = judging.judge_text(without_think_pairs(reply["text"]))
            assert verdict.reward == reply["reward"], reply["why"]
            assert (verdict.why is None) is bool(reply["reward"])
            compared += 1
            if reply["why"] in ("no object", "not closed"):
                assert verdict.why == "no_object"
            if reply["why"] in ("missing key", "extra key", "one key in two cases", "nested one level down"):
                assert verdict.why == "wrong_keys"
    assert compared > 300


def test_answers_of_the_vectors_get_their_reasons() -> None:
    for record in vectors("question"):
        judging = judge(record["id"])
        for given in record["expect"].get("reasons", []):
            verdict = judging.judge_answer({key: symbol(value) for key, value in given["answer"].items()})
            assert (verdict.reward, verdict.nodes) == (given["reward"], given["reasons"])
            assert verdict.answer is not None
            assert plain(verdict.answer) == given["answer"]


def test_abductions_have_no_reasons_by_node() -> None:
    name = next(record["id"] for record in vectors("question") if record["type"] == "abduction")
    _, question = questions()[name]
    assert judge(name).judge_answer(dict.fromkeys(question.unknown, '"x"')).nodes is None
