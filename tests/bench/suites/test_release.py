"""A release is the same when it is built again, commits to gold without revealing it, and answers its checklist."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant.bench.suites.checklist import NOT_STATED, QUESTIONS, Answer, Evidence, require_checkable
from calibrant.bench.suites.eee import source_of
from calibrant.bench.suites.manifest import (
    RESERVED_NAMES,
    SUMS,
    Commitments,
    Opening,
    check_opening,
    differences,
    item_salt,
    read_manifest,
    read_specification,
    tree_digests,
)
from calibrant.bench.suites.release import REQUIRED, build_release, check_described, make_lock
from calibrant.datasets import bundled_pool
from calibrant.dsl.errors import CalibrantError
from tests.support.commands import refused
from tests.support.suites import MASTER, SPECIFICATION, build_apart, write_specification


def test_a_second_build_from_specification_and_lock_has_the_same_bytes(
    suite: Path, specification: Path, tmp_path: Path
) -> None:
    """In another process, with another hash seed and two workers."""
    build_apart(specification, tmp_path / "again", 2, "--lock", str(suite / "gold" / "suite.lock"))
    assert tree_digests(tmp_path / "again") == tree_digests(suite)


def test_the_folders_list_their_digests(suite: Path) -> None:
    for part in ("public", "gold"):
        assert differences(suite / part) == {}
        assert len((suite / part / SUMS).read_text().splitlines()) == len(tree_digests(suite / part)) - 1


def test_nothing_public_names_items_seeds_or_answers(suite: Path) -> None:
    items = [json.loads(line) for line in _lines(suite / "gold" / "openings.jsonl")]
    records = [json.loads(item["gold"]) for item in items]
    public = "\n".join(path.read_text(encoding="utf-8") for path in (suite / "public").rglob("*") if path.is_file())
    assert len(records) == 7
    assert [record["id"] for record in records if f'"{record["id"]}' in public] == []
    assert MASTER not in public
    assert [item["salt"] for item in items if item["salt"] in public] == []
    assert '"seed"' not in public
    assert {line for path in (suite / "public").rglob("items.jsonl") for line in json.loads(_lines(path)[0])} == {
        *("id", "benchmark", "system", "prompt", "digest", "canary")
    }


def test_the_public_items_are_named_where_a_pool_is_read(
    suite: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for items in sorted((suite / "public").glob("*/items.jsonl")):
        message = refused(capsys, "prompts", items, "--out", tmp_path / "prompts.jsonl")
        assert message.startswith("items.jsonl: no pool, but the public items of a suite or data set: each line holds")
        fields = message.partition("in the fields ")[2].partition(",")[0].split(" and ")
        assert json.loads(items.read_text("utf-8").splitlines()[0]).keys() >= {*fields, "id"}


def test_each_item_opens_the_commitment_and_no_changed_one_does(suite: Path) -> None:
    root = read_manifest(suite).root
    for line in _lines(suite / "gold" / "openings.jsonl"):
        fields = json.loads(line)
        opening = Opening(fields["id"], fields["salt"], fields["gold"], tuple(map(tuple, fields["path"])))
        assert check_opening(opening, root)
        assert not check_opening(opening._replace(gold=opening.gold + " "), root)
        assert not check_opening(opening._replace(id="item-0"), root)
        assert not check_opening(opening._replace(salt=item_salt("cd" * 32, opening.id)), root)


@given(st.dictionaries(st.text(max_size=4), st.text(max_size=4), min_size=1, max_size=9))
def test_paths_lead_to_the_root(gold: dict[str, str]) -> None:
    commitments = Commitments.of_gold(MASTER, gold.items())
    for name, text in gold.items():
        opening = Opening(name, item_salt(MASTER, name), text, commitments.path(name))
        assert check_opening(opening, commitments.root)
        assert not check_opening(opening._replace(gold=text + "x"), commitments.root)


def test_the_checklist_answers_every_question_and_states_nothing_of_its_own(suite: Path) -> None:
    answers = msgspec.json.decode((suite / "public" / "checklist.json").read_bytes(), type=list[Answer])
    assert [answer.question for answer in answers] == [question.text for question in QUESTIONS]
    statements = [answer.answer for answer in answers if answer.kind == "statement"]
    assert {*statements} == {NOT_STATED, "None: answers are executed."}
    proofs = [answer for answer in answers if answer.kind == "proof"]
    assert len(proofs) >= 6
    for answer in proofs:
        require_checkable(answer, suite)
    page = (suite / "public" / "datasheet.md").read_text(encoding="utf-8")
    assert page.count(NOT_STATED) == statements.count(NOT_STATED) + 10


def test_the_datasheet_has_statements_of_the_specification_and_counts_of_the_files_alone(
    suite: Path, specification: Path
) -> None:
    """Every line: fixed words, a text of the specification, a number counted here, or an answer of the checklist."""
    spec = tomllib.loads(specification.read_text(encoding="utf-8"))
    parts = re.split(r"^## .*\n", (suite / "public" / "datasheet.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    head, composition, statements, checklists = (part.strip().splitlines() for part in parts)
    assert head[1] == f"# Datasheet of {spec['title']} {spec['version']}"
    assert len([line for line in head if line]) == 3  # with the canary, and the sentence on what follows from what
    stated = {spec["summary"], "2026-01-02", spec["license"], spec["url"], *spec["creators"], "private"}
    texts = [line.partition("** ")[2] for line in statements]
    assert stated | {NOT_STATED} == set(texts)
    for pool, line in zip(spec["pool"], composition[2:-3], strict=True):  # a sentence on open items below
        name, _, items, _, left, certificates = (cell.strip() for cell in line.strip("|").split("|"))
        folder = suite / "gold" / pool["name"]
        assert (name, int(items)) == (pool["name"], len(_lines(suite / "public" / name / "items.jsonl")))
        assert int(certificates) == len(list((folder / "certificates").iterdir()))
        assert sum(map(int, re.findall(r"\d+", left))) == int(items)
    answers = msgspec.json.decode((suite / "public" / "checklist.json").read_bytes(), type=list[Answer])
    assert [line.strip("| ").split(" | ")[:3] for line in checklists[2:]] == [
        [answer.question, answer.source, answer.kind] for answer in answers
    ]


def test_a_suite_without_an_address_names_none(tmp_path: Path) -> None:
    text = SPECIFICATION.replace('url = "https://example.org/two-pools"\n', "")
    path = write_specification(tmp_path, text.replace("per_stratum = 2", "per_stratum = 1").replace("= 3", "= 1"))
    build_release(path, tmp_path / "suite")
    public = tmp_path / "suite" / "public"
    assert "- **Address** not stated" in _lines(public / "datasheet.md")
    page = (public / "index.html").read_text(encoding="utf-8")
    assert "<code>calibrant pool check</code>" in page
    assert "`calibrant" not in page
    described = json.loads((public / "croissant.json").read_text(encoding="utf-8"))
    assert (described["url"], "url = " in described["citeAs"]) == ("index.html", False)
    manifest = read_manifest(tmp_path / "suite")
    assert (manifest.url, source_of(manifest)) == ("", {"dataset_name": "two-pools-1.0", "source_type": "other"})


@pytest.mark.parametrize(
    "evidence", [(), (Evidence("public/none.json", "0" * 64),), (Evidence("public/suite.json", "0" * 64),)]
)
def test_a_proof_without_a_file_that_can_be_checked_is_refused(suite: Path, evidence: tuple[Evidence, ...]) -> None:
    with pytest.raises(CalibrantError, match="checklist: ABC"):
        require_checkable(Answer("ABC II.7", "Is it verified?", "proof", "yes", evidence), suite)
    require_checkable(Answer("ABC II.7", "Is it verified?", "statement", "yes"), suite)


def test_metadata_without_a_required_field_or_with_a_wrong_digest_is_refused(suite: Path) -> None:
    described = json.loads((suite / "public" / "croissant.json").read_text(encoding="utf-8"))
    check_described(described, suite / "public")
    for name in REQUIRED:
        with pytest.raises(CalibrantError, match=f"{name} is missing"):
            check_described({key: value for key, value in described.items() if key != name}, suite / "public")
    described["distribution"][0]["sha256"] = "0" * 64
    with pytest.raises(CalibrantError, match="another digest"):
        check_described(described, suite / "public")


DRAWN = 'seed = 5\nstrata = "easy-3,order-2-of-4"\nper_stratum = 1\n'


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        ("seed = 5\n", "", "suite.toml: pool 1: give one of seed, file and bundled, not none"),
        ('master = "master.key"\n', "", "suite.toml: private gold needs a master, a file with 64 hexadecimal digits"),
        ('name = "questions"', 'name = "detectors"', "suite.toml: two pools have the same name"),
        (
            'version = "1.0"',
            'version = "mini-1"',
            "suite.toml: version: must have another form (numbers with dots, 1.0 or 1.0.0)",
        ),
        ("[statements]", '[statements]\njudges = "x"', "suite.toml: statements: unknown key 'judges'; known: judge,"),
        ("harden = {}", "hardn = {}", "suite.toml: pool 2: unknown field `hardn`; did you mean harden? known: "),
        ("harden = {}", "harden = {goal = 3}", "--goal applies to ReplaySCM, not to CauSim (questions)"),
        (
            "harden = {}",
            "harden = {gaol = 3}",
            "suite.toml: pool 2: unknown option 'gaol' of `harden`; ",
        ),
        ("harden = {}", "audit = {nothing = 3}", "suite.toml: pool 2: unknown option 'nothing' of `audit`; "),
        (DRAWN, 'file = "nothing.jsonl"\n', "suite.toml: pool 1: nothing.jsonl: No such file or directory"),
        (DRAWN, 'bundled = "nothing"\n', "suite.toml: pool 1: unknown pool 'nothing'; known: ordered, "),
        ('rows = ["exact", "copy"]', 'rows = ["nothing"]', "suite.toml: pool 2: unknown protocol 'nothing'; known: "),
        (
            'rows = ["static", "quiet"]',
            'rows = ["static"]\nharden = {}',
            "suite.toml: pool 1: `harden` does not support Extended blickets; it supports ReplaySCM and CauSim",
        ),
        ('strata = "chain"', 'strata = "chains"', "unknown suite 'chains'; did you mean chain?"),
        (
            "https://example.org",
            "example.org",
            "suite.toml: url: must begin with https:// or http:// and have no blanks",
        ),
        ("date = 2026-01-02", "date = soon", "suite.toml: not TOML"),
    ],
)
def test_a_wrong_specification_is_one_line(
    before: str, after: str, line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = SPECIFICATION.replace("per_stratum = 2", "per_stratum = 1").replace(before, after)
    path = write_specification(tmp_path / "spec", text)
    out = tmp_path / "out"
    assert line in refused(capsys, "release", path, "--out", out, "--workers", "1")
    assert [path.name for path in tmp_path.iterdir()] == ["spec"]


def test_an_unknown_suite_of_a_late_pool_is_refused_before_any_is_drawn(tmp_path: Path) -> None:
    path = write_specification(tmp_path / "spec", SPECIFICATION.replace('strata = "chain"', 'strata = "chains"'))
    with pytest.raises(CalibrantError, match=r"^suite.toml: pool 2: unknown suite 'chains'; did you mean chain\?"):
        make_lock(path, read_specification(path))


def refused_release(capsys: pytest.CaptureFixture[str], folder: Path, lines: Sequence[Any], row: str) -> str:
    """Return why a suite of one own pool is refused; lines: the pool's, as JSON."""
    mine = folder / "mine.jsonl"
    mine.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    head = SPECIFICATION[: SPECIFICATION.index("[[pool]]")]
    pool = f'[[pool]]\nname = "mine"\nfile = "{mine}"\nrows = ["{row}"]\n'
    path = write_specification(folder / "spec", head + pool)
    line = refused(capsys, "release", path, "--out", folder / "out")
    assert not (folder / "out").exists()
    return line


