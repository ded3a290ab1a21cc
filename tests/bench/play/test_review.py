"""The page that has a participant beside the ideal learner: from the folder alone, and from records alike."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from calibrant.bench.core.registry import benchmark, benchmark_of
from calibrant.bench.play.folder import Player, PlayFolder
from calibrant.bench.play.game import PlayPool
from calibrant.bench.play.results import stored_reviews
from calibrant.bench.play.review import Reviews, review_page
from calibrant.bench.runs.records import folder_records, step_records
from calibrant.bench.runs.workers import exact_episode
from calibrant.dsl.blickets.item import Condition
from calibrant.dsl.text import plural
from tests.support.accessibility import PHONE, measure, needs_axe
from tests.support.commands import called, jsonl
from tests.support.play.right_lines import POOLS, first_item, pool_file, right_lines

KINDS = (*POOLS, "episode")


def _play(out: Path, pools: Sequence[Path], *, gives_up: bool = False) -> None:
    sources = [PlayPool(pool) for pool in pools]
    with PlayFolder(out, sources, {}) as folder:
        for source, pool in zip(sources, pools, strict=True):
            player = Player(folder, "p1", source.key(None))
            for line in right_lines(first_item(pool))[: -1 if gives_up else None]:
                player.do(source.words.read(player.game.shown, player.game.position, line))
            if gives_up:
                player.give_up()
            player.verdict()
        served = review_page("t", "p1", [Reviews(folder).get("p1", source.key(None)) for source in sources])
    stored = review_page("t", "p1", stored_reviews(out, sources, "p1"))
    # who runs the study sees the ids of its file, participants others; one id may begin another one
    for source in sorted(sources, key=lambda source: -len(source.key(None).instance)):
        name = source.key(None).instance
        assert name in stored
        assert name not in served
        stored = stored.replace(name, source.public.ids.public(name))
    assert served == stored


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("review")
    pools = [pool_file(kind, folder) for kind in KINDS]
    _play(folder / "out", pools)
    return review_page("spring pilot", "p1", stored_reviews(folder / "out", [PlayPool(pool) for pool in pools], "p1"))


def test_a_second_player_on_other_terms_repeats_no_record_and_each_can_be_chosen(tmp_path: Path) -> None:
    pool, out = pool_file("blickets", tmp_path), tmp_path / "out"
    source, lines = PlayPool(pool), right_lines(first_item(pool))
    written: list[bytes] = []
    for name, config in (("browser", {"feedback": "cells"}), ("terminal", {}), ("browser", {})):
        with PlayFolder(out, [source], config) as folder:
            player = Player(folder, name, source.key(None))
            for line in () if player.game.closed else lines:
                player.do(source.words.read(player.game.shown, player.game.position, line))
            assert player.verdict()["right"]
        written.append((out / "records.jsonl").read_bytes())
    assert [(record.protocol, record.config) for record in folder_records(out)] == [
        ("human:browser", {"feedback": "cells"}),
        ("human:terminal", {}),
    ]
    assert written[1].startswith(written[0])
    assert written[2] == written[1]


@pytest.mark.parametrize(("formula", "fits"), [("A and B", "fits every row"), ("A or B", "does not fit every row")])
def test_an_answer_that_nothing_judges_is_told_whether_it_fits(formula: str, fits: str, tmp_path: Path) -> None:
    table, pool = tmp_path / "t.csv", tmp_path / "table.jsonl"
    table.write_text("A,B,Y\n0,0,0\n0,1,0\n1,1,1\n1,0,0\n", encoding="utf-8")
    assert called("fit", table, "--target", "Y", "--out", pool).returncode == 0
    source = PlayPool(pool)
    with PlayFolder(None, [source], {}) as folder:
        player = Player(folder, "p1", source.key(None))
        for line in (f"Y = {formula}", "submit"):
            player.do(source.words.read(player.game.shown, player.game.position, line))
        verdict = player.verdict()
    assert verdict["right"] is None
    assert verdict["text"] == f"{fits}; neither right nor wrong: nothing is held out"


def test_an_episode_is_chosen_by_the_name_that_the_message_prints(tmp_path: Path) -> None:
    pool, out = pool_file("blickets", tmp_path), tmp_path / "out"
    _play(out, [pool])
    (record,) = folder_records(out)
    other = msgspec.structs.replace(record, config={"feedback": "cells"})  # as 0.1.0 wrote it for a second player
    with (out / "records.jsonl").open("ab") as file:
        file.write(msgspec.json.encode(other) + b"\n")
    several = called("show", pool, record.instance, "--run", out, "--why")
    assert several.returncode == 2
    names = shlex.split(several.stderr.partition("choose one with --system: ")[2].replace(", ", " "))
    assert names == ["human:p1 (feedback=None)", "human:p1 (feedback=cells)"]
    for name in names:
        assert called("show", pool, record.instance, "--run", out, "--why", "--system", name).returncode == 0
    none = called("show", pool, record.instance, "--run", out, "--why", "--system", "human:p2")
    assert none.returncode == 2
    assert "there are episodes of 'human:p1 (feedback=None)', 'human:p1 (feedback=cells)'" in none.stderr


def test_the_ideal_learner_of_a_stated_condition_considers_that_condition() -> None:
    bench = benchmark("blickets")
    item = next(iter(bench.suites.draw(["conjunctive"], 20, 1)))
    informed = replace(item, task=replace(item.task, condition=Condition.CONJUNCTIVE))
    mixture, stated = (exact_episode(bench, shown) for shown in (item, informed))
    assert mixture is not None
    assert stated is not None
    assert (stated.num_moves, stated.decided_at) == (stated.decided_at, stated.num_moves)  # one class, one number
    assert mixture.num_moves > stated.num_moves
    assert "for it considers the condition conjunctive, which the task states" in stated.describe()


def test_moves_and_ideal_moves_stand_beside_one_another(page: str, tmp_path: Path) -> None:
    rows = re.findall(r'<td class="number">([^<]*)</td><td class="number">([^<]*)</td></tr>', page)
    assert len(rows) == len(KINDS)
    for kind, (moves, ideal) in zip(KINDS, rows, strict=True):
        pool = pool_file(kind, tmp_path)
        bench, item = benchmark_of(pool), first_item(pool)
        if not bench.is_interactive(item):
            assert (moves, ideal) == ("\u2013", "\u2013")
            continue
        called("run", "exact", pool, "--only", item.id, "--out", tmp_path / kind, "--workers", 1)
        (record,) = folder_records(tmp_path / kind)
        assert not isinstance(record.steps, msgspec.UnsetType)
        assert int(ideal.replace(",", "")) == sum(step.cost for step in record.steps)
        exact = exact_episode(bench, item)
        assert exact is not None
        assert step_records(exact.steps) == record.steps  # one learner, one class, one episode
        assert bench.play.submitted(exact.steps) is not None
        used = f"used {plural(exact.num_moves, 'moves')}"
        assert f"The ideal learner, run exact, chose its own moves and {used}" in page
        shown = called("show", pool, item.id, "--why", "--gold").stdout
        assert f"[run exact {used}" in shown
        if kind == "blickets":
            for text in (shown, page):
                assert (
                    "for it considers the mixture of all conditions, since the task states none; in the class" in text
                )
            assert exact.decided_at is not None
            assert exact.decided_at < exact.num_moves
            assert f"had decided the answer after {exact.decided_at}" in page
        assert int(moves) >= 1
    assert "the episode is open" not in page
    assert f"<h1>{len(KINDS)} of {len(KINDS)} right" in page


def test_what_was_open_is_listed_in_words(page: str) -> None:
    """One move at a detector of five objects leaves 41 of 57 rules: those that it did not light under A alone."""
    assert "<h3>Still open at this answer: 41 rules</h3>" in page
    assert page.count("Still open at this answer: ") == len(KINDS)
    assert "<li>conjunctive A B</li>" in page
    assert "<li>and 31 more</li>" in page
    assert "&#34;rule&#34;" not in page


@needs_axe
def test_items_of_one_id_are_told_apart(tmp_path: Path) -> None:
    """Two pools may call their items alike; regions and elements of the page are named once all the same."""
    head, first, second = POOLS["blickets"].read_text(encoding="utf-8").splitlines()[:3]
    renamed = json.dumps(json.loads(second) | {"id": json.loads(first)["id"]})
    pools = [
        jsonl(tmp_path / f"{k}.jsonl", json.loads(head), json.loads(item)) for k, item in enumerate((first, renamed))
    ]
    sources = [PlayPool(pool) for pool in pools]
    with PlayFolder(None, sources, {}) as folder:
        for source in sources:
            Player(folder, "p1", source.key(None)).give_up()
        page = review_page("t", "p1", [Reviews(folder).get("p1", source.key(None)) for source in sources])
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert measure(page, tmp_path, width=PHONE).violations == []


def test_a_command_writes_it_from_records(tmp_path: Path) -> None:
    pool, out, page = POOLS["blickets"], tmp_path / "out", tmp_path / "p1.html"
    _play(out, [pool], gives_up=True)
    line = ("play", pool, "--out", out, "--review", page)
    done = called(*line, "--participant", "p1")
    assert (done.returncode, done.stdout) == (0, f"1 item of p1: {page}\n")
    text = page.read_text(encoding="utf-8")
    assert "No answer was given; the evidence had left several answers." in text
    assert 'aria-label="1 no answer"' in text  # as people.csv and tables count it, not short
    for more, reason in (
        (("--participant", "p2"), "p2 ended no item of these pools; who did: p1"),
        (("--serve",), "--review plays nothing"),
        (("--html", tmp_path / "x.html"), "--review plays nothing"),
    ):
        refused = called(*line, *more)
        assert (refused.returncode, reason in refused.stderr) == (2, True), refused.stderr
