"""Pages of why items of blickets, CausaLab and CauSim are open: text, keys of accessibility, no network."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from markupsafe import escape

from calibrant.audits.why import Why
from calibrant.bench.core.registry import benchmark_of, bundled_sample
from calibrant.bench.pages.capabilities import EXPLANATIONS
from calibrant.bench.pages.why import MAX_ROWS, MAX_UNFOLDED, WhyTable, shown_table, tables_body, why_page
from calibrant.bench.runs.audits import explain_item
from tests.support.accessibility import DESKTOP, PHONE, measure, needs_axe
from tests.support.commands import called

EXAMPLES = {
    "blickets": "conjunctive-20-0",
    "causalab": "4nodes/20/1",
    "causim": "tree-0001-s20-v04-intervention-000",
}


def page(name: str, num_moves: int = 4) -> str:
    pool = bundled_sample(name)
    of = benchmark_of(pool)
    item = next(item for item in of.items.read_pool(pool).items if item.id == EXAMPLES[name])
    steps = []
    if name == "blickets":
        episode = of.play.open(item)
        for thing in item.task.objects[:num_moves]:
            episode.act({"place": thing})
        steps = list(episode.steps)
    explanations = of.require(EXPLANATIONS)
    why = explanations.explain(item, steps)
    return why_page(why, explanations.body(why, "why"), pool.name)


@needs_axe
@pytest.mark.parametrize(
    ("name", "theme", "width"), [("blickets", "dark", PHONE), ("causalab", "light", PHONE), ("causim", "dark", DESKTOP)]
)
def test_a_page_is_accessible_and_fits_its_width(name: str, theme: str, width: int, tmp_path: Path) -> None:
    found = measure(page(name), tmp_path, theme=theme, width=width)
    assert (found.violations, found.requests) == ([], [])
    assert found.scroll_width <= width


@pytest.mark.parametrize("name", EXAMPLES)
def test_terminal_json_and_page_have_one_reason(name: str, tmp_path: Path) -> None:
    pool, item, file = bundled_sample(name), EXAMPLES[name], tmp_path / "why.html"
    reason = json.loads(called("show", pool, item, "--why", "--json").stdout)["reason"]
    text = "".join(span["text"] for span in reason)
    assert text in called("show", pool, item, "--why").stdout.splitlines()
    assert called("show", pool, item, "--why", "--html", file).returncode == 0
    written = file.read_text(encoding="utf-8")
    texts = [(str(escape(s["text"])), s.get("marked")) for s in reason]
    assert "".join(f"<mark>{text}</mark>" if marked else text for text, marked in texts) in written
    assert "<main " in written


def test_after_the_moves_of_a_prediction_the_reason_is_another(tmp_path: Path) -> None:
    pool = bundled_sample("blickets")
    of = benchmark_of(pool)
    item = next(item for item in of.items.read_pool(pool).items if item.id == EXAMPLES["blickets"])
    lines = []
    for model, number in (("short", 1), ("long", 3)):
        episode = of.play.open(item)
        for thing in item.task.objects[:number]:
            episode.act({"place": thing})
        steps = [{"action": dict(s.action), "reading": s.reading, "cost": s.cost} for s in episode.steps]
        lines.append({"instanceId": item.id, "model": model, "steps": steps})
    predictions = tmp_path / "predictions.jsonl"
    predictions.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    both = called("show", pool, item.id, "--run", predictions, "--why")
    assert (both.returncode, both.stderr.count("\n")) == (2, 1)
    assert "choose one with --system" in both.stderr
    done = called("show", pool, item.id, "--run", predictions, "--why", "--system", "long", "--json")
    assert len(json.loads(done.stdout)["moves"]) == 3


def test_long_tables_are_folded_and_complete() -> None:
    table = WhyTable("Rows", "all of them", ("number",), tuple((f"row {k:02d}",) for k in range(70)), frozenset({20}))
    shown = shown_table(table)
    rows = [line["cells"][0] for line in (*shown["lines"], *shown["folded"])]
    assert rows == [f"row {k:02d}" for k in range(MAX_ROWS)]
    assert (len(shown["lines"]), shown["more"]) == (MAX_UNFOLDED, 10)
    of = benchmark_of(bundled_sample("causim"))
    why = explain_item(of, of.items.read_pool(bundled_sample("causim")).items[0])
    assert isinstance(why, Why)
    page = str(tables_body(why, [table], (), "why"))
    assert [page.count(row) for row in rows] == [1] * MAX_ROWS
    assert page.index("48 more rows") < page.index("row 20")
