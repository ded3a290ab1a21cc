"""Audits of every benchmark: recorded as they are made, resumed after a kill, shown as a page, failing where asked."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from calibrant.bench.core.registry import NAMES, benchmark, bundled_files
from calibrant.dsl.text import plural
from tests.support.commands import CHECKOUT, called, refused

NUM_ITEMS = {"replayscm": 3, "blickets": 8, "causalab": 5, "causim": 8, "logic": 8}
FIRST = {"blickets": 12}  # earlier items of the pool have no finding
FINDING_NAMES = [name for name in NAMES if name != "replayscm"]
KILLED_AFTER_TWO = """
import os, signal, sys
from calibrant.bench.cli import main
from calibrant.bench.runs.jsonl_file import JsonlFile

append, appended = JsonlFile.append, []

def append_and_die(self, record):
    append(self, record)
    appended.append(record)
    if len(appended) == 2:
        os.kill(os.getpid(), signal.SIGKILL)

JsonlFile.append = append_and_die
sys.exit(main(sys.argv[1:]))
"""


def pool_of(name: str, folder: Path) -> Path:
    """Write some items of a bundled pool."""
    path, first = folder / "pool.jsonl", FIRST.get(name, 0)
    with bundled_files()[name][0].open(encoding="utf-8") as lines:
        header = next(lines)
        path.write_text("".join([header, *islice(lines, first, first + NUM_ITEMS[name])]), encoding="utf-8")
    return path


def records_of(folder: Path) -> list[dict[str, Any]]:
    text = (folder / "audits.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def without_timing(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in record.items() if key != "timing"} for record in records]


@pytest.mark.parametrize("name", NAMES)
def test_an_audit_that_was_killed_resumes_with_what_it_had(name: str, tmp_path: Path) -> None:
    pool = pool_of(name, tmp_path)
    line = ["audit", str(pool), "--workers", "1"]
    whole = called(*line, "--out", tmp_path / "whole")
    script = tmp_path / "killed.py"
    script.write_text(KILLED_AFTER_TWO, encoding="utf-8")
    killed = tmp_path / "killed"
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    command = [sys.executable, str(script), *line, "--out", str(killed)]
    process = subprocess.run(command, env=environment, capture_output=True, timeout=120, check=False)
    assert process.returncode == -signal.SIGKILL
    before = (killed / "audits.jsonl").read_bytes()
    assert before.count(b"\n") == 2
    (killed / "audits.jsonl").write_bytes(before + b'{"pool":"torn')
    resumed = called(*line, "--out", killed)
    assert (resumed.returncode, resumed.stdout) == (whole.returncode, whole.stdout)
    assert f"{plural(NUM_ITEMS[name] - 2, 'instances')} audited, 2 had a record already" in resumed.stderr
    assert set(before.splitlines()) < set((killed / "audits.jsonl").read_bytes().splitlines())  # as they were
    assert without_timing(records_of(killed)) == without_timing(records_of(tmp_path / "whole"))
    again = called(*line, "--out", killed)
    assert again.stdout == whole.stdout
    assert f"0 instances audited, {NUM_ITEMS[name]} had a record already" in again.stderr


@pytest.mark.parametrize("name", FINDING_NAMES)
def test_records_hold_the_findings_that_are_printed(name: str, tmp_path: Path) -> None:
    pool = pool_of(name, tmp_path)
    printed = called("audit", pool, "--out", tmp_path / "audits", "--json", "--workers", "2")
    records = records_of(tmp_path / "audits")
    items = benchmark(name).items.read_pool(pool).items
    assert [record["instance"] for record in records] == [item.id for item in items]
    listed = json.loads(printed.stdout)
    findings = [{key: one[key] for key in one.keys() - {"state", "fit", "reason"}} for one in listed if one["kind"]]
    assert [finding for record in records for finding in record["findings"]] == findings != []
    assert {one["instance"]: one["reason"] for one in listed} == {r["instance"]: r["why"]["reason"] for r in records}
    assert called("audit", pool, "--json").stdout == printed.stdout


@pytest.mark.parametrize("name", FINDING_NAMES)
def test_a_page_shows_every_item_and_finding(name: str, tmp_path: Path) -> None:
    pool = pool_of(name, tmp_path)
    header, first, *others = pool.read_text(encoding="utf-8").splitlines(keepends=True)
    hostile = json.dumps(json.loads(first) | {"id": "<b>one\u202e</b>"}) + "\n"
    pool.write_text("".join([header, hostile, *others]), encoding="utf-8")
    page = tmp_path / "audit.html"
    done = called("audit", pool, "--html", page, "--json")
    text = page.read_text(encoding="utf-8")
    assert f"page written to {page}" in done.stderr
    assert text.count("<h2>What the audit proves</h2>") == NUM_ITEMS[name]
    assert "&lt;b&gt;one" in text
    assert "<b>one" not in text
    assert "\u202e" not in text
    assert "//" not in text.replace("http://www.w3.org/2000/svg", "")
    findings = [one for one in json.loads(done.stdout) if one["kind"]]
    assert text.count("<td>proved</td><td>") == sum(one["verdict"] == "proved" for one in findings)
    pages = "".join(part.split("</section>")[0] for part in text.split("<h2>What the audit proves</h2>")[1:])
    assert pages.count('<tr><th scope="row">') == len(findings)
    assert {
        (kind, verdict)
        for kind, verdict in re.findall(r'<th scope="row">([\w-]+)</th><td>(\w+)</td><td class="n">', text)
    } == {(one["kind"], one["verdict"]) for one in findings}
    called("audit", pool, "--html", tmp_path / "again.html", "--workers", "2")
    assert (tmp_path / "again.html").read_text(encoding="utf-8") == text


@pytest.mark.parametrize("name", FINDING_NAMES)
def test_a_proved_finding_of_the_kind_fails_the_audit(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pool, out = pool_of(name, tmp_path), tmp_path / "audits"
    findings = json.loads(called("audit", pool, "--out", out, "--json").stdout)
    proved = {one["kind"] for one in findings if one["verdict"] == "proved"}
    assert proved
    for kind in sorted({one["kind"] for one in findings if one["kind"]} | {"leak"}):
        assert called("audit", pool, "--out", out, "--fail-on", kind).returncode == int(kind in proved)
    assert refused(capsys, "audit", pool, "--fail-on", "nonsense").startswith("unknown kind 'nonsense'; known: ambig")


def test_an_item_that_cannot_be_audited_fails_the_audit_and_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool, out = pool_of("causim", tmp_path), tmp_path / "audits"
    second = benchmark("causim").items.read_pool(pool).items[1].id
    line = ["audit", pool, "--out", out, "--html", tmp_path / "audit.html"]
    from calibrant.bench.causim.audit import CausimFindings

    honest = CausimFindings.findings

    def fails(self: CausimFindings, item: Any) -> Any:
        if item.id == second:
            raise ArithmeticError("no\nsuch number")
        return honest(self, item)

    with monkeypatch.context() as patched:
        patched.setattr(CausimFindings, "findings", fails)
        failed = called(*line)
    assert failed.returncode == 1
    assert failed.stderr.splitlines()[-1] == f"{second}: ArithmeticError: no such number"
    assert [one["outcome"] for one in records_of(out)] == ["audited", "crashed", *["audited"] * 6]
    assert "ArithmeticError: no such number" in (tmp_path / "audit.html").read_text(encoding="utf-8")
    crash = (out / "audits.jsonl").read_bytes()
    assert called("audit", pool, "--out", out, "--only", records_of(out)[0]["instance"]).returncode == 0
    assert (out / "audits.jsonl").read_bytes() == crash  # which is not of an item that was audited again
    mended = called(*line)
    assert (mended.returncode, mended.stderr.splitlines()[0]) == (0, "1 instance audited, 7 had a record already")
    assert records_of(out)[1]["findings"] is not None


def test_a_folder_of_other_audits_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    called("audit", pool_of("causim", tmp_path), "--out", tmp_path / "audits")
    stored = (tmp_path / "audits" / "audits.jsonl").read_bytes()
    message = refused(capsys, "audit", pool_of("replayscm", tmp_path), "--out", tmp_path / "audits")
    assert "audits.jsonl: line 1: not a record of an audit" in message
    assert (tmp_path / "audits" / "audits.jsonl").read_bytes() == stored