def test_an_item_with_nothing_held_out_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    items = [json.loads(line) for line in _lines(bundled_pool("replayscm-episodes"))[:3]]
    items[2]["sealed"]["heldout"] = []
    line = refused_release(capsys, tmp_path, items, "abstain")
    assert line.startswith(
        f"suite.toml: pool 1: item '{items[2]['id']}' holds nothing out, so that no answer is right or wrong"
    )


def test_an_item_whose_gold_does_not_score_right_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its only held-out world sets every variable that has a mechanism."""
    items = [json.loads(line) for line in _lines(bundled_pool("hidden-roots"))[:2]]
    sealed = items[1]["sealed"]
    constants = dict.fromkeys(sealed["gold"], 0)
    rows = ["0" * len(items[1]["variables"])] * len(items[1]["units"])
    sealed["heldout"] = [{"id": "heldout_00", "rows": rows, "constants": constants}]
    items[1]["shares_units"] = False
    line = refused_release(capsys, tmp_path, items, "majority")
    assert line.startswith(f"suite.toml: pool 1: item '{items[1]['id']}': its own gold does not score right")


def test_a_lock_of_other_inputs_is_refused(suite: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_specification(tmp_path / "spec", SPECIFICATION + "\n# changed\n")
    line = refused(capsys, "release", path, "--out", tmp_path / "out", "--lock", suite / "gold" / "suite.lock")
    assert line.startswith("suite.lock: suite.toml is ")


def test_the_bundled_specification_can_be_read() -> None:
    folder = Path(__file__).parents[3] / "bench" / "suites" / "data"
    spec = read_specification(folder / "calibrant_mini.toml")
    assert [pool.name for pool in spec.pools] == ["replayscm", "blickets", "causalab", "causim"]
    assert spec.url is None


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("name", ["rows", "certificates", "index", "con", "lpt1"])
def test_a_pool_has_no_name_that_a_release_or_a_board_has(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    specification = write_specification(tmp_path, SPECIFICATION.replace('name = "questions"', f'name = "{name}"'))
    message = refused(capsys, "release", specification, "--out", tmp_path / "out")
    assert message.startswith(f"suite.toml: pool 2: a pool cannot be called {name}: ")
    assert not (tmp_path / "out").exists()


def test_every_name_beside_the_folders_and_pages_of_pools_is_reserved(suite: Path) -> None:
    pools = {"detectors", "questions"}
    beside = {path.name for part in ("gold", "public") for path in (suite / part).iterdir()}
    inside = {path.name for pool in pools for path in (suite / "gold" / pool).iterdir() if path.is_dir()}
    assert pools < beside
    assert {name for name in (beside - pools) | inside if "." not in name and name != "SHA256SUMS"} <= RESERVED_NAMES
