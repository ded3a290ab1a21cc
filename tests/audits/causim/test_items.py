"""Findings about CauSim items against running every world; their certificates, and damaged ones."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import pytest

from calibrant.audits.causim.items import (
    item_findings,
    question_findings,
    shares,
    vacuous_parts,
)
from calibrant.audits.causim.verify import (
    VERIFIERS,
    answer_count,
    copyable,
    evidence_of,
    minimal_evidence_claim,
    trivial,
    unique_answer,
    vacuous_edge,
    vacuous_intervention,
)
from calibrant.audits.claims import Certificate, ClaimStatus, verify
from calibrant.baselines.causim.rows import ROWS
from calibrant.bench.answers.rates import wilson
from calibrant.bench.causim.benchmark import BENCHMARK
from calibrant.dsl.causim.bundle import bundle_of, module_text
from calibrant.dsl.causim.generated_functions import TOPOLOGIES
from calibrant.dsl.causim.item import CausimItem, Labels, Task
from calibrant.dsl.causim.networks import network
from calibrant.dsl.causim.reference import work_out
from calibrant.dsl.json_objects import last_object
from calibrant.solvers.causim.exact import AnswerSet, Judge
from calibrant.solvers.causim.experiments import minimal_evidence, observable
from calibrant.solvers.causim.generation import generated_items, sampled_items
from calibrant.solvers.outcome import Found
from tests.oracles.causim import hundredths, labels_by_running, network_findings, repeated_rows, vacuous_network_edges
from tests.support.causim.models import bundles, models, questions, vectors
from tests.support.commands import called, jsonl, refused
from tests.support.shared import shared_json


# --- Checkers of claims about items agree with running every world, on items of every type and topology ---------------
@pytest.fixture(scope="module")
def items() -> list[CausimItem]:
    drawn = [item for topology in TOPOLOGIES for item in islice(sampled_items(3, topology), 8)]
    few = [item for topology in TOPOLOGIES for item in generated_items(4, topology, 1, nodes=3, num_questions=5)]
    return drawn + few


def test_a_claim_holds_exactly_where_running_every_world_says_so(items: list[CausimItem]) -> None:
    counts = Counter[tuple[str, bool]]()
    for item in items:
        source, question = item.task.source, item.task.question
        worked = work_out(item.task.model, question)
        truths = {
            trivial: worked.trivial,
            copyable: worked.copy,
            vacuous_intervention: None if worked.effect_some is None else not worked.effect_some,
        }
        for claim, truth in truths.items():
            if truth is not None:
                certificate = claim(source, question)
                assert verify(certificate, evidence_of(source, question), VERIFIERS).holds is truth
                counts[certificate.claim, truth] += 1
    assert len(counts) == 6
    assert min(counts.values()) > 3


def test_every_finding_about_a_small_item_has_a_certificate(items: list[CausimItem]) -> None:
    found = [finding for item in items for finding in item_findings(item)]
    assert len(found) > 100
    assert [one for one in found if one.certificate is None] == []


# --- Findings about programs, questions, pipelines and printed tables, against figures worked out elsewhere -----------


@cache
def paper() -> dict[str, Any]:
    tables: dict[str, Any] = shared_json("causim_paper_rows.json", part="family")["tables"]
    return tables


def rows(table: str) -> dict[str, list[str]]:
    return {row[0]: row[1:] for row in paper()[table]["rows"]}


def test_the_grid_makes_edges_vacuous_that_the_cells_keep() -> None:
    assert [(finding.where, finding.data["edges"]) for finding in network_findings()] == [
        ("asia", "asia -> tub"),
        ("cancer", "Pollution -> Cancer, Smoker -> Cancer"),
        ("survey", "none"),
    ]


def test_the_parts_of_a_program_that_make_no_difference_are_found() -> None:
    kinds = [finding.data["name"] for finding in vacuous_parts(models()["paper-cancer"], "printed")]
    assert kinds == ["Smoker -> Cancer", "Pollution -> Cancer"]
    assert [f.claim for f in vacuous_parts(network("asia"), "asia")] == ["the noise of either changes nothing"]


def item_of(name: str) -> CausimItem:
    record = next(record for record in vectors("question") if record["id"] == name)
    _, question = questions()[name]
    source = module_text(bundles()[record["program"]], comments=False)
    expected = record["expect"]
    labels = Labels(
        expected["size"], expected["trivial"], expected["effect_all"], expected["effect_some"], expected["copy"]
    )
    return CausimItem(name, Task(source, question, record["scenario"]), labels)


def test_flags_of_questions_are_those_of_the_vectors() -> None:
    seen: Counter[str] = Counter()
    for record in vectors("question"):
        if record["program"] == "paper-cancer":
            continue
        kinds = {finding.kind for finding in question_findings(item_of(record["id"]))}
        expected = record["expect"]
        assert ("trivial" in kinds) is expected["trivial"]
        assert ("copyable" in kinds) is bool(expected["copy"])
        assert ("vacuous" in kinds) is (expected["effect_some"] is False)
        assert "wrong_label" not in kinds
        seen.update(kinds)
    assert min(seen["trivial"], seen["copyable"], seen["vacuous"]) > 5


@pytest.fixture(scope="module")
def finding_items() -> list[CausimItem]:
    return [item for topology in TOPOLOGIES for item in generated_items(9, topology, 1, nodes=6, num_questions=3)]


def test_shares_count_what_the_labels_say(finding_items: list[CausimItem]) -> None:
    found = {(share.flag, share.group): share for share in shares(finding_items)}
    for topology in TOPOLOGIES:
        own = [
            item for item in finding_items if item.topology == topology and item.task.question.type == "counterfactual"
        ]
        share = found["copyable", f"{topology}/counterfactual"]
        assert (share.count, share.total) == (sum(bool(item.labels.copy) for item in own), len(own))
        assert ("copyable", f"{topology}/deduction") not in found


def test_wrong_labels_are_found_by_running_every_world(finding_items: list[CausimItem]) -> None:
    assert all(labels_by_running(item) is None for item in finding_items[:60])
    item = finding_items[0]
    wrong = CausimItem(item.id, item.task, Labels(item.labels.size + 1, item.labels.trivial), item.sealed)
    finding = labels_by_running(wrong)
    assert finding is not None
    assert finding.kind == "wrong_label"
    assert [f.kind for f in question_findings(wrong) if f.kind == "wrong_label"] == ["wrong_label"]


def test_the_same_untrained_model_is_printed_twice() -> None:
    gains = [row for system, row in rows("3").items() if system == "7B (self-generation)"]
    finding = repeated_rows(rows("3")["Base"], rows("5")["Base"], gains, "Tables 3 and 5")
    assert (finding.data["apart"], finding.data["gain"]) == (0.038, 0.065)
    finding = repeated_rows(rows("4")["Base"], rows("6")["Base"], gains, "Tables 4 and 6")
    assert finding.data["apart"] == 0.037


def test_cells_of_the_network_table_are_hundredths_of_a_hundred_questions() -> None:
    table = {graph: row[2:] for graph, row in rows("25").items()}
    assert hundredths(table, "Table 25").verdict is ClaimStatus.PROVED
    assert hundredths({"x": ["0.015"]}, "x").verdict is ClaimStatus.REFUTED
    base, trained = wilson(6, 100), wilson(19, 100)
    assert [round(bound, 2) for bound in (*base, *trained)] == [0.03, 0.12, 0.13, 0.28]


# --- Errors of rows that make one error each -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def profiled_items() -> list[CausimItem]:
    return list(generated_items(23, "tree", 2, nodes=6, num_questions=4, types=["counterfactual", "intervention"]))


def profiled(row: str, profiled_items: list[CausimItem]) -> Counter[str]:
    reasons = Counter[str]()
    for item in profiled_items:
        if item.task.question.type == "counterfactual":
            answer = ROWS[row](item.task, 0)
            assert isinstance(answer, Found)
            reasons.update((Judge(item.task).judge_answer(answer.value).nodes or {}).values())
    assert reasons
    return reasons


def test_each_row_makes_its_own_error(profiled_items: list[CausimItem]) -> None:
    exact, no_do, prior, chance = (
        profiled(row, profiled_items) for row in ("exact", "no_do", "run_once", "random_symbols")
    )
    assert list(exact) == ["ok"]
    assert no_do["do ignored"] > 0
    assert (prior["do ignored"], prior["impossible"]) == (0, 0)
    assert prior["wrong noise"] > 0
    assert min(chance[reason] for reason in ("ok", "do ignored", "impossible", "wrong noise")) > 0


# --- Curricula of the paper and selected completions -----------------------------------------------------------------


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pool") / "pool.jsonl"
    options = ["programs=2", "versions=1-9", "types=intervention"]
    line = ["generate", "--benchmark", "causim", "--strata", "chain", "--seed", 3, "--out", path]
    assert called(*line, *(word for option in options for word in ("-o", option))).returncode == 0
    return path


def written(pool: Path, folder: Path, curriculum: str) -> dict[str, list[str]]:
    assert called("training", pool, "--out", folder, "--curriculum", curriculum).returncode == 0
    return {path.name: path.read_text("utf-8").splitlines() for path in sorted(folder.glob("*.jsonl"))}


def test_the_files_of_block_joined_are_at_once(pool: Path, tmp_path: Path) -> None:
    blocks = written(pool, tmp_path / "block", "block")
    at_once = written(pool, tmp_path / "once", "at-once")
    assert list(blocks) == ["block2.jsonl", "block4.jsonl", "block6.jsonl", "block8.jsonl"]
    joined = [line for lines in blocks.values() for line in lines[1:]]
    assert at_once["all.jsonl"] == [blocks["block2.jsonl"][0], *joined]
    assert {json.loads(line)["level"]["version"] for line in joined} == set(range(1, 9))  # 9 is in no block
    for name, lines in blocks.items():
        last = int(name[5])
        assert {json.loads(line)["level"]["version"] for line in lines[1:]} == {last - 1, last}


def test_a_manifest_says_which_checkpoint_samples_what(pool: Path, tmp_path: Path) -> None:
    sampled = {}
    for curriculum in ("block", "at-once", "easy", "hard"):
        written(pool, tmp_path / curriculum, curriculum)
        manifest = json.loads((tmp_path / curriculum / "manifest.json").read_text("utf-8"))
        assert manifest["curriculum"] == curriculum
        sampled[curriculum] = [(stage["file"], stage["sampled_by"]) for stage in manifest["stages"]]
    assert sampled["block"][0] == ("block2.jsonl", "base")
    assert sampled["block"][3] == ("block8.jsonl", "trained on block6.jsonl")
    assert sampled["at-once"] == [("all.jsonl", "base")]
    assert sampled["easy"] == [("block2.jsonl", "base")]
    assert sampled["hard"] == [("block8.jsonl", "base")]


def test_the_first_right_completion_of_each_prompt_is_selected(pool: Path, tmp_path: Path) -> None:
    items = list(BENCHMARK.items.read_pool(pool).items)
    solutions = tmp_path / "solutions.jsonl"
    assert called("training", pool, "--out", solutions).returncode == 0
    right = {
        record["id"]: record["solution"] for record in map(json.loads, solutions.read_text("utf-8").splitlines()[1:])
    }
    first, second, third = items[:3]
    lines = [(first, "{}"), (first, right[first.id]), (first, "later " + right[first.id]), (second, "nothing")]
    path = jsonl(tmp_path / "r.jsonl", *({"instanceId": item.id, "response": text} for item, text in lines))
    out = tmp_path / "chats.jsonl"
    done = called("training", pool, "--out", out, "--responses", path, "--select", "first-correct")
    (chat,) = map(json.loads, out.read_text("utf-8").splitlines())
    assert (chat["id"], chat["messages"][1]["content"]) == (first.id, right[first.id])
    assert chat["messages"][0]["content"] == first.task.prompt
    assert "1 prompts with a right completion, 1 without one are dropped" in done.stderr
    assert "block 2, intervention: 4 samples" in done.stderr
    answer = last_object(chat["messages"][1]["content"])
    assert answer is not None
    assert BENCHMARK.scoring.score(first, answer, ())["correct"] is True  # kept completions score 1
    assert third.id not in out.read_text("utf-8")


def test_completions_are_selected_from_what_score_reads(pool: Path, tmp_path: Path) -> None:
    """A chat, a batch line, a refusal with a right text and an answer in thoughts; prompts not asked for are no error.

    Exactly the lines that `score` calls right are selected.
    """
    solutions, verdicts, out = (tmp_path / name for name in ("solutions.jsonl", "verdicts.jsonl", "chats.jsonl"))
    assert called("training", pool, "--out", solutions).returncode == 0
    right = {
        record["id"]: record["solution"] for record in map(json.loads, solutions.read_text("utf-8").splitlines()[1:])
    }
    chat, batch, refusal, thoughts, other = list(right)[:5]
    message = {"role": "assistant", "content": right[chat]}
    body = {"choices": [{"message": {"role": "assistant", "content": right[batch]}, "finish_reason": "stop"}]}
    path = jsonl(
        tmp_path / "r.jsonl",
        {"id": chat, "model": "m", "messages": [{"role": "user", "content": "q"}, message]},
        {"custom_id": batch, "response": {"status_code": 200, "body": {**body, "model": "m"}}},
        {"id": refusal, "model": "m", "response": right[refusal], "refusal": "no"},
        {"id": thoughts, "model": "m", "response": f"<think>{right[thoughts]}"},
        {"id": other, "model": "m", "response": right[other]},
    )
    assert called("score", pool, path, "--out", verdicts).returncode == 0
    found = [
        line["instanceId"] for line in map(json.loads, verdicts.read_text("utf-8").splitlines()) if line["correct"]
    ]
    assert found == [chat, batch, other]
    only = [word for name in (chat, batch, refusal, thoughts) for word in ("--only", name)]
    done = called("training", pool, "--out", out, "--responses", path, "--select", "first-correct", *only)
    assert done.returncode == 0, done.stderr
    chats = {
        line["id"]: line["messages"][1]["content"] for line in map(json.loads, out.read_text("utf-8").splitlines())
    }
    assert chats == {chat: right[chat], batch: right[batch]}


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--curriculum", "none"], "unknown curriculum 'none'; known: block, at-once, easy, hard"),
        (["--curriculum", "block", "--order", "version"], "give one of --order, --curriculum and --select"),
        (["--select", "first-correct"], "give both --responses and --select"),
        (["--responses", "r.jsonl", "--select", "best"], "unknown selection 'best'"),
        (["--responses", "r.jsonl", "--select", "first-correct"], "has no instance 'x'"),
        (
            ["--responses", "bad.jsonl", "--select", "first-correct"],
            "bad.jsonl: line 1: no answer in it; its keys are instanceId; put it into the field response",
        ),
        (
            ["--responses", "nameless.jsonl", "--select", "first-correct"],
            "nameless.jsonl: line 1: it names no item; its keys are item, response; name the item in the field id",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(
    words: list[str],
    reason: str,
    pool: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    jsonl(Path("r.jsonl"), {"instanceId": "x", "response": "{}"})
    jsonl(Path("bad.jsonl"), {"instanceId": json.loads(pool.read_text("utf-8").splitlines()[1])["id"]})
    jsonl(Path("nameless.jsonl"), {"item": "x", "response": "{}"})
    assert reason in refused(capsys, "training", pool, "--out", "out", *words)
    assert not Path("out").exists()


# --- Certificates hold for what is true, and fail for changed claims, changed evidence and damaged data ---------------
@pytest.fixture(scope="module")
def small_items() -> list[CausimItem]:
    return [item for topology in TOPOLOGIES for item in generated_items(3, topology, 1, nodes=4, num_questions=2)]


def holds(certificate: Certificate, item: CausimItem) -> bool:
    return verify(certificate, evidence_of(item.task.source, item.task.question), VERIFIERS).holds


def with_data(certificate: Certificate, **changes: object) -> Certificate:
    return msgspec.structs.replace(certificate, data={**certificate.data, **changes})


def test_vacuous_edges_of_the_vectors_are_certified_and_the_other_edges_are_not() -> None:
    certified = refused = 0
    for record in vectors("program")[:40]:
        source = module_text(bundles()[record["id"]], comments=False)
        vacuous = {tuple(edge) for edge in record["expect"]["vacuous_edges"]}
        for child, node in record["expect"]["nodes"].items():
            for parent in node["parents"]:
                verdict = verify(vacuous_edge(source, parent, child), evidence_of(source), VERIFIERS)
                assert verdict.holds is ((parent, child) in vacuous)
                certified += verdict.holds
                refused += not verdict.holds
    assert certified > 5
    assert refused > 20


@pytest.mark.parametrize(("name", "edges"), [("asia", 1), ("cancer", 2), ("survey", 0)])
def test_vacuous_edges_of_the_grid_are_certified(name: str, edges: int) -> None:
    finding, certificates = vacuous_network_edges(name)
    source = module_text(bundle_of(network(name, "grid")), comments=False)
    assert (finding.data["grid"], finding.data["cells"]) == (edges, 0)
    assert len(certificates) == edges
    assert all(verify(certificate, evidence_of(source), VERIFIERS).holds for certificate in certificates)


def test_counts_and_unique_answers(small_items: list[CausimItem]) -> None:
    unique = 0
    for item in small_items:
        source, question = item.task.source, item.task.question
        worked = work_out(item.task.model, question)
        certificate = answer_count(source, question, len(worked.answers))
        assert holds(certificate, item)
        assert not holds(with_data(certificate, size=len(worked.answers) + 1), item)
        assert not holds(with_data(certificate, size=True), item)
        for answer in list(worked.answers.values())[:2]:
            assert holds(unique_answer(source, question, answer), item) is (len(worked.answers) == 1)
            changed = dict.fromkeys(answer, '"nowhere"')
            assert not holds(unique_answer(source, question, changed), item)
        unique += len(worked.answers) == 1
    assert unique > 30


def _minimal(small_items: list[CausimItem]) -> Iterator[tuple[CausimItem, Certificate]]:
    for item in small_items:
        question, model = item.task.question, item.task.model
        found = minimal_evidence(model, question, item.sealed.world)
        assert isinstance(found, Found)
        yield (
            item,
            minimal_evidence_claim(
                item.task.source,
                question,
                item.sealed.world,
                found.value.observe,
                found.value.against,
                observable(model, question),
            ),
        )


def test_minimal_evidence_is_checked_without_the_engine_that_found_it(small_items: list[CausimItem]) -> None:
    several = 0
    for item, certificate in _minimal(small_items):
        assert holds(certificate, item)
        observe = certificate.data["observe"]
        if observe:
            assert not holds(with_data(certificate, observe=observe[1:]), item)
            assert not holds(with_data(certificate, against=[]), item)
            assert not holds(with_data(certificate, against=[item.sealed.world]), item)
        spare = [name for name in certificate.data["candidates"] if name not in observe]
        if spare:
            assert not holds(with_data(certificate, observe=[*observe, spare[0]]), item)
        several += len(observe) > 1
    assert several > 10


def test_other_evidence_and_damaged_data_do_not_pass(small_items: list[CausimItem]) -> None:
    one, other = small_items[0], small_items[1]
    certificate = answer_count(one.task.source, one.task.question, one.labels.size)
    assert not holds(certificate, other)
    assert not holds(msgspec.structs.replace(certificate, data={}), one)
    assert not holds(msgspec.structs.replace(certificate, claim="something"), one)
    members = AnswerSet(one.task.model, one.task.question)
    picked = members.pick()
    assert isinstance(picked, Found)
    assert not holds(with_data(unique_answer(one.task.source, one.task.question, picked.value), answer=3), one)
