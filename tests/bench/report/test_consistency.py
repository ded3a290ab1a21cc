"""Tables about copies in a report: against counts of answers that are right on purpose."""

from __future__ import annotations

import csv
import json
import re
from fractions import Fraction
from pathlib import Path

import pytest

from calibrant.bench.core.registry import benchmark_of, bundled_sample
from calibrant.bench.report.comparisons import CONSISTENCY_TABLE_IDS
from calibrant.bench.variants import Consistency, Flips, read_maps, write_variants
from tests.bench.answers.test_agreement import (
    SHOWN,
    SYSTEMS,
    Answered,
    answered,
    compare,
    counted,
    expected,
    expected_interval,
    listed_predictions,
    printed,
)
from tests.support.commands import called

__all__ = ["answered", "counted"]  # fixtures


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


@pytest.mark.usefixtures("counted")
def test_consistency_states_the_expected_rates(answered: Answered) -> None:
    """Copies with one or several answers, or none, which is wrong; originals as units."""
    folder = answered.pool.parent
    copies, scores = folder / "copies.jsonl", folder / "copies.scores.jsonl"
    printed("variants", answered.pool, "--kinds", "rename", "--copies", "2", "--out", copies)
    bench = benchmark_of(copies)
    labelled = ((item.id, bench.training.gold(item)) for item in bench.items.read_pool(copies).items)
    gold = {name: answer for name, answer in labelled if answer is not None}
    listed = [json.dumps(line) for line in listed_predictions(answered.name, [*gold], gold) if line["model"] in SYSTEMS]
    (folder / "copies.predictions.jsonl").write_text("\n".join(listed) + "\n", encoding="utf-8")
    printed("score", copies, folder / "copies.predictions.jsonl", "--out", scores, "--workers", "1")
    files = (scores, answered.scores, "--consistency", copies)
    stated = {row["system"]: row for row in json.loads(printed("table", *files, "--json"))}
    text = {cells[0]: cells for cells in (re.split("  +", line) for line in printed("table", *files).splitlines())}
    originals = {
        name: copy["of"]
        for name, copy in json.loads(copies.read_text("utf-8").partition("\n")[0])["metadata"]["variants"][
            "copies"
        ].items()
    }
    assert len(originals) == len(gold) == 2 * len(set(originals.values()))
    verdicts = [json.loads(line) for line in scores.read_text(encoding="utf-8").splitlines()]
    for system in SYSTEMS:
        values: dict[str, list[Fraction]] = {name: [] for name in originals}
        for line in verdicts:
            if line["model"] == system:
                values[line["instanceId"]].append(
                    Fraction(bool(line["heldoutExact" if "heldoutExact" in line else "correct"]))
                )
        means = {name: sum(answers, Fraction()) / max(1, len(answers)) for name, answers in values.items()}
        sums = {
            original: (sum((means[name] for name in means if originals[name] == original), Fraction()), Fraction(2))
            for original in set(originals.values())
        }
        mean = sum(means.values()) / len(means)
        row, name = stated[SHOWN.get(system, system)], SHOWN.get(system, system)
        compare("consistency", row["mean"], pytest.approx(float(mean), abs=1e-12))
        interval = expected_interval(sums, is_share=True, is_clustered=True)
        assert interval is not None
        compare("consistency, intervals", row["interval"], pytest.approx(interval, abs=1e-6))
        digits = [f"{float(mean):.3f}", f"{interval[0]:.3f}-{interval[1]:.3f}"]
        compare("consistency, text", text[name][3:5], digits)
        rate = expected(answered, [line for line in answered.lines if line["model"] == system], answered.right)
        assert rate is not None
        if system != "m":  # who left originals out
            compare("consistency, originals", row["originals_mean"], pytest.approx(float(rate.mean), abs=1e-12))
