"""What a solver or a model may see is one list by field for each benchmark, held over every command that prints it.

Hidden are an item's id, its stratum, and all fields of its record that its benchmark does not declare public.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from calibrant import load_pool, score_many
from calibrant.bench.core.registry import NAMES, benchmark, benchmark_of
from calibrant.bench.hub.card import COLUMNS, columns_of
from calibrant.bench.hub.export import ExportRows
from calibrant.bench.pools.generated import write_drawn
from calibrant.bench.scoring.ids import PublicIds, PublicPool, public_record
from tests.support.commands import called, jsonl

SUITES = {
    "replayscm": ("hs_n6_easy_calibration/hidden-order", "hs_n6_easy_calibration/hidden-roots"),
    "blickets": ("order", "easy-3", "stochastic", "conjunctive"),
    "causalab": ("3nodes", "4nodes_hidden_n1"),
    "causim": ("chain", "inverted_star"),
    "logic": ("noisy", "loops"),
}
PUBLIC_COLUMNS = {"id", "benchmark", "system", "prompt", "digest", "canary"}
PROMPT_FIELDS = {"instanceId", "system", "prompt", "promptDigest"}
EVENT_FIELDS = {"event", "instance", "text", "left", "action", "reading", "refused", "cost", "closed"}
PUBLIC_ID = re.compile(r"item-[0-9a-f]{16}")
each = pytest.mark.parametrize("name", NAMES)


@pytest.fixture
def pool(name: str, tmp_path: Path) -> Path:
    of = benchmark(name)
    path = tmp_path / "pool.jsonl"
    write_drawn(of, path, SUITES[name], 7, 2)
    return path


def _printed(of: Any, pool: Path, item: Any, folder: Path) -> Iterator[tuple[str, str]]:
    """Yield each command and its output that a solver or a model may see."""
    yield "show", called("show", pool, item.id).stdout
    yield "show --json", called("show", pool, item.id, "--json").stdout
    yield "prompts", called("prompts", pool, "--only", item.id).stdout
    yield "prompts --text", called("prompts", pool, "--only", item.id, "--text").stdout
    page = folder / "page.html"
    shown = called("show", pool, item.id, "--html", page)
    if shown.returncode == 0:
        yield "show --html", shown.stdout + page.read_text(encoding="utf-8")
    if of.is_interactive(item):
        for option in ([], ["--jsonl"]):
            yield " ".join(["play", *option]), called("play", pool, item.id, *option).stdout
        called("play", pool, item.id, "--html", page)
        yield "play --html", page.read_text(encoding="utf-8")


@each
def test_no_command_names_what_is_hidden(
    name: str, pool: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    of = benchmark_of(pool)
    for item in of.items.read_pool(pool).items:
        hidden = {item.id, *([item.stratum] if name == "replayscm" else [])}
        for command, text in _printed(of, pool, item, tmp_path):
            assert text, command
            assert not [word for word in hidden if word in text], (command, item.id)
            if command not in ("show", "play", "play --html"):
                assert PUBLIC_ID.search(text), command


@each
def test_records_hold_public_fields_only(name: str, pool: Path) -> None:
    of = benchmark_of(pool)
    for item in of.items.read_pool(pool).items:
        printed = json.loads(called("show", pool, item.id, "--json").stdout)
        assert printed.keys() <= set(of.items.public_fields)
        assert PUBLIC_ID.fullmatch(printed["id"])
        told = json.loads(called("prompts", pool, "--only", item.id).stdout)
        assert told.keys() == PROMPT_FIELDS
        assert told["instanceId"] == printed["id"]


@each
def test_episodes_have_public_events_only(name: str, pool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of = benchmark_of(pool)
    if not of.is_interactive(of.items.read_pool(pool).items[0]):
        pytest.skip("no episodes")
    item = of.items.read_pool(pool).items[0]
    monkeypatch.setattr("sys.stdin", io.StringIO())
    *events, verdict = map(json.loads, called("play", pool, item.id, "--jsonl").stdout.splitlines())
    assert verdict["event"] == "verdict"  # after the end of the episode
    assert events[0]["event"] == "task"
    assert PUBLIC_ID.fullmatch(events[0]["instance"])
    assert all(event.keys() <= EVENT_FIELDS for event in events)


def test_a_condition_is_shown_to_the_informed_only(tmp_path: Path) -> None:
    of = benchmark("blickets")
    write_drawn(of, tmp_path / "pool.jsonl", ["easy-3"], 1, 1)
    item = of.items.read_pool(tmp_path / "pool.jsonl").items[0]
    record = of.items.record(item)
    assert item.task.condition is None
    assert "condition" not in public_record(of, item)
    informed = of.items.item_of_record(record | {"informed": True})
    assert public_record(of, informed)["condition"] == "moderator"
    for field in ("condition", "strict_singleton", "labels", "sealed"):
        assert field in record


def test_a_program_is_hidden_where_sentences_are_shown(tmp_path: Path) -> None:
    of = benchmark("causim")
    write_drawn(of, tmp_path / "pool.jsonl", ["chain"], 1, 1)
    item = of.items.read_pool(tmp_path / "pool.jsonl").items[0]
    record = of.items.record(item)
    assert public_record(of, item)["program"] == record["program"]
    assert "program" not in public_record(of, of.items.item_of_record(record | {"view": "prose"}))


@each
def test_the_public_part_of_an_export(name: str, pool: Path, tmp_path: Path) -> None:
    rows = ExportRows([pool], tmp_path / "rows")
    items = benchmark_of(pool).items.read_pool(pool).items
    assert {column.name for column in COLUMNS if not column.sealed} == PUBLIC_COLUMNS
    assert {column.name for column in columns_of(rows, with_gold=False)} == PUBLIC_COLUMNS
    public = [{name: row[name] for name in PUBLIC_COLUMNS} for row in rows.by_id()]
    assert [row["id"] for row in public] == sorted(row["id"] for row in rows)
    assert all(PUBLIC_ID.fullmatch(row["id"]) for row in public)
    assert not [item.id for item in items if item.id in json.dumps(public)]
    for row, item in zip(rows, items, strict=True):
        assert row["item"] == item.id
        assert PublicIds(row["salt"]).public(item.id) == row["id"]


@each
def test_answers_under_public_ids_are_scored(name: str, pool: Path, tmp_path: Path) -> None:
    """From an export or prompts to scores: right answers to public ids count as those to the pool's own ids do."""
    rows = list(ExportRows([pool], tmp_path / "rows"))
    answers = [row["answer"] or "{}" for row in rows]
    by_public = [{"id": row["id"], "model": "m", "response": text} for row, text in zip(rows, answers, strict=True)]
    by_own = [{"id": row["item"], "model": "m", "response": text} for row, text in zip(rows, answers, strict=True)]
    verdicts = []
    for lines in (by_public, by_own):
        done = called("score", pool, jsonl(tmp_path / "said.jsonl", *lines), "--json")
        assert done.returncode == 0, done.stderr
        verdicts.append([json.loads(line) for line in done.stdout.splitlines()])
    assert verdicts[0] == verdicts[1]
    assert [verdict["instanceId"] for verdict in verdicts[0]] == [row["item"] for row in rows]
    assert any(verdict["correct"] for verdict in verdicts[0])
    scored = score_many(load_pool(pool), map(json.dumps, by_public))
    assert [score.correct for score in scored] == [verdict["correct"] for verdict in verdicts[0]]
    asked = [json.loads(line)["instanceId"] for line in called("prompts", pool).stdout.splitlines()]
    assert asked == [row["id"] for row in rows]


