"""Tables about copies in a report: against counts of answers that are right on purpose."""

from __future__ import annotations

import csv
import json
from fractions import Fraction
from pathlib import Path

import pytest

from calibrant.bench.core.registry import benchmark_of, bundled_sample
from calibrant.bench.report.comparisons import CONSISTENCY_TABLE_IDS
from calibrant.bench.variants import Consistency, Flips, read_maps, write_variants
from tests.support.commands import called


@pytest.mark.parametrize(
    ("lost", "gained", "p_value"),
    [(0, 0, 1), (1, 0, 1), (3, 3, 1), (5, 0, Fraction(1, 16)), (1, 9, Fraction(22, 1024)), (9, 1, Fraction(22, 1024))],
)
def test_p_values_are_those_of_the_binomial(lost: int, gained: int, p_value: Fraction) -> None:
    assert Flips(lost, gained, 20).p_value == p_value


def test_figures_are_those_of_the_answers(tmp_path: Path) -> None:
    """Six items, copies by four of two kinds: renamed ones of every second item are wrong, and one original."""
    source, target, predictions = tmp_path / "pool.jsonl", tmp_path / "copies.jsonl", tmp_path / "answers.jsonl"
    header, *lines = bundled_sample("causim").read_text(encoding="utf-8").splitlines(keepends=True)
    source.write_text("".join([header, *lines[1::8]]), encoding="utf-8")
    write_variants(source, target, ["rename", "words"], 4, 2)
    bench, maps = benchmark_of(source), read_maps(target).copies
    originals = [item.id for item in bench.items.read_pool(source).items]
    wrong = {name for name, m in maps.items() if m.kind == "rename" and originals.index(m.of) % 2 == 0}
    wrong.add(originals[1])
    with predictions.open("w", encoding="utf-8") as file:
        for item in (*bench.items.read_pool(source).items, *bench.items.read_pool(target).items):
            answer = {} if item.id in wrong else bench.training.gold(item)
            file.write(json.dumps({"id": item.id, "model": "system", "response": json.dumps(answer)}) + "\n")
    out, page = tmp_path / "out.csv", tmp_path / "page.html"
    words = ["report", "--predictions", predictions, "--pool", source, "--pool", target]
    chosen = [word for name in CONSISTENCY_TABLE_IDS for word in ("--table", name)]
    for path in (out, page):
        done = called(*words, *chosen, "--out", path)
        assert done.returncode == 0, done.stderr
    values = {
        (row["kind"], row["column"]): row["value"]
        for row in csv.DictReader(out.read_text(encoding="utf-8").splitlines())
    }
    assert (len(originals), len(maps)) == (6, 24)
    assert [values["", key] for key in ("right", "all_equal", "worst_copy", "right_originals")] == [
        "0.750",  # 6 of 24 copies are wrong
        "0.500",
        "0.500",
        "0.833",
    ]
    assert [values["rename", key] for key in ("right", "lost", "gained", "p")] == ["0.500", "6", "2", "0.289"]
    assert [values["words", key] for key in ("right", "lost", "gained", "p")] == ["1.000", "0", "2", "0.500"]
    assert "Answers to copies beside those to their originals, " in page.read_text(encoding="utf-8")
    overview = called(*words, "--format", "markdown").stdout
    assert "variants" not in overview  # the name of the pool of copies, which are no further items


# --- Shares of copies -------------------------------------------------------------------------------------------


def test_shares_and_worst_copies() -> None:
    row = Consistency("s", {"a": [1.0, 1.0], "b": [1.0, 0.0], "c": [0.0, 0.0]}, {})
    assert (row.num_copies, row.mean, row.num_equal) == (6, 0.5, 2)
    assert row.worst == pytest.approx(1 / 3)
