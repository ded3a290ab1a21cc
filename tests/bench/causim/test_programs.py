"""Programs of others by command: checked, compared, converted; a pool as the paper's folder and back."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from calibrant.bench.causim.benchmark import BENCHMARK
from calibrant.bench.core.registry import bundled_sample
from calibrant.dsl.causim import networks
from calibrant.dsl.causim.bundle import load_source, module_text
from calibrant.dsl.causim.external_programs.check import FaultKind
from calibrant.dsl.causim.external_programs.sources import bundle_of_source
from calibrant.dsl.causim.prompt import same_model
from calibrant.dsl.causim.reference import work_out
from calibrant.solvers.causim import generation
from tests.dsl.causim.external_programs.test_check import CHAIN, FAULTS
from tests.support.commands import called, jsonl, refused


def checked(*words: object) -> tuple[int, dict[str, Any]]:
    """Return the exit code and the report of `pool check --json`."""
    done = called("pool", "check", *words, "--json")
    return done.returncode, json.loads(done.stdout)


def test_programs_with_one_planted_fault_each_get_its_name(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "programs.jsonl", *({"id": str(i), "source": f[0]} for i, f in enumerate(FAULTS)))
    code, report = checked(path)
    assert code == 1
    for (_, kind, line, node, words), program in zip(FAULTS, report["programs"], strict=True):
        if kind in (FaultKind.NODE_COUNT, FaultKind.TOPOLOGY):
            continue  # these need an option, below
        assert program["fault"] is not None, words
        assert (program["fault"]["kind"], program["fault"]["line"], program["fault"]["node"]) == (kind, line, node)


def test_number_of_nodes_and_topology_are_options(tmp_path: Path) -> None:
    path = tmp_path / "chain.py"
    path.write_text(CHAIN, "utf-8")
    assert checked(path, "--nodes", 2, "--topology", "chain")[0] == 0
    code, report = checked(path, "--nodes", 3)
    assert (code, report["programs"][0]["fault"]["kind"]) == (1, "node_count")
    module = CHAIN.replace("import random", "import random\nimport os", 1)
    three = tmp_path / "three.jsonl"
    jsonl(three, {"id": "a", "source": module}, {"id": "b", "source": networks.program(4)})
    code, report = checked(three, "--topology", "inverted_star")
    assert [program["fault"] and program["fault"]["kind"] for program in report["programs"]] == [None, None]
    code, report = checked(three, "--topology", "chain")
    assert [program["fault"] and program["fault"]["kind"] for program in report["programs"]] == [None, "topology"]
    assert report["outcomes"] == {"correct": 1, "topology": 1}


def test_shares_stand_beside_the_papers_tables(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "p.jsonl", {"id": "x", "source": networks.program(16)}, {"id": "y", "source": "def"})
    printed = called("pool", "check", path, "--reference", "nihss")
    assert printed.returncode == 1
    lines = [line.split() for line in printed.stdout.splitlines()]
    assert ["Invalid", "syntax", "1", "50", "[9,", "91]", "14", "3"] in lines
    assert ["Graph", "is", "disconnected", "0", "0", "[0,", "66]", "75", "3"] in lines
    assert ["these", "1", "50", "[9,", "91]"] in lines
    assert ["node-by-node", "(paper)", "52", "52", "[42,", "62]"] in lines


def test_structure_beside_a_reference_by_names_and_by_a_map(tmp_path: Path) -> None:
    reference = tmp_path / "reference.py"
    reference.write_text(CHAIN, "utf-8")
    renamed = CHAIN.replace("f_B", "f_Outcome").replace("U_B", "U_Outcome").replace('"B"', '"Outcome"')
    path = jsonl(tmp_path / "p.jsonl", {"id": "x", "source": renamed})
    code, report = checked(path, "--reference", reference)
    structure = report["programs"][0]["structure"]
    assert (code, structure["match"], structure["missing_nodes"], structure["extra_nodes"]) == (
        1,
        False,
        ["B"],
        ["Outcome"],
    )
    assert structure["missing_edges"] == [["A", "B"]]
    code, report = checked(path, "--reference", reference, "--map", "Outcome=B")
    assert (code, report["programs"][0]["structure"]["match"], report["structures_of_reference"]) == (0, True, 1)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["p.jsonl", "--topology", "ring"], "unknown topology 'ring'; known: chain"),
        (["p.jsonl", "--map", "a=b"], "give --reference"),
        (["p.jsonl", "--reference", "nihss", "--map", "a"], "'a' is not NAME=REFERENCE_NAME"),
        (["p.jsonl", "--reference", "nothing.py"], "--reference: nothing.py"),
        (["p.jsonl", "--fields"], "--fields applies to ReplaySCM"),
        (["p.jsonl", "pool.jsonl"], "p.jsonl holds programs, others are pools"),
        (["pool.jsonl", "--nodes", "3"], "they apply to programs; pool.jsonl is a pool"),
        (["empty"], "no programs: neither state.json"),
        (["broken.json"], "broken.json"),
        (["none.json"], "none.json: no programs: no SCM has a history"),
        (["bad.jsonl"], "bad.jsonl: line 2"),
        (["latin.py"], "no UTF-8 text"),
    ],
)
def test_what_is_no_program_is_refused_in_one_line(
    words: list[str], reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    jsonl(Path("p.jsonl"), {"id": "x", "source": CHAIN})
    Path("pool.jsonl").write_bytes(bundled_sample("causim").read_bytes())
    Path("empty").mkdir()
    Path("broken.json").write_text('{"scms": [{"scm_id": 1}]}', "utf-8")
    head = {"notes": "x" * 1_000}  # somebody's own keys come first
    Path("none.json").write_text(json.dumps({**head, "scms": [{"scm_id": "a", "history": []}]}), "utf-8")
    jsonl(Path("bad.jsonl"), {"id": "x", "source": CHAIN}, {"id": "y"})
    Path("latin.py").write_bytes(b"# \xe9\n")
    assert reason in refused(capsys, "pool", "check", *words)


def test_a_pool_unpacked_and_converted_is_the_pool(tmp_path: Path) -> None:
    """The bundled items: all types and topologies, built-in models too."""
    pool = bundled_sample("causim")
    assert called("pool", "unpack", pool, tmp_path / "folder").returncode == 0
    assert called("pool", "convert", tmp_path / "folder", tmp_path / "back.jsonl").returncode == 0
    assert (tmp_path / "back.jsonl").read_bytes() == pool.read_bytes()
    state = json.loads((tmp_path / "folder" / "state.json").read_text("utf-8"))
    names = {f"scm_{scm['scm_id']}" for scm in state["scms"]}
    assert names | {"state.json", "selected.json", "pool.json"} == {
        path.name for path in (tmp_path / "folder").iterdir()
    }


def test_an_unpacked_program_has_the_files_of_the_paper(tmp_path: Path) -> None:
    line = ["generate", "--benchmark", "causim", "--strata", "chain", "--seed", 2, "--out", tmp_path / "a.jsonl"]
    assert called(*line, "-o", "programs=1", "-o", "versions=2-3", "-o", "types=intervention,abduction").returncode == 0
    assert called("pool", "unpack", tmp_path / "a.jsonl", tmp_path / "folder").returncode == 0
    place = tmp_path / "folder" / "scm_chain-0000"
    base = {"scm_chain-0000{}.py", "scm_chain-0000{}_nocomments.py", "bundle{}.json", "instantiations{}.json"}
    expected = {name.format(suffix) for name in base for suffix in ("", "_v2", "_v3")}
    assert {path.name for path in place.iterdir() if path.is_file()} == expected
    assert (place / "bundle.json").read_bytes() == (place / "bundle_v3.json").read_bytes()
    assert json.loads((tmp_path / "folder" / "selected.json").read_text("utf-8")) == ["chain-0000"]
    runs = json.loads((place / "instantiations_v3.json").read_text("utf-8"))
    assert [run["seed"] for run in runs] == sorted({run["seed"] for run in runs})
    model = load_source((place / "scm_chain-0000_v3.py").read_text("utf-8"))
    assert all(
        run["outputs"].keys() == set(model.names) and run["exogenous"].keys() == set(model.noises) for run in runs
    )
    queries = sorted((place / "causal_queries").rglob("*.json"))
    assert {path.parts[-3] for path in queries} == {"intervention", "abduction"}
    for path in queries:
        for instance in json.loads(path.read_text("utf-8"))["instances"]:
            stated = instance["expected_output"]
            assert stated["exhausted"] is (len(stated["support"]) == stated["size"])


def foreign_folder(tmp_path: Path) -> Path:
    """Return an unpacked folder as somebody else would have written it: without what only our files hold."""
    line = ["generate", "--benchmark", "causim", "--strata", "tree", "--seed", 5, "--out", tmp_path / "a.jsonl"]
    assert called(*line, "-o", "programs=1", "-o", "versions=3", "-o", "each=2").returncode == 0
    folder = tmp_path / "theirs"
    assert called("pool", "unpack", tmp_path / "a.jsonl", folder).returncode == 0
    (folder / "pool.json").unlink()
    for path in folder.rglob("causal_queries_v*.json"):
        record = json.loads(path.read_text("utf-8"))
        for instance in record["instances"]:
            del instance["item"]
        path.write_text(json.dumps(record), "utf-8")
    return folder


def test_query_files_of_others_become_items_with_labels_of_their_own(tmp_path: Path) -> None:
    folder = foreign_folder(tmp_path)
    assert called("pool", "convert", folder, tmp_path / "b.jsonl", "-o", "view=prose").returncode == 0
    before, after = (BENCHMARK.items.read_pool(tmp_path / name).items for name in ("a.jsonl", "b.jsonl"))
    questions = {str(item.task.question): item for item in before}
    assert len(after) == len(before) == len(questions)
    for item in after:
        original = questions[str(item.task.question)]
        assert (item.labels, item.task.scenario, item.vocabulary) == (original.labels, original.task.scenario, "other")
        assert item.labels.size == len(work_out(item.task.model, item.task.question).answers)
        assert item.task.view == "prose"


def test_other_answers_than_a_question_has_are_counted(tmp_path: Path) -> None:
    folder = foreign_folder(tmp_path)
    path = sorted(folder.rglob("causal_queries_v*.json"))[0]
    record = json.loads(path.read_text("utf-8"))
    record["instances"][0]["expected_output"]["support"][0] = {"nothing": 1}
    path.write_text(json.dumps(record), "utf-8")
    assert "1 question states other answers" in called("pool", "convert", folder, tmp_path / "b.jsonl").stderr


def test_a_wrong_scenario_or_program_in_query_files_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = foreign_folder(tmp_path)
    path = sorted(folder.rglob("causal_queries_v*.json"))[0]
    record = json.loads(path.read_text("utf-8"))
    wrong = {"deterministic": "stochastic"}.get(record["meta"]["scenario"], "deterministic")
    path.write_text(json.dumps(record | {"meta": record["meta"] | {"scenario": wrong}}), "utf-8")
    assert f"the file states {wrong}" in refused(capsys, "pool", "convert", folder, tmp_path / "b.jsonl")
    path.write_text(json.dumps({"meta": record["meta"]}), "utf-8")
    place = path.relative_to(folder).as_posix()
    assert f"{place}: Object missing required field" in refused(capsys, "pool", "convert", folder, tmp_path / "b.jsonl")
    path.write_text(json.dumps(record | {"meta": record["meta"] | {"v": 10**400}}), "utf-8")  # in no file's name
    assert "a number from 0 to 10000" in refused(capsys, "pool", "convert", folder, tmp_path / "b.jsonl")
    path.write_text(json.dumps(record | {"meta": record["meta"] | {"v": 9}}), "utf-8")
    assert "no program" in refused(capsys, "pool", "convert", folder, tmp_path / "b.jsonl")
    assert not (tmp_path / "b.jsonl").exists()


def test_state_files_and_modules_become_pools_by_options(tmp_path: Path) -> None:
    folder = foreign_folder(tmp_path)
    (tmp_path / "one.py").write_text(CHAIN, "utf-8")
    for source in (folder / "state.json", tmp_path / "one.py", folder):
        pool = tmp_path / f"of_{source.name}.jsonl"
        done = called("pool", "convert", source, pool, "-o", "each=2", "-o", "types=intervention")
        assert done.returncode == 0, done.stderr
        items = BENCHMARK.items.read_pool(pool).items
        assert {item.task.question.type for item in items} == {"intervention"}
        assert called("pool", "check", pool).returncode == 0


def test_a_folder_with_files_is_not_unpacked_into(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "mine.txt").write_text("mine", "utf-8")
    assert "mine.txt is there already" in refused(capsys, "pool", "unpack", bundled_sample("causim"), tmp_path / "x")
    assert "does not support" in refused(capsys, "pool", "unpack", bundled_sample("causalab"), tmp_path / "y")


def test_nothing_of_a_program_is_executed(tmp_path: Path) -> None:
    touched = tmp_path / "touched"
    hostile = f"open({str(touched)!r}, 'w')\n"
    sources = [hostile + CHAIN, CHAIN.replace("return u", f"return open({str(touched)!r}, 'w')", 1)]
    jsonl(tmp_path / "p.jsonl", *({"id": str(i), "source": text} for i, text in enumerate(sources)))
    (tmp_path / "one.py").write_text(sources[0], "utf-8")
    before = set(sys.modules)
    for path in (tmp_path / "p.jsonl", tmp_path / "one.py"):
        assert called("pool", "check", path).returncode == 1
        assert called("pool", "convert", path, tmp_path / "x.jsonl").returncode == 2
    assert not touched.exists()
    assert not {name for name in set(sys.modules) - before if name in ("one", "p")}


def test_a_module_with_docstrings_is_taken_apart_and_means_the_same() -> None:
    source = CHAIN.replace("def f_B(a, u):\n", 'def f_B(a, u):\n    """Say "b"."""\n    # add\n')
    model = load_source(source)
    bundle = bundle_of_source(source, model, "chain")
    assert bundle.structural[1].doc == 'Say "b".'
    assert "# add" in bundle.structural[1].body or "return a + u" in bundle.structural[1].body
    assert same_model(load_source(module_text(bundle)), model)


def test_a_report_of_generation_has_drafts_by_version_and_leaves_the_pool_as_it_is(tmp_path: Path) -> None:
    line = ["generate", "--benchmark", "causim", "--seed", "3", "--strata", "chain,layered", "--workers", "1"]
    line += ["-o", "programs=2", "-o", "versions=1,3"]
    assert called(*line, "--out", tmp_path / "a.jsonl").returncode == 0
    done = called(*line, "--out", tmp_path / "b.jsonl", "--report", tmp_path / "report.json")
    assert done.returncode == 0
    first, second = ((tmp_path / name).read_text("utf-8").splitlines()[1:] for name in ("a.jsonl", "b.jsonl"))
    assert first == second
    report = json.loads((tmp_path / "report.json").read_text("utf-8"))
    for suite in ("chain", "layered"):
        of = report[suite]
        assert {version: drafts["accepted"] for version, drafts in of["drafts"].items()} == {"1": 2, "2": 2, "3": 2}
        number = sum(sum(drafts.values()) for drafts in of["drafts"].values())
        assert f"{suite}: {number} drafts, {100 * of['accepted_share']:.0f} % accepted" in done.stderr
        assert {nodes: motif["models"] for nodes, motif in of["motifs"].items()} == {"1": 2, "3": 2}
        assert of["mechanisms"] == sum(of["support_sizes"].values()) == 6
        assert of["distinct_tables"]["at_least"] <= of["distinct_tables"]["at_most"] <= 6
    assert report["chain"]["motifs"]["3"] == {"models": 2, "forks": 0.0, "colliders": 0.0}
    refused_line = called("generate", "--benchmark", "causim", "--seed", "1", "--out", "x", "--report", "r.json")
    assert "give -o programs=N" in refused_line.stderr


def test_further_programs_fill_versions_with_few_questions(tmp_path: Path) -> None:
    line = ["generate", "--benchmark", "causim", "--seed", "3", "--strata", "chain,layered", "--workers", "1"]
    line += ["-o", "programs=2", "-o", "versions=1,2", "-o", "each=3", "-o", "heldout=1", "-o", "types=counterfactual"]
    few = called(*line, "--out", tmp_path / "few.jsonl")
    filled = called(*line, "--out", tmp_path / "all.jsonl", "-o", "fill=true")
    assert "-o fill=true" in few.stderr
    assert "further programs have them" in filled.stderr

    def items(name: str) -> list[dict[str, Any]]:
        return [json.loads(text) for text in (tmp_path / name).read_text("utf-8").splitlines()[1:]]

    numbers: set[str] = set()
    for prefix, programs in (("", 1), ("heldout_", 1)):
        requested, further = items(f"{prefix}few.jsonl"), items(f"{prefix}all.jsonl")
        assert further[: len(requested)] == requested
        assert len({item["id"] for item in further}) == len(further)
        cells = Counter((item["topology"], item["v"]) for item in further)
        assert set(cells.values()) == {3 * programs}
        assert len(cells) == 4
        scms = {item["scm_id"] for item in further}
        assert not scms & numbers
        numbers |= scms
    assert max(Counter((i["scm_id"], i["v"]) for i in items("all.jsonl")).values()) == 3


def test_filling_stops_where_programs_have_no_such_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generation, "MAX_EMPTY", 2)
    line = ["generate", "--benchmark", "causim", "--seed", "3", "--strata", "chain", "--workers", "1"]
    line += ["-o", "programs=1", "-o", "versions=1", "-o", "types=intervention", "-o", "effect=some", "-o", "fill=true"]
    done = called(*line, "--out", tmp_path / "none.jsonl")  # nothing outside `do` can change in a single node
    assert "1 of 1 versions and types have fewer than 1 question: 1 fewer; 0 further programs have 0 of them" in (
        done.stderr
    )