def test_public_ids_depend_on_the_file_alone(tmp_path: Path) -> None:
    of = benchmark("blickets")
    first, second = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    for path, seed in ((first, 1), (second, 2)):
        write_drawn(of, path, ["order"], seed, 2)
    pools = [PublicPool(of, path) for path in (first, first, second)]
    ids = [[pool.ids.public(item.id) for item in pool.items.items] for pool in pools]
    assert ids[0] == ids[1]
    assert not set(ids[0]) & set(ids[2])
    assert pools[0].item(ids[0][1]) == pools[0].items.items[1]
    assert pools[0].ids.item_id(ids[2][0]) is None
    assert pools[0].ids.salt != pools[2].ids.salt


def test_a_page_has_the_public_id_and_the_terminal_states_whose_it_is(tmp_path: Path) -> None:
    """Standard output and pages are handed on; what was typed is named beside them, and with --gold on the page."""
    pool, page = tmp_path / "pool.jsonl", tmp_path / "page.html"
    write_drawn(benchmark("causim"), pool, ("chain",), 7, 1)
    items = PublicPool(benchmark("causim"), pool)
    own = items.items.items[0].id
    public = items.ids.public(own)
    done = called("show", pool, own, "--html", page)
    assert own not in done.stdout + page.read_text(encoding="utf-8")
    written = f"page written to {page}\n"
    assert done.stderr == f"{written}{own} is {public} there, an id that tells nothing of it\n"
    assert called("show", pool, public, "--html", page).stderr == written
    assert called("show", pool, own, "--html", page, "--gold").stderr == written
    assert own in page.read_text(encoding="utf-8")
