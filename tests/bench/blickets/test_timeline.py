"""Timelines of blicket episodes: three objects by hand, a switch, any item at all, and the page in a browser.

Of the 11 rules over A, B, C those with "A alone is active" are the disjunctive ones with A: A, AB, AC, ABC.
"""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.audits.blickets.attribution import attribute_episode
from calibrant.bench.blickets.timeline import blicket_timeline
from calibrant.bench.cli import main
from calibrant.bench.pages.timeline import Light, News, Timeline, timeline_page
from calibrant.bench.runs.records import folder_records, step_records
from calibrant.dsl.blickets.item import BlicketItem, Condition, Form, Mechanism, Rule, Sealed, Task
from calibrant.dsl.blickets.records import write_pool
from calibrant.dsl.episode import Step, TranscriptError
from tests.support.benchmarks.blickets import actions, items, opened, static_item
from tests.support.browser import needs_chromium, pressed
from tests.support.commands import jsonl, refused
from tests.support.effort import examples
from tests.support.report_rows import write_records

ITEM = static_item(Rule(Form.CONJUNCTIVE, 0b011), 3)  # A and B
AB = {"rule": "conjunctive", "blickets": ["A", "B"]}
BC = {"rule": "disjunctive", "blickets": ["B", "C"]}
PLAYED: list[Any] = [{"place": "A"}, {"place": "A"}, {"place": "B"}, {"remove": "B"}, {"check": AB}]


def timeline(item: BlicketItem = ITEM, played: list[Any] | None = None, system: str = "me") -> Timeline:
    return blicket_timeline(item, opened(item, PLAYED if played is None else played).steps, system)


def left(found: Timeline, moment: int) -> set[str]:
    """Return the answers that are left, with the group in which each stands."""
    named = [f"{group.title}: {name}" for group in found.groups for name in group.names]
    return {named[number] for number in found.moments[moment].answers}


def test_every_step_says_what_it_ruled_out() -> None:
    found = timeline()
    assert [moment.members for moment in found.moments] == [11, 7, 7, 3, 3, 3]
    assert [moment.news for moment in found.moments] == [
        *(News.NONE, News.TOLD, News.NONE, News.TOLD, News.NOTHING, News.NONE),
    ]
    assert [moment.light for moment in found.moments] == [
        *(Light.NONE, Light.OFF, Light.REFUSED, Light.ON, Light.OFF, Light.SUBMITTED),
    ]
    assert [moment.objects for moment in found.moments] == [(), (0,), (0,), (0, 1), (0,), (0,)]
    assert found.moments[1].remark == "Rules out 4 of 11 hypotheses. 7 hypotheses, 7 answers left."
    assert found.moments[2].remark == "A is already on the detector."
    assert found.moments[3].caption == "Move 3 of 75: place B"
    assert "nothing is ruled out" in found.moments[4].remark
    assert left(found, 3) == {"one blicket: B", "all of these are needed: AB", "any of these is enough: BC"}
    assert sum(found.moments[3].answers.values()) == pytest.approx(1)


