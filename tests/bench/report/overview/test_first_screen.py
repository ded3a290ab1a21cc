"""The first screen of a report: its figures are those of `table --json`, its classes add up, blue ends at accuracy."""

from __future__ import annotations

import csv
import io
import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable
from fractions import Fraction
from itertools import combinations, permutations, product
from math import sqrt
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant.bench.blickets.report import GUIDE
from calibrant.bench.blickets.scoring import METRICS
from calibrant.bench.cli import main
from calibrant.bench.core.attribution import KEY, KINDS
from calibrant.bench.core.registry import bundled_files
from calibrant.bench.core.scoring import AnswerContext
from calibrant.bench.report.overview import page as report_module
from calibrant.bench.report.overview.page import PageSection, report_page
from calibrant.bench.report.overview.results import Results, read_results
from calibrant.bench.report.overview.screen import class_bar, first_screen
from calibrant.bench.report.overview.sentences import (
    Responses,
    class_sentence,
    five_figures,
    luck_sentence,
    percents,
    rank_sentence,
)
from calibrant.bench.report.rows import named_answers
from calibrant.bench.report.sections import Section
from calibrant.dsl.memory import gc_paused
from tests.support.browser import needs_chromium, pressed
from tests.support.commands import CHECKOUT, called, jsonl
from tests.support.report_rows import graded

SYSTEMS = ("quiet", "static", "switch-aware")
Z = 1.959963984540054
Rule: TypeAlias = tuple[Callable[[Iterable[bool]], bool], frozenset[str]]  # `all` or `any`, and the blickets


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("screen")
    pool = str(bundled_files()["blickets"][0])
    assert main(["run", ",".join(SYSTEMS), pool, "--out", str(made / "run"), "--workers", "1"]) == 0
    assert main(["report", str(made / "run"), "--pool", pool, "--out", str(made / "r.html")]) == 0
    return made


@pytest.fixture(scope="module")
def page(folder: Path) -> str:
    return (folder / "r.html").read_text(encoding="utf-8")


