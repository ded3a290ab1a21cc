"""Rates of methods with equally good answers, and of the chosen one: table, first screen and list state the same."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from tests.bench.answers.test_agreement import cell_texts, compare, printed, printed_rows
from tests.support.commands import CHECKOUT, called


@pytest.fixture(scope="module")
def tied(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[dict[str, Any]], Path, list[dict[str, Any]]]:
    """Return the rows of `table`, and a run whose method has equally good answers, with its records."""
    folder = tmp_path_factory.mktemp("tied")
    pool = folder / "block.jsonl"
    lines = (CHECKOUT / "bench/replayscm/data/sample_block.jsonl").read_text(encoding="utf-8").splitlines()
    pool.write_text("\n".join(lines[:11]) + "\n", encoding="utf-8")
    printed("run", "exact", pool, "--out", folder / "runs", "--workers", "1")
    records = [json.loads(line) for line in (folder / "runs" / "records.jsonl").read_text().splitlines()]
    return printed_rows("table", folder / "runs", "--json"), folder / "runs", records


def test_equally_good_answers_and_the_chosen_one_are_named_at_both_places(tied: Any, tmp_path: Path) -> None:
    rows, runs, records = tied
    shares = []
    for record in records:
        parts = (record.get("ties") or {}).get("scores") or [{"times": 1, "score": record["score"]}]
        right = sum(part["times"] for part in parts if part["score"]["heldoutExact"])
        shares.append(Fraction(right, sum(part["times"] for part in parts)))
    mean = sum(shares) / len(shares)
    chosen = Fraction(sum(record["score"]["heldoutExact"] for record in records), len(records))
    assert mean != chosen
    compare(
        "ties",
        {row["system"]: row["heldout_exact"] for row in rows},
        {"exact": float(mean), "exact (chosen)": float(chosen)},
    )
    page = tmp_path / "report.html"
    printed("report", runs, "--no-times", "--out", page)
    text = page.read_text(encoding="utf-8")
    first = next(row for row in re.findall(r'<tr data-system="exact".*?</tr>', text))
    compare("ties, first screen", re.findall(r'accuracy">([^<]*)', first), [f"{float(mean):.3f}"])
    assert f"chosen {float(chosen):.3f}" in first
    cells = [row for row in cell_texts(text, "html") if row[1:2] in (["exact"], ["exact (chosen)"])]
    core = {row[1]: [cell.partition(" ")[0] for cell in row] for row in reversed(cells)}
    assert f"{float(mean):.3f}" in core["exact"]
    assert f"{float(chosen):.3f}" in core["exact (chosen)"]


def test_lists_state_what_ties_do_to_the_rate(tied: Any) -> None:
    rows, runs, _ = tied
    line = ("list", runs.with_name("block.jsonl"), "--scores", runs)
    done = called(*line)
    share = {row["system"]: row["heldout_exact"] for row in rows}["exact"]
    assert f"10 answers listed as its tie rule chose; of all equally good ones {share:.3f} are right" in done.stderr
    listed = printed_rows(*line, "--limit", "0", "--json")
    compare("list, ties", pytest.approx(share), sum(row["right_of_ties"] for row in listed) / len(listed))