@pytest.mark.parametrize(
    ("played", "kind", "why"),
    [
        (PLAYED, "lucky", "The readings left 3 answers, and a right one was given."),
        ([*PLAYED[:4], {"check": BC}], "short", "The readings left 3 answers, and a wrong one was given."),
        (PLAYED[:4], "no answer", "The readings left 3 answers, and none was given."),
        (
            [*PLAYED[:3], {"remove": "A"}, {"check": AB}],
            "earned",
            "The readings left one answer, and it was given.",
        ),  # B alone is inactive: neither B nor one of B, C
        (
            [*PLAYED[:3], {"remove": "A"}, {"check": BC}],
            "missed",
            "The readings left one answer, but another was given. The answer contradicts the readings.",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and " " not in value else "",
)
def test_the_decision_says_whether_it_was_earned(played: list[Any], kind: str, why: str) -> None:
    decision = timeline(played=played).decision
    assert decision.kind == kind
    assert decision.why.startswith(why)
    assert decision.truth == "all of A, B"
    assert decision.correct == (kind in ("earned", "lucky"))


def test_one_answer_is_left_from_the_reading_that_decides_on() -> None:
    assert timeline(played=[*PLAYED[:3], {"remove": "A"}, {"check": AB}]).decided == 4
    assert timeline().decided is None


def test_a_silent_switch_stands_where_it_happens() -> None:
    """N = 1: the first activation is still under A, what is read after it under C."""
    rules = (Mechanism(Rule(Form.DISJUNCTIVE, 0b001)), Mechanism(Rule(Form.DISJUNCTIVE, 0b100)))
    item = BlicketItem("switching", Condition.MODERATOR, Task(("A", "B", "C"), 9), Sealed(rules, switches=(1,)))
    found = timeline(item, [{"place": "B"}, {"place": "A"}, {"remove": "B"}])
    assert [moment.light for moment in found.moments[1:]] == [Light.OFF, Light.ON, Light.OFF]
    assert found.changed == (2,)
    assert [moment.behind for moment in found.moments] == ["A", "A", "C", "C"]
    assert [moment.marked for moment in found.moments] == [(0,), (0,), (2,), (2,)]
    assert found.decision.truth == "C"


def test_a_class_that_is_refuted_says_so() -> None:
    """A is active, later not, and then again: no single switch does that. A last one to the same is in no class."""
    rules = tuple(Mechanism(Rule(Form.DISJUNCTIVE, blickets)) for blickets in (0b01, 0b10, 0b01, 0b01))
    item = BlicketItem("twice", Condition.MODERATOR, Task(("A", "B"), 50), Sealed(rules, switches=(1, 3, 40)))
    played: list[Any] = [{"place": "A"}, {"remove": "A"}, {"place": "B"}, {"remove": "B"}, {"place": "A"}]
    played += [{"remove": "A"}, {"place": "B"}, {"remove": "B"}, {"place": "A"}]
    found = timeline(item, [*played, {"check": {"rule": "disjunctive", "blickets": ["A"]}}])
    assert found.moments[-1].members == 0
    assert any("the class is refuted" in moment.remark for moment in found.moments)
    assert "left no hypothesis of the class" in found.decision.why


@pytest.mark.parametrize(
    ("names", "labels"),
    [
        (("A", "B", "C"), "ABC"),
        (("object 0", "object 1", "object 2"), "012"),
        (("stone", "cup", "straw"), "123"),
        (("stone", "ston", "stones"), "123"),
    ],
    ids=str,
)
def test_every_thing_has_a_letter_to_stand_on_it(names: tuple[str, ...], labels: str) -> None:
    item = replace(ITEM, task=replace(ITEM.task, objects=names))
    found = timeline(item, [{"place": names[1]}])
    assert found.labels == tuple(labels)
    assert found.groups[1].names == tuple(
        "".join(labels[k] for k in kept) for kept in ((0, 1), (0, 2), (1, 2), (0, 1, 2))
    )
    page = timeline_page("names", [found])
    assert all(f"<title>{name}</title>" in page for name in names)


@settings(max_examples=examples(20), deadline=None)
@given(st.data())
def test_any_episode_has_a_timeline_and_ends_as_its_attribution_says(data: st.DataObject) -> None:
    item = data.draw(items())
    steps = opened(item, data.draw(actions(item.task.n))).steps
    found = blicket_timeline(item, steps, "me")
    attribution = attribute_episode(item, steps).attribution
    assert len(found.moments) == len(steps) + 1
    assert found.moments[-1].members == attribution.members
    assert found.decision.kind in (attribution.kind, "no answer")
    assert (found.decision.kind == "no answer") is found.decision.answer.startswith("nothing")
    assert timeline_page("any", [found]).count('<tr data-things="') == len(found.moments)


def test_a_false_reading_has_no_timeline() -> None:
    steps = [Step({"place": "A"}, "ACTIVE", "", 1)]
    with pytest.raises(TranscriptError, match="step 0: reading ACTIVE recorded, was INACTIVE"):
        blicket_timeline(ITEM, steps, "me")


def test_names_are_text_and_nothing_else() -> None:
    name = "<script>alert('1')</script>"
    item = replace(ITEM, id=name, task=replace(ITEM.task, objects=(name, "</table>", "&quot;")))
    page = timeline_page(name, [timeline(item, [{"place": name}, {"place": "<b>"}], name)])
    assert "<script>alert" not in page
    assert page.count("<script>") == 1
    assert page.count("</table>") == 1


# --- the commands -----------------------------------------------------------------------------------------------------


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    write_pool(tmp_path / "pool.jsonl", "mine", [ITEM, replace(ITEM, id="other")], {})
    return tmp_path / "pool.jsonl"


@pytest.fixture
def run(pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    assert main(["run", "static,copy,abstain", str(pool), "--out", str(tmp_path / "run"), "--workers", "1"]) == 0
    capsys.readouterr()
    return tmp_path / "run"


def test_show_writes_the_episodes_of_an_item(
    pool: Path, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    line = ["show", str(pool), "static", "--run", str(run), "--html", str(page)]
    assert main(line) == 0
    assert capsys.readouterr().err.splitlines()[0] == f"page written to {page}"
    text = page.read_text(encoding="utf-8")
    for system in ("static", "copy", "abstain"):
        assert f'aria-label="{system} on static"' in text
    assert main([*line, "--system", "copy"]) == 0
    assert page.read_text(encoding="utf-8").count('class="timeline"') == 1


def test_without_a_page_an_episode_is_told_in_words(pool: Path, run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(pool), "static", "--run", str(run), "--system", "static"]) == 0
    first, headings, before, *steps, verdict, in_words = capsys.readouterr().out.splitlines()
    assert first == "static on static"
    assert headings.split() == ["Step", "In", "place", "Reading", "Left", "Answers", "What", "it", "did"]
    assert before.split()[-4:] == ["11", "hypotheses,", "11", "answers."]
    assert len(steps) > 2
    assert verdict.startswith("earned: answered all of A, B; right. The readings left one answer, and it was given.")
    assert in_words.startswith("Hypotheses: one rule throughout")


def test_show_takes_predictions_with_steps(pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    steps = msgspec.to_builtins(step_records(opened(ITEM, PLAYED).steps))
    lines = [{"id": "static", "model": "m", "steps": steps}, {"id": "other", "model": "m", "answer": AB}]
    file, page = jsonl(tmp_path / "p.jsonl", *lines), tmp_path / "page.html"
    assert main(["show", str(pool), "static", "--run", str(file), "--html", str(page)]) == 0
    assert 'aria-label="m on static"' in page.read_text(encoding="utf-8")
    file.write_text(f'{{"id": "static"}}\n{json.dumps(lines[0])}\n', "utf-8")
    capsys.readouterr()
    assert main(["show", str(pool), "static", "--run", str(file)]) == 0
    shown = capsys.readouterr()
    assert "m on static" in shown.out
    assert "p.jsonl: skipped line 1: no answer in it" in shown.err
    assert "p.jsonl: 2 lines read, 1 skipped, 1 answer read" in shown.err
    file.write_text('{"id": "static"}\n', "utf-8")
    assert "all 1 lines are left out; first: no answer" in refused(capsys, "show", pool, "static", "--run", file)


def test_what_cannot_be_shown_is_refused_in_one_line(
    pool: Path, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    line = ["show", pool, "static", "--run", run, "--html", page]
    assert "no episode of nobody on static" in refused(capsys, *line, "--system", "nobody")
    record = next(one for one in folder_records(run) if one.steps)
    assert record.steps
    changed = [msgspec.structs.replace(record.steps[0], reading="?")]
    false = write_records(tmp_path / "false", [msgspec.structs.replace(record, steps=changed)])
    said = refused(capsys, "show", pool, "static", "--run", false, "--html", page)
    assert "step 0: reading '?' recorded, was " in said
    assert not page.exists()


def test_an_episode_that_was_played_is_written(
    pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", typed(PLAYED))
    assert main(["play", str(pool), "static", "--html", str(tmp_path / "mine.html")]) == 0
    assert "Rules out 4 of 11" in (tmp_path / "mine.html").read_text(encoding="utf-8")


def test_a_person_types_words_and_a_program_json(
    pool: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = 'REASONING: A first\nplace A\nACTION: place B\nACTION: {"remove": "A"}\nplace the cup\n'
    monkeypatch.setattr("sys.stdin", io.StringIO(lines))
    assert main(["play", str(pool), "static"]) == 1
    said = capsys.readouterr().out.splitlines()[-6:]
    assert said[0].startswith("'REASONING: A first' is no move and costs nothing; type place A")
    assert [line.partition(".")[0] for line in said[1:4]] == [
        *("The detector is INACTIVE", "The detector is ACTIVE", "The detector is INACTIVE"),
    ]
    assert said[4].startswith("no object 'the cup'; there are")
    monkeypatch.setattr("sys.stdin", io.StringIO("place A\n"))
    assert main(["play", str(pool), "static", "--jsonl"]) == 1
    assert '"event": "unreadable"' in capsys.readouterr().out


def test_what_a_program_played_can_be_scored_again(
    pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", typed(PLAYED))
    assert main(["play", str(pool), "static", "--jsonl"]) == 0
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    steps = [
        {key: event[key] for key in ("action", "reading", "refused", "cost")}
        for event in events
        if event["event"] == "step"
    ]
    file = jsonl(tmp_path / "p.jsonl", {"instanceId": "static", "model": "m", "steps": steps})
    assert main(["score", str(pool), str(file), "--json"]) == 0
    verdict = json.loads(capsys.readouterr().out)
    assert verdict == {**verdict, **events[-1]["score"], "attribution": events[-1]["attribution"]}


def test_only_answers_to_replayscm_are_alternatives(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refused(capsys, "alternatives", run, "--out", tmp_path / "a.jsonl")
    assert said == "a run on a pool of blickets; alternatives are SCMs, answers to ReplaySCM"


def typed(played: list[Any]) -> io.StringIO:
    return io.StringIO("".join(json.dumps(action) + "\n" for action in played))


def test_a_report_with_pools_shows_an_episode_of_each_kind(pool: Path, run: Path, tmp_path: Path) -> None:
    """Row static earns its answers, abstain falls short; copy is right or wrong without the readings deciding it."""
    page, plain = tmp_path / "r.html", tmp_path / "plain.html"
    assert main(["report", str(run), "--pools", str(pool), "--out", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    kinds = {record.attribution["kind"] for record in folder_records(run)}  # type: ignore[index]
    assert len(kinds) > 1
    assert text.count('<section class="timeline"') == len(kinds)
    assert text.count('<a href="#blickets-episodes">') == 1
    ids = re.findall(r' id="([^"]*)"', text)
    assert len(set(ids)) == len(ids)
    assert main(["report", str(run), "--out", str(plain)]) == 0
    assert '<section class="timeline"' not in plain.read_text(encoding="utf-8")


@needs_chromium
def test_in_a_report_keys_are_for_the_episode_that_was_touched(pool: Path, run: Path, tmp_path: Path) -> None:
    """Until then they scroll the page, as everywhere."""
    page = tmp_path / "r.html"
    assert main(["report", str(run), "--pools", str(pool), "--out", str(page)]) == 0
    presses = """
      const steps = () => [...document.querySelectorAll(".timeline input[type=range]")].map((one) => one.value).join();
      const touch = (place) => place.dispatchEvent(new PointerEvent("pointerdown", { bubbles: true }));
      const right = () => document.body.dispatchEvent(
        new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true, cancelable: true }));
      said.push(right(), steps());
      touch(document.querySelector(".timeline .stage")); said.push(right(), steps());
      touch(document.querySelector("table.systems")); said.push(right(), steps());
    """
    unhindered, before, taken, after, again, still = pressed(page.read_text(encoding="utf-8"), presses, tmp_path)
    assert (unhindered, taken, again) == ("true", "false", "true")
    assert set(before.split(",")) == {"0"}
    assert after == still == before.replace("0", "1", 1)


@needs_chromium
def test_a_reader_steps_through_the_page(tmp_path: Path) -> None:
    """With keys, slider, buttons and a click into the strip; what is hidden is shown when it is asked for."""
    presses = """
      const root = document.querySelector(".timeline");
      const find = (selector) => root.querySelector(selector);
      const state = () => said.push([
        find(".members").textContent,
        find(".said").textContent,
        find(".news").textContent,
        [...root.querySelectorAll(".chips .still")].map((chip) => chip.textContent).join("+"),
        [...root.querySelectorAll(".chips .now")].length,
        [...root.querySelectorAll(".thing.in text")].map((thing) => thing.textContent).join("+"),
      ].join(" | "));
      const key = (name) => document.body.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true }));
      state();
      key("ArrowRight"); state();
      find(".on-one").click(); find(".on-one").click(); state();
      const slider = find("input[type=range]");
      slider.value = 4; slider.dispatchEvent(new Event("input")); state();
      key("End"); said.push(find(".remark").textContent);
      said.push([...root.querySelectorAll(".chips [data-given].decided")].map((chip) => chip.textContent).join());
      key("Home"); key("ArrowLeft"); said.push(find(".caption").textContent);
      const film = find(".film"), box = film.getBoundingClientRect();
      const scale = box.width / film.viewBox.baseVal.width;
      const x = box.left + scale * (Number(film.dataset.labels) + 3.5 * Number(film.dataset.column));
      film.dispatchEvent(new MouseEvent("click", { clientX: x, clientY: box.top + 30, bubbles: true }));
      said.push(find(".caption").textContent);
      const star = () => getComputedStyle(root.querySelectorAll(".thing .star")[0]).display;
      said.push([find(".behind").hidden, star()].join());
      find(".reveal").click();
      said.push([find(".behind").textContent, star()].join());
      said.push(document.querySelectorAll(".timeline")[1].querySelector(".members").textContent);
      const boxes = [find(".film"), find(".bench")].map((one) => one.getBoundingClientRect());
      said.push(boxes.every((one) => one.width > 150 && one.height > 100));
      said.push(performance.getEntriesByType("resource").length);
    """
    page = timeline_page("static", [timeline(), timeline(played=PLAYED[:1], system="other")])
    assert not re.search("https?:|[(]\\s*['\"]?//|fetch[(]|@import", page)
    everything = "A+B+C+AB+AC+BC+ABC+AB+AC+BC+ABC"
    assert pressed(page, presses, tmp_path) == [
        f"11 |  |  | {everything} | 0 | ",
        "7 | INACTIVE | informative | B+C+AB+AC+BC+ABC+BC | 4 | A",
        "3 | ACTIVE | informative | B+AB+BC | 4 | A+B",
        "3 | INACTIVE | nothing new | B+AB+BC | 0 | A",
        "Right. The readings left 3 answers, and a right one was given. As the class weighs them, it had a"
        " probability of 0.333.",
        "AB",
        "Before the first of 75 moves",
        "Move 3 of 75: place B",
        "true,none",
        "Hidden: the rule of the next reading is all of A, B,inline",
        "11",
        "true",
        "0",
    ]


# --- the context graph of agents with dynamic behaviours -------------------------------------------------------------


def failing_rule() -> tuple[BlicketItem, list[Any]]:
    """Return an item whose first rule, A and B, is confirmed three times and then gives way to C alone."""
    rules = (Mechanism(Rule(Form.CONJUNCTIVE, 0b011)), Mechanism(Rule(Form.DISJUNCTIVE, 0b100)))
    item = BlicketItem("switching", Condition.MODERATOR, Task(("A", "B", "C"), 20), Sealed(rules, switches=(3,)))
    moves = ["+A", "+B", "-A", "+A", "-B", "+B", "-B", "+B", "-A", "+A", "+C", "-A"]
    return item, [{"place" if move[0] == "+" else "remove": move[1]} for move in moves]


def test_the_context_graph_is_drawn_before_and_after_a_behaviour_fires() -> None:
    item, played = failing_rule()
    graphs = timeline(item, played, "cg+db").graphs
    before, *_, after = graphs
    assert (before.title, len(before.nodes), len(before.edges)) == ("Context graph at the start", 4, 6)
    assert after.title.startswith("Context graph after DB4 (rule change hypothesis), from move ")
    (added,) = [node.name for node in after.nodes if node.tone == "good"]
    assert added == "MODERATOR_DETECTION"
    marked = {(edge.cause, edge.effect) for edge in after.edges if edge.tone == "good"}
    assert marked >= {
        ("HYPOTHESIS_EVALUATION", added),
        (added, "COMBINATION_TESTING"),
        (added, "VERIFICATION"),
    }
    page = timeline_page("Episodes", [timeline(item, played, "cg+db"), timeline(item, played, "cg")])
    assert page.count('<figure class="states">') == len(graphs)
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert timeline(item, played, "cg").graphs == ()
