"""The table of findings fits the columns that are stated, and loses nothing of a claim."""

from __future__ import annotations

import re

import pytest

from calibrant.audits.claims import ClaimStatus
from calibrant.bench.pools.certificates import FindingRecord
from calibrant.bench.pools.findings_audit import findings_lines
from tests.support.commands import CHECKOUT, called

POOL = CHECKOUT / "bench" / "causalab" / "data" / "sample_causalab.jsonl"


def _finding(where: str, claim: str) -> FindingRecord:
    return FindingRecord(where, "leak", ClaimStatus.PROVED, claim, {}, None)


def test_a_wide_claim_continues_below_itself() -> None:
    long = _finding("a-b", "one-two three four five six seven eight nine ten")
    assert list(findings_lines([long, _finding("c", "short")], 60)) == [
        "Instance  Kind  Verdict  Claim",
        "a-b       leak  proved   one-two three four five six seven",
        "                         eight nine ten",
        "c         leak  proved   short",
    ]


def test_below_60_columns_a_finding_is_a_paragraph() -> None:
    long = _finding("a-b", "one-two three four five six seven eight nine ten")
    assert list(findings_lines([long, _finding("c", "short")], 48)) == [
        "a-b  leak  proved",
        "  one-two three four five six seven eight nine",
        "  ten",
        "",
        "c  leak  proved",
        "  short",
    ]


def test_a_claim_on_many_lines_stays_one_row_where_no_width_is_stated() -> None:
    assert len(list(findings_lines([_finding("a", "one\ntwo " * 100)]))) == 2
    assert all(len(line) <= 60 for line in findings_lines([_finding("a", "one\ntwo " * 100)], 60))
    assert list(findings_lines([], 60)) == ["nothing found"]


@pytest.mark.parametrize("width", [70, 100])
def test_the_command_wraps_to_columns(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    whole = called("audit", POOL, "--limit", "3", "--workers", "1").stdout
    monkeypatch.setenv("COLUMNS", str(width))
    wrapped = called("audit", POOL, "--limit", "3", "--workers", "1").stdout
    assert max(map(len, whole.splitlines())) > 100
    assert max(map(len, wrapped.splitlines())) <= width
    assert re.sub(r"\s+", " ", wrapped) == re.sub(r"\s+", " ", whole)
