"""What tables say of their own columns, files without items, and text beside a page."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from calibrant.bench.core.registry import bundled_pool, bundled_sample
from calibrant.bench.report.legend import attribution_legend, tie_legend
from tests.support.commands import CHECKOUT, called, refusal, refused

HEADING = re.compile(r"(?:^|; |\. )([A-Z]\w*(?:[| ]\w+)*|k<=\d(?: to k<=\d)?): ")
LABELS = {"Setting", "System", "Pool", "n"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a pool of one open item of its author's, where commands run."""
    shutil.copy(CHECKOUT / "docs" / "examples" / "switches.jsonl", tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def explained(text: str) -> set[str]:
    return set(HEADING.findall(" ".join(text.split())))


def test_every_column_of_attributions_is_explained_and_no_other(folder: Path) -> None:
    assert called("run", "exact", "switches.jsonl", "--out", "runs").returncode == 0
    line = ["table", "runs", "--attribution", "--pool", "switches.jsonl"]
    done = called(*line)
    blocks = [block.splitlines()[0].split() for block in done.stdout.split("\n\n")]
    assert explained(done.stderr) == {heading for block in blocks for heading in block} - LABELS
    assert "Uniform weighs all that fit alike" in " ".join(done.stderr.split())
    assert explained(called(*line, "--columns", "earned,decided").stderr) == {"Earned", "Decided"}
    assert explained(called("table", "runs").stderr) == set()
    assert attribution_legend(["n", "Chance"], 80) == ["Chance: expected rate of a draw from what fits."]


@pytest.mark.parametrize("width", ["60", "80", "200"])
def test_every_column_of_an_audit_is_explained_and_no_other(
    width: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    table, legend, *_ = called("audit", "switches.jsonl").stdout.split("\n\n")
    _, heads, *_ = table.splitlines()
    headings = re.split(r"\s{2,}", heads)
    counts = [heading for heading in headings if heading.startswith("k<=")]
    stated = {*headings, f"{counts[0]} to {counts[-1]}"} - {*counts, "Instance", "Setting"}
    assert explained(legend) == stated
    assert max(map(len, legend.splitlines())) <= int(width)


def test_the_row_of_the_chosen_answer_is_explained(folder: Path) -> None:
    shutil.copy(bundled_pool("block"), "block.jsonl")
    done = called("run", "exact", "block.jsonl", "--out", "runs", "--workers", "1")
    assert "exact (chosen)  " in done.stdout
    assert "exact (chosen): the answer that the tie rule takes of them." in " ".join(done.stderr.split())
    assert tie_legend(None, 80) == []


@pytest.mark.parametrize("name", ["replayscm", "blickets", "causalab", "causim", "logic"])
def test_a_pool_without_items_is_one_line(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    source = bundled_pool("block") if name == "replayscm" else bundled_sample(name)
    Path("empty.jsonl").write_text(source.read_text("utf-8").splitlines()[0] + "\n", "utf-8")
    lines = ("list POOL", "list POOL --why --json", "pool check POOL", "pool stats POOL", "audit POOL")
    for line in (*lines, "run exact POOL --out runs", "prompts POOL --out prompts.jsonl"):
        assert refused(capsys, *line.replace("POOL", "empty.jsonl").split()) == "no items in empty.jsonl"
    assert [path.name for path in tmp_path.glob("*") if path.is_file()] == ["empty.jsonl"]


def test_a_pool_of_other_items_is_refused_with_the_right_one(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In the present folder, or a bundled one; the number of ids that are not in it is stated."""
    two = bundled_pool("block").read_text("utf-8").splitlines(keepends=True)[:3]
    Path("two.jsonl").write_text("".join(two), "utf-8")
    for pool, run in (("switches.jsonl", "own"), ("two.jsonl", "few"), (bundled_pool("block"), "bundled")):
        assert called("run", "exact", pool, "--out", run, "--limit", "2", "--workers", "1").returncode == 0
    table = ("table", "own", "--attribution", "--pool")
    error, hint = refusal(capsys, *table, bundled_pool("block"))
    assert error.startswith("--pool: sample_block.jsonl lacks 1 of 1 answered id; the answers are to switches (sha256 ")
    assert hint == "calibrant table own --attribution --pool switches.jsonl"
    assert called(*shlex.split(hint)[1:]).returncode == 0
    error, hint = refusal(capsys, "table", "bundled", "--attribution", "--pool", "switches.jsonl")
    assert error.startswith("--pool: switches.jsonl lacks 2 of 2 answered ids; ")
    assert hint == f"calibrant table bundled --attribution --pool {bundled_pool('block')}"
    error, hint = refusal(capsys, "table", "few", "--attribution", "--pool", bundled_pool("block"))
    assert error.startswith("--pool: sample_block.jsonl has the answered ids, but is another file; ")
    assert hint == ""


def test_why_prints_beside_a_page(folder: Path) -> None:
    reason = "Two SCMs fit everything else and disagree there"
    for line in (["show", "switches.jsonl", "lamp"], ["list", "switches.jsonl"]):
        assert reason in " ".join(called(*line, "--why", "--html", f"{line[0]}.html").stdout.split())
        assert called(*line, "--html", f"{line[0]}.html").stdout == ""
        assert reason in Path(f"{line[0]}.html").read_text("utf-8")


def test_the_published_hardening_stands_beside_published_strata_alone(folder: Path) -> None:
    assert "published CEx" not in called("harden", "switches.jsonl", "--out", "own.jsonl").stdout
    line = ("harden", bundled_pool("hidden-order"), "--limit", "1", "--out", "drawn.jsonl", "--workers", "1")
    assert "published CEx" in called(*line).stdout