@pytest.fixture
def rows(folder: Path, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    capsys.readouterr()
    assert main(["table", str(folder / "run"), "--json"]) == 0
    printed: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["rows"]
    return printed


def total(rows: list[dict[str, Any]], system: str, key: str) -> int:
    number: float = sum(row["n"] * row[key] for row in rows if row["system"] == system)
    return round(number)


def test_every_figure_equals_the_table(page: str, rows: list[dict[str, Any]]) -> None:
    found = dict(re.findall(r'<li data-figure="(\w+)"><b>([^<]*)</b>', page))
    size = {name: sum(row["n"] for row in rows if row["system"] == name) for name in SYSTEMS}
    right = {name: total(rows, name, "accuracy") for name in SYSTEMS}
    best = max(SYSTEMS, key=lambda name: right[name])
    assert found["right"] == f"{right[best]} of {size[best]}"
    decided = max(total(rows, name, "earned") + total(rows, name, "missed") for name in SYSTEMS)
    assert found["decided"] == f"{decided} of 24"
    lucky = {name: total(rows, name, "lucky") for name in SYSTEMS}
    luckiest = max(SYSTEMS, key=lambda name: Fraction(lucky[name], right[name]))
    assert found["luck"] == f"{lucky[luckiest]} of {right[luckiest]}"
    assert found["missed"] == str(sum(total(rows, name, "missed") for name in SYSTEMS))
    cost = {name: sum(row["n"] * row["steps"] for row in rows if row["system"] == name) / 24 for name in SYSTEMS}
    assert found["cost"] == f"{cost[best]:.1f}"
    cheapest = min(cost, key=lambda name: cost[name])
    assert f"{best}, the best; {cheapest} needs the fewest, {cost[cheapest]:.1f}<" in page
    words = re.findall(r"<li><b>([^<]*)</b>: ", page)
    assert words == ["Right", "Decided", "Earned, lucky", "Missed, short"]


def test_cells_and_classes_equal_the_table(page: str, rows: list[dict[str, Any]]) -> None:
    for row in rows:
        anchor = f'<a href="#blickets/{row["setting"]}/{row["system"]}">'
        right, earned = round(row["n"] * row["accuracy"]), round(row["n"] * row["earned"])
        assert re.search(rf'{anchor}{right}/{row["n"]}</a> <span class="\w+">{earned} earned<', page)
    for name in SYSTEMS:
        counts = [total(rows, name, kind) for kind in ("earned", "lucky", "short", "missed")]
        assert sum(counts) == 24
        line = re.search(rf'<tr data-system="{name}".*?</tr>', page)
        assert line is not None
        assert f">{' · '.join(map(str, counts))}<" in line[0]


def test_the_interval_is_wilsons(page: str, rows: list[dict[str, Any]]) -> None:
    """20 of 24, by the formula written out."""
    assert total(rows, "switch-aware", "accuracy") == 20
    share, n = 20 / 24, 24
    middle = (share + Z**2 / (2 * n)) / (1 + Z**2 / n)
    half = Z / (1 + Z**2 / n) * sqrt(share * (1 - share) / n + Z**2 / (4 * n**2))
    assert f"switch-aware, {middle - half:.3f}\N{EN DASH}{middle + half:.3f}" in page
    assert f"right 0.833, 95 % interval {middle - half:.3f} to {middle + half:.3f}" in page


def simple_rules(objects: str) -> list[Rule]:
    """Return all rules without order; of one object they are the same in both forms."""
    sets = [frozenset(chosen) for size in range(1, len(objects) + 1) for chosen in combinations(objects, size)]
    return [(form, chosen) for form in (all, any) for chosen in sets if form is all or len(chosen) > 1]


def lights(rule: Rule, placed: str) -> bool:
    form, blickets = rule
    return form(one in placed for one in blickets)


def verdicts_left(setting: str, objects: str, readings: list[tuple[str, bool]]) -> Counter[Rule]:
    """Count, by the rule in force at the end, the hypotheses that no reading contradicts: one by one.

    readings: what was placed, in order, and whether the detector lit up
    """
    rules = simple_rules(objects)
    if setting == "order":
        orders = [order for size in range(2, len(objects) + 1) for order in permutations(objects, size)]
        return Counter(
            (all, frozenset(order))
            for order in orders
            if all((tuple(one for one in placed if one in order) == order) == lit for placed, lit in readings)
        )
    if setting == "stochastic":  # five rates, and dark says nothing
        fit = [rule for rule in rules if all(lights(rule, placed) for placed, lit in readings if lit)]
        return Counter(dict.fromkeys(fit, 5))
    if setting != "moderator":
        return Counter(rule for rule in rules if all(lights(rule, placed) == lit for placed, lit in readings))
    *before, (last, is_lit) = readings
    assert is_lit, "quiet stops at the first light"
    assert not any(lit for _, lit in before)
    first = [r for r in rules if lights(r, last) and not any(lights(r, placed) for placed, _ in before)]
    left: Counter[Rule] = Counter()
    for old, new, level in product(first, rules, range(1, 13)):
        if old != new:
            left[new if level == 1 else old] += 1
    return left


def test_levels_are_shares_of_hypotheses(page: str, folder: Path) -> None:
    """Five objects have 57 rules, four 26; 20 of 24 detectors have five. What fits is counted here one by one."""
    line = re.findall(r'<tr data-system="quiet"><th scope="row">quiet</th>(.*?)</tr>', page)[0]
    cells = re.findall(r">([^<]*)</td>", line)
    guess, draws, ceilings = (20 / 57 + 4 / 26) / 24, [], []
    for text in (folder / "run" / "records.jsonl").read_text(encoding="utf-8").splitlines():
        record = json.loads(text)
        if record["protocol"] != "quiet":
            continue
        placed, readings = "", []
        for step in record["steps"]:
            action = step["action"]
            placed = placed.replace(action.get("remove", " "), "") + action.get("place", "")
            if "check" not in action:  # which submits
                readings.append((placed, step["reading"] == "ACTIVE"))
        left = verdicts_left(record["setting"], "ABCD" if record["setting"] == "order" else "ABCDE", readings)
        truth = record["score"]["rule_in_force"]
        blickets = frozenset(truth["blickets"])
        form = all if truth["rule"] == "conjunctive" or len(blickets) == 1 else any
        draws.append(Fraction(left[form, blickets], left.total()))
        ceilings.append(Fraction(max(left.values()), left.total()))
    assert len(draws) == 24
    draw, ceiling = sum(draws, Fraction()) / 24, sum(ceilings, Fraction()) / 24
    assert guess < draw < ceiling < 1
    assert cells[4:7] == [f"{guess:.3f}", f"{float(draw):.3f}", f"{float(ceiling):.3f}"]


def results_of(answers: list[tuple[str, int, dict[str, Any]]]) -> Results:
    contexts = [
        (AnswerContext(system, "p", "d" * 64, 9, f"i{item}", "moderator", "", sample=k, benchmark="blickets"), score)
        for k, (system, item, score) in enumerate(answers)
    ]
    return read_results("blickets", "Extended blickets", named_answers(contexts), METRICS, GUIDE)


def scored(kind: str, *, answered: bool = True) -> dict[str, Any]:
    right = kind in ("earned", "lucky")
    score = graded(correct=right, closed="answered" if answered or right else "timeout")
    return score | {KEY: {"kind": kind, "decided": kind in ("earned", "missed"), "fits": True, "members": "3"}}


@given(st.lists(st.tuples(st.integers(0, 6), st.sampled_from(KINDS), st.booleans()), min_size=1, max_size=30))
def test_classes_sum_to_items_and_blue_ends_at_accuracy(answers: list[tuple[int, str, bool]]) -> None:
    """Also where items are answered several times; bars are 352 px wide, and 1 px is what may be lost."""
    results = results_of([("s", item, scored(kind, answered=answered)) for item, kind, answered in answers])
    (system,) = results.systems
    items: dict[int, list[str]] = {}
    for item, kind, _ in answers:
        items.setdefault(item, []).append(kind)
    share = sum(Fraction(sum(k in ("earned", "lucky") for k in kinds), len(kinds)) for kinds in items.values())
    assert system.num_items == len(items)
    assert sum(system.counts.values()) == len(items)
    percent = {"<1 %": 0, ">99 %": 100}
    shown = [text for key, text in percents(system).items() if key != "right"]
    assert sum(percent[text] if text in percent else int(text[:-2]) for text in shown) == 100
    assert system.right == share
    parts = re.findall(r'<rect class="class-(\w+)" x="([\d.]+)%" y="8" width="([\d.]+)%"', class_bar(system))
    blue = sum(float(width) for name, _, width in parts if name in ("earned", "lucky"))
    assert abs(blue / 100 * 352 - float(share / len(items)) * 352) < 1
    assert abs(sum(float(width) for *_, width in parts) - 100) < 0.01
    ends = [float(x) + float(width) for _, x, width in parts]
    assert all(abs(float(x) - end) < 0.01 for (_, x, _), end in zip(parts[1:], ends, strict=False))


def test_refused_answers_stand_apart_from_missing_ones() -> None:
    refused_score = scored("short", answered=False) | {"problem": "unknown object"}
    results = results_of(
        [("s", 0, refused_score), ("s", 1, scored("missed", answered=False)), ("s", 2, scored("short"))]
    )
    (system,) = results.systems
    parts = re.findall(r'<rect class="class-(\w+)"[^>]* width="([\d.]+)%"', class_bar(system))
    assert parts == [("short", "33.3333"), ("invalid", "33.3333"), ("none", "33.3333")]
    assert "s: 1 short, 1 invalid, 1 no answer of 3" in class_bar(system)


def test_the_sentence_names_the_pair_whose_ranks_differ_most() -> None:
    lucky = [("a", item, scored("lucky")) for item in range(4)] + [("a", 4, scored("earned"))]
    honest = [("b", item, scored("earned")) for item in range(4)] + [("b", 4, scored("short"))]
    sentence = rank_sentence(results_of([*lucky, *honest]))
    assert (sentence.plain, sentence.strong) == ("a scores 1.000, b 0.800.", "a earned 1, b 4")
    assert "agree" in rank_sentence(results_of([*honest, ("c", 0, scored("short"))])).plain


def test_ranks_by_earned_are_compared_where_all_is_counted_alone() -> None:
    partly = [(name, item, scored("earned") if item else graded()) for name in ("a", "b") for item in range(3)]
    results = results_of(partly)
    sentence = rank_sentence(results).plain
    assert "agree" not in sentence
    assert "not compared" in sentence
    details = {figure.name: figure.detail for figure in five_figures(results)}
    assert details["decided"] == "both systems; 1 more not counted"
    assert details["missed"] == "both systems"


def test_decimals_of_counts_are_explained_where_there_are_some() -> None:
    whole = [("a", item, scored("earned")) for item in range(2)]
    again = [("b", 0, scored("earned")), ("b", 0, scored("short")), ("b", 1, scored("earned"))]
    assert not first_screen(results_of(whole), "")["fractions"]
    assert "share" in first_screen(results_of([*whole, *again]), "")["fractions"]


def test_a_first_reader_is_told_what_was_luck() -> None:
    lucky = [("a", item, scored("lucky")) for item in range(4)]
    honest = [("b", item, scored("earned")) for item in range(3)] + [("b", 3, scored("short"))]
    assert luck_sentence(results_of([*lucky, *honest])) == (
        "a is right on 100 % and b on 75 %, but a earned only 0 %, and b 75 %: the rest was luck."
    )
    explains = "explains everything that it was shown, and is right on"
    assert luck_sentence(results_of(honest)) == f"b {explains} 75 % of the items, all of it earned."
    assert luck_sentence(results_of(lucky)) == (
        f"a {explains} 100 % of the items: all of it luck, since other answers explain the same."
    )
    mixed = [("c", 0, scored("earned")), ("c", 1, scored("lucky")), ("c", 2, scored("missed"))]
    wrong = [("d", item, scored("missed")) for item in range(3)]
    assert luck_sentence(results_of([*mixed, *wrong])) == (
        f"c {explains} 67 % of the items: 34 % earned and 33 % luck; d is right on 0 %."
    )
    uncounted = [("e", 0, {**scored("earned"), KEY: None}), ("e", 1, scored("earned"))]
    assert "50 % earned and the others not counted" in luck_sentence(results_of(uncounted))
    luckless = [("f", item, scored("lucky" if item else "short")) for item in range(4)]
    assert luck_sentence(results_of([*lucky, *luckless])) == (
        "a and f both explain all that they were shown, and are right on 100 % and 75 % of the items: all luck, since"
        " other answers explain the same."
    )
    best = [("z", item, scored("earned")) for item in range(4)]
    lucky = [("a", item, scored("lucky" if item else "short")) for item in range(4)]
    honest = [("b", item, scored("earned" if item > 1 else "short")) for item in range(4)]
    assert luck_sentence(results_of([*best, *lucky, *honest])).startswith("z is right on 100 % (100 % earned). a is")
    assert rank_sentence(results_of([*best, *lucky, *honest])).plain.startswith("z scores best, 1.000. a scores 0.750")


def test_a_rate_that_is_not_0_or_100_is_not_printed_as_such() -> None:
    (system,) = results_of([("a", item, scored("earned" if item else "short")) for item in range(400)]).systems
    assert [percents(system)[key] for key in ("right", "earned", "lucky", "short")] == [">99 %", ">99 %", "0 %", "<1 %"]


def test_whole_percents_of_classes_add_up_to_100() -> None:
    """Three thirds are 34, 33 and 33; of right answers those that were earned and lucky are rounded together."""
    kinds = ["earned", "lucky", "missed", *("short",) * 3]
    shares = percents(results_of([("a", item, scored(kind)) for item, kind in enumerate(kinds)]).systems[0])
    assert [shares[key] for key in ("right", "earned", "lucky", "missed", "short")] == [
        "33 %",
        "17 %",
        "16 %",
        "17 %",
        "50 %",
    ]


def test_systems_that_share_the_first_place_are_named_together() -> None:
    answers = [(name, item, scored("earned")) for name in ("a", "b") for item in range(2)]
    last = [("c", 0, scored("short")), ("c", 1, scored("earned"))]
    assert rank_sentence(results_of([*answers, *last])).plain.startswith("a and b score best, 1.000.")


def test_what_was_not_counted_is_said_and_drawn_apart() -> None:
    """Outlined boxes, no figure about luck, and the options that count."""
    right, wrong = graded(), graded(correct=False)
    results = results_of([("a", 0, right), ("a", 1, wrong)])
    assert {figure.name for figure in five_figures(results)} == {"right", "cost"}
    assert "not counted" in rank_sentence(results).plain
    assert re.findall(r'class="class-(\w+)"', class_bar(results.systems[0])) == ["right", "wrong"]


@pytest.mark.parametrize(
    ("num_uncounted", "told"),
    [
        (0, ("0", "right answers are luck", "the evidence left no other")),
        (2, ("0 of 2", "counted right answers are luck", "2 of 4 right answers not counted")),
    ],
)
def test_luck_is_stated_of_the_right_answers_that_are_counted(num_uncounted: int, told: tuple[str, ...]) -> None:
    answers = [("a", item, scored("earned") if item < 2 else graded()) for item in range(2 + num_uncounted)]
    (luck,) = (figure for figure in five_figures(results_of(answers)) if figure.name == "luck")
    assert luck[1:] == told


# --- Responses beside gold: why a wrong one is wrong, marks where mechanisms differ in meaning, and none elsewhere ----
POOL = CHECKOUT / "docs" / "examples" / "switches.jsonl"  # X3 = X1 replays all worlds
RESPONSES = {
    "right": 'Let me think. {"mechanisms": {"X3": "X1"}}',
    "respelled": 'So {"mechanisms": {"X3": "(or X1 (and X1 X2))"}}',
    "wrong": 'Let me think. {"mechanisms": {"X3": "(and X1 X2)"}}',
    "misfit": '{"mechanisms": {"X3": "X2"}}',
    "invalid": '{"mechanisms": {"X3": "(and X1"}}',
    "refused": "I would rather not.",
}


@pytest.fixture(scope="module")
def marked_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("marks")
    lines = [{"id": "lamp", "model": name, "response": text} for name, text in RESPONSES.items()]
    lines[-1]["finish_reason"] = "content_filter"
    jsonl(folder / "given.jsonl", *lines)
    assert called("score", POOL, folder / "given.jsonl", "--out", folder / "verdicts.jsonl").returncode == 0
    options = ("--pool", POOL, "--attribution", "--out")
    given = called("report", "--predictions", folder / "given.jsonl", *options, folder / "given.html")
    verdicts = called("report", folder / "verdicts.jsonl", *options, folder / "verdicts.html")
    assert (given.returncode, verdicts.returncode) == (0, 0), given.stderr + verdicts.stderr
    return folder


def responses(page: Path, tmp_path: Path) -> dict[str, list[str]]:
    """Return title, panel of the response, and what is marked, for each system."""
    presses = """
      const moved = () => dispatchEvent(new HashChangeEvent("hashchange"));
      for (const name of ["right", "respelled", "wrong", "misfit", "invalid", "refused"]) {
        location.hash = `replayscm/Hidden-order/${name}/lamp`; moved();
        const text = (one) => one.textContent.trim().replaceAll("/", "|");
        const marks = [...document.querySelectorAll("#drill ins, #drill del")].map(text);
        const panel = document.querySelector("#drill .three .panel pre, #drill .three .panel .soft");
        said.push([text(document.querySelector("#drill .response h1")), text(panel), marks.join(" ~ ")].join(" # "));
      }
    """
    parts = [entry.split(" # ") for entry in pressed(page.read_text("utf-8"), presses, tmp_path)]
    return dict(zip(RESPONSES, parts, strict=True))


def test_a_page_says_which_system_is_better_as_its_table_of_pairs_does(page: str, folder: Path) -> None:
    printed = called("report", folder / "run", "--table", "paired", "--format", "csv").stdout
    rows = [row for row in csv.DictReader(io.StringIO(printed)) if row["setting"] == "all"]
    best, second = re.findall(r'<tr data-system="([^"]+)"', page)[:2]
    pair = {row["column"]: row for row in rows if {row["system"], row["other"]} == {best, second}}
    (said,) = re.findall(r'<p class="ranks pairs">(.*?) <a href="#table-paired">', page)
    figure, verdict = pair["accuracy_difference"], pair["verdict"]["text"]
    relation = f"is {verdict} {'from' if verdict == 'not separated' else 'than'}"
    interval = f"[{figure['low']}, {figure['high']}]"
    assert said == f"{figure['system']} {relation} {figure['other']}: {figure['value']} {interval}."
    assert 'id="table-paired"' in page


@needs_chromium
def test_marks_are_mechanisms_that_mean_something_else(marked_folder: Path, tmp_path: Path) -> None:
    seen = responses(marked_folder / "given.html", tmp_path)
    assert seen["right"] == ["Right, but lucky", "X3 = X1", ""]
    assert seen["respelled"] == ["Right, but lucky", "X3 = (or X1 (and X1 X2))", ""]
    assert seen["wrong"] == ["Wrong: the evidence was short", "X3 = (and X1 X2)", "X3 = (and X1 X2) ~ X3 = X1"]
    assert seen["misfit"] == ["Wrong: it contradicts the evidence", "X3 = X2", "X3 = X2 ~ X3 = X1"]
    assert seen["invalid"] == ["Wrong: an invalid answer", RESPONSES["invalid"], ""]
    assert seen["refused"][:2] == ["No answer", RESPONSES["refused"]]


@needs_chromium
def test_a_response_that_verdicts_do_not_hold_is_said_to_be_elsewhere(marked_folder: Path, tmp_path: Path) -> None:
    for _, text, marks in responses(marked_folder / "verdicts.html", tmp_path).values():
        assert text.startswith("Files of verdicts do not hold responses")
        assert marks == ""


def test_a_table_without_a_figure_is_left_out(marked_folder: Path) -> None:
    """No answer has structure metrics: its parents and mechanisms were not compared; the paper's rows are elsewhere."""
    page = (marked_folder / "verdicts.html").read_text("utf-8")
    assert 'id="table-1"' in page
    assert 'id="table-2"' not in page
    texts = called("report", marked_folder / "verdicts.jsonl", "--format", "markdown", "--no-paper").stdout
    assert "HeldoutExact" in texts
    assert "Parents and mechanisms" not in texts


def test_the_page_of_a_lucky_answer_says_so(marked_folder: Path) -> None:
    page = marked_folder / "answer.html"
    line = ("show", POOL, "lamp", "--gold", "--run", marked_folder / "given.jsonl", "--system")
    assert called(*line, "right", "--html", page).returncode == 0
    text = page.read_text("utf-8")
    assert "lamp: a right answer, by luck" in text
    assert "the evidence left several answers: 2 SCMs fit (functional parents" in text
    assert "Why is it ambiguous?" not in text
    assert "by luck" not in called(*line, "wrong").stdout


REFUSAL = graded(correct=False) | {"reason": "refused"}


@pytest.mark.parametrize(
    ("recorded", "remaining"),
    [
        (None, ""),
        ({"decided": True}, " The evidence left one answer."),
        ({"decided": False}, " The evidence left several answers."),
    ],
)
def test_a_refusal_is_no_wrong_answer(recorded: dict[str, Any] | None, remaining: str) -> None:
    said = class_sentence(REFUSAL | {KEY: recorded}, is_right=False)
    refused = "No answer was given (refused): the provider or the model refused, or a filter stopped the text."
    assert said == refused + remaining
    assert "wrong" in class_sentence(REFUSAL | {"reason": "unreadable", KEY: {"decided": False}}, is_right=False)


# --- States of a report: one item, many systems, many items; time and size are bounded --------------------------------
EARNED = graded() | {"attribution": {"kind": "earned", "decided": True, "fits": True, "members": "1"}}
SHORT = graded(correct=False) | {"attribution": {"kind": "short", "decided": False, "fits": True, "members": "672"}}
CONDITIONS = ("conjunctive", "disjunctive", "moderator", "order", "stochastic")


def state_results(systems: int, items: int) -> Results:
    answers = [
        (
            AnswerContext(f"m{s}-{s % 7}", "p", "d" * 64, items, f"i{i}", CONDITIONS[i % 5], "", benchmark="blickets"),
            EARNED if (7 * i + s) % (2 + s % 5) else SHORT,
        )
        for s in range(systems)
        for i in range(items)
    ]
    return read_results("blickets", "Extended blickets", named_answers(answers), METRICS, GUIDE)


def page_of(results: Results) -> str:
    systems = frozenset(system.name for system in results.systems)
    section = Section("Extended blickets", "about", systems, (("p", "d" * 64),), results.num_answers, ())
    return report_page([PageSection("blickets", section, results, Responses(), {})], paper_on=False)


def test_one_item_has_no_interval_and_one_system_no_ranks() -> None:
    page = page_of(state_results(1, 1))
    assert "1 system on 1 detector" in page
    assert "Ranks by" not in page
    assert "95 % interval" not in page.replace('<button type="button">95 % interval</button>', "")


def test_125_systems_on_1000_items_take_two_seconds() -> None:
    """Of processor time: grouping, first screen, page. A quadratic step would take minutes; 5 s leave room for load."""
    start = time.process_time()
    with gc_paused():
        page = page_of(state_results(125, 1000))
    assert time.process_time() - start < 5
    assert len(page) < 3_000_000
    assert page.count('<button type="button" class="pin"') == 125
    assert 'class="system-search"' in page


def test_beyond_a_number_of_answers_cells_carry_counts_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    results = state_results(5, 200)
    monkeypatch.setattr(report_module, "MAX_LISTED", 999)
    page = page_of(results)
    assert re.search(r'"whole":false', page)
    assert '"i":[]' in page
    assert re.search(r'<a href="#blickets/conjunctive/m0-0">\d+/40</a>', page)
    whole = page_of(state_results(5, 199))
    assert re.search(r'"whole":true', whole)
