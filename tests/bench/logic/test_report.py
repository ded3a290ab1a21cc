"""A report's guide through logic models: chance by listing every model, and one answer beside truth and verdict."""

from __future__ import annotations

import json
import re
from collections import Counter
from fractions import Fraction
from pathlib import Path

from calibrant.audits.logic.generation import LogicPlan, generate_items
from calibrant.audits.logic.items import heldout_decision
from calibrant.bench.core.registry import benchmark, bundled_sample
from calibrant.bench.core.scoring import AnswerContext
from calibrant.bench.logic.report import GUIDE
from calibrant.bench.report.overview.contract import Explanation
from calibrant.bench.report.pool_attribution import expected_rates
from calibrant.dsl.logic import reference
from calibrant.dsl.logic.item import LogicItem
from calibrant.dsl.logic.score import answer_json
from tests.support.commands import called

LOGIC = benchmark("logic")
PLAN = LogicPlan(nodes=4, layers=2, in_degree=2, stimuli=2, readouts=2, inhibitors=1, experiments=2, noise=0.3, fit="1")


def test_chance_and_best_are_shares_of_the_listed_models() -> None:
    """24 items of two plans, a third of them cyclic, some decided and some not."""
    kinds = set()
    for plan in (PLAN, LogicPlan(nodes=3, layers=2, in_degree=2, stimuli=1, readouts=1, experiments=1, loops=1)):
        for item in generate_items(plan, 3, 12):
            assert item.sealed is not None
            task = item.task
            members = [model for *_, model in reference.family(task)]
            tables = Counter(tuple(reference.predict(m, task.setup, x) for x in task.questions) for m in members)
            draw, best = (
                Fraction(tables[item.sealed.answers], len(members)),
                Fraction(max(tables.values()), len(members)),
            )
            expected = {"uniform": float(draw), "draw": float(draw), "best": float(best)}
            assert expected_rates(LOGIC, item, {}) == expected, item.id
            cells = len(task.questions) * len(task.setup.readouts)
            assert GUIDE.levels(item, (), {}).guess == 2.0**-cells
            decision = heldout_decision(item)
            assert decision is not None
            assert decision.decided == (len(tables) == 1)
            kinds.add((decision.decided, draw == best))
    assert kinds >= {(True, True), (False, True), (False, False)}


def _explained(item: LogicItem | None, of: LogicItem, answer: dict[str, object] | str) -> Explanation:
    read = LOGIC.scoring.read_answer(of, answer)[0]
    score = LOGIC.scoring.score(of, read, ())
    context = AnswerContext("m", "pool", "digest", 1, of.id, of.setting, "", benchmark="logic")
    return GUIDE.explain(item, context, answer, (), score)


def test_an_answer_stands_beside_the_truth_with_every_held_out_experiment() -> None:
    item = next(iter(generate_items(PLAN, 3, 1)))
    assert item.sealed is not None
    truth = _explained(item, item, json.dumps(answer_json(item.sealed.gold)))
    assert truth.response == truth.gold == "\n".join(sorted(map(str, item.sealed.gold)))
    assert [row.cells[1] for row in truth.moves] == list(item.sealed.answers)
    assert all(row.cells[1] == row.cells[2] and not row.is_highlighted for row in truth.moves)
    wrong = [[1.0 - int(cell) for cell in row] for row in item.sealed.answers]
    table = _explained(item, item, {"probabilities": wrong})
    assert all(row.is_highlighted for row in table.moves)
    assert table.chips == (("", "probabilities"),)
    assert _explained(None, item, {"probabilities": wrong}).gold == ""
    refused = _explained(item, item, '{"model": ["x<-y"]}')
    assert (refused.moves, refused.chips) == ((), (("bad", "not valid"),))
    assert refused.sentences[1] == "model: unknown clause"


def test_a_report_takes_the_pool_and_shows_a_response_beside_the_truth(tmp_path: Path) -> None:
    pool, run = bundled_sample("logic"), tmp_path / "run"
    called("run", "exact,posterior", pool, "--out", run, "--workers", "1", "--limit", "4")
    page, bare = tmp_path / "page.html", tmp_path / "bare.html"
    assert called("report", run, "--pool", pool, "--out", page).returncode == 0
    assert called("report", run, "--out", bare).returncode == 0
    text = page.read_text("utf-8")
    (pack,) = re.findall(r'id="pack-logic">(.*?)</script>', text)
    assert json.loads(pack)["commands"]["why"].endswith("{id} --why --html why.html")
    item = json.loads(pool.read_text("utf-8").splitlines()[1])
    assert '"moves_title":"Held-out answers"' in text
    assert item["sealed"]["gold"][0].replace("<", "\\u003c") in text
    assert '"moves_title"' not in bare.read_text("utf-8")
