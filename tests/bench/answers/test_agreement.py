"""Every place that prints a rate of the same answers prints the same digits: table, report, board, lists, difficulty.

The expected figures are worked out here from the lines of `calibrant score`, in fractions: the mean over an item's
answers first, then ratios of sums over items, intervals clustered where items share a unit.
"""

from __future__ import annotations

import csv
import html
import io
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from itertools import product
from math import gamma, pi, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calibrant.bench.core.attribution import KEY
from calibrant.bench.core.metrics import InvalidHandling, Metric
from calibrant.bench.core.registry import NAMES, benchmark, benchmark_of
from calibrant.bench.difficulty.models import read_outcomes
from calibrant.bench.replayscm.paper import ATTRIBUTION, SPECS
from calibrant.bench.suites.rescoring import PoolJudge
from calibrant.bench.suites.submissions import BoardCell
from tests.support.commands import CHECKOUT, called

POOLS = {
    "replayscm": "replayscm/data/sample_ordered.jsonl",
    "blickets": "blickets/data/sample_blickets.jsonl",
    "causalab": "causalab/data/sample_causalab.jsonl",
    "causim": "causim/data/sample_causim.jsonl",
    "logic": "logic/data/sample_logic.jsonl",
}
RIGHT = {"replayscm": "heldout_exact"}  # of the others: accuracy
NUM_ITEMS = 12
PEOPLE = tuple(f"human:p{k}" for k in range(7))
SYSTEMS = ("a", "a (chosen)", "a ", "m")
SHOWN = {"a ": "'a '"}  # the name beside `a`
SYSTEM_OF_NAME = {SHOWN.get(name, name): name for name in SYSTEMS}
REFUSAL = "I cannot help."
SEVEN = ("earned", "lucky", "missed", "short", "uncounted", "invalid", "no_answer")
DASH = "\N{EN DASH}"
COMPARED: Counter[str] = Counter()


def compare(place: str, shown: object, expected: object) -> None:
    """Assert one figure, and count it."""
    assert shown == expected, (place, shown, expected)
    COMPARED[place] += 1


@pytest.fixture
def counted() -> Iterator[None]:
    """Fail the test that compared nothing, whichever tests ran before it in this process."""
    num_before = COMPARED.total()
    yield
    assert COMPARED.total() > num_before


# --- what the answers are ------------------------------------------------------------------------------------------


def _wrong(name: str, answer: dict[str, Any]) -> dict[str, Any]:
    """Return another answer of the same schema."""
    if name == "replayscm":
        return {"mechanisms": {key: f"(not {text})" for key, text in answer["mechanisms"].items()}}
    if name == "blickets":
        rules = {"conjunctive": "disjunctive", "disjunctive": "conjunctive"}
        return answer | {"rule": rules[answer["rule"]], "blickets": answer["blickets"][:1]}
    if name == "causalab":
        return {"frequency": answer["frequency"] + 40, "hypothesis": answer["hypothesis"]}
    if name == "causim":
        first, *others = answer
        return {first: "no such value", **{key: answer[key] for key in others}}
    return {"model": []}


@dataclass(frozen=True)
class Answered:
    """A pool, its answers in a file of verdicts, and what `calibrant` was asked about them. lines: of the file."""

    name: str
    pool: Path
    predictions: Path
    scores: Path
    lines: Sequence[Mapping[str, Any]]

    @property
    def right(self) -> Metric:
        return next(m for m in self.metrics if m.key == RIGHT.get(self.name, "accuracy"))

    @property
    def metrics(self) -> Sequence[Metric]:
        return benchmark(self.name).metrics.columns

    @cached_property
    def attributed(self) -> list[Mapping[str, Any]]:
        """The lines with their attributions, which `table --attribution` adds."""
        bench = benchmark(self.name)
        items = {item.id: item for item in bench.items.read_pool(self.pool).items}
        return [
            {**line, KEY: line.get(KEY) or bench.attribution(items[line["instanceId"]], {}, (), line)}
            for line in self.lines
        ]

    @cached_property
    def shares(self) -> list[dict[str, Any]]:
        """The rows of `table --attribution`."""
        return printed_rows("table", self.scores, "--attribution", "--pool", self.pool, "--json")

    @cached_property
    def page(self) -> list[list[str]]:
        """The texts of the cells of every row of every table of the report's page."""
        return cell_texts(_report(self, "html"), "html")


def listed_predictions(name: str, ids: Sequence[str], gold: Mapping[str, dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield answers: right, wrong and refused ones, two of most, one of some, none of a few."""
    for (place, instance), (number, system) in product(enumerate(ids), enumerate((*SYSTEMS, *PEOPLE))):
        if system in PEOPLE and (place + number) % 3 == 0:
            continue  # participants have other items each
        if system == "m" and place in (2, 5):
            continue  # missing
        times = 1 if system in PEOPLE or (system, place) == ("a", 7) else 2 + (system == "m" and place % 3 == 0)
        for sample in range(times):
            which = (7 * place + 3 * number + 5 * sample) % 11
            if system in ("a", "a (chosen)"):
                which = (place + sample) % 3 * 4  # equal rates
            answer = gold[instance] if which < 6 else _wrong(name, gold[instance])
            response = REFUSAL if which == 10 else json.dumps(answer)
            yield {"id": instance, "model": system, "sample": sample, "response": response}


@pytest.fixture(scope="module", params=NAMES)
def answered(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Answered:
    name, folder = request.param, tmp_path_factory.mktemp(request.param)
    pool = folder / "pool.jsonl"
    lines = (CHECKOUT / "bench" / POOLS[name]).read_text(encoding="utf-8").splitlines()
    chosen = [lines[0], *lines[1 :: max(1, (len(lines) - 1) // NUM_ITEMS)][:NUM_ITEMS]]
    if name == "causim":
        chosen = lines[: NUM_ITEMS + 1]  # questions about one program follow each other
    pool.write_text("\n".join(chosen) + "\n", encoding="utf-8")
    done = called("run", "exact", pool, "--out", folder / "runs", "--workers", "1")
    assert done.returncode == 0, done.stderr
    records = [json.loads(line) for line in (folder / "runs" / "records.jsonl").read_text().splitlines()]
    answers = {record["instance"]: record["answer"] for record in records}
    predictions = folder / "predictions.jsonl"
    listed = [json.dumps(line) for line in listed_predictions(name, [*answers], answers)]
    predictions.write_text("\n".join(listed) + "\n", encoding="utf-8")
    scores = folder / "scores.jsonl"
    done = called("score", pool, predictions, "--out", scores, "--workers", "1")
    assert done.returncode == 0, done.stderr
    (folder / "again.jsonl").write_bytes(scores.read_bytes())  # each line twice: it counts once
    verdicts = [json.loads(line) for line in scores.read_text(encoding="utf-8").splitlines()]
    assert len(verdicts) == len(listed) > 100
    return Answered(name, pool, predictions, scores, verdicts)


# --- what the figures have to be ------------------------------------------------------------------------------------


@cache
def student(degrees: int) -> float:
    """Return the 97.5 % quantile of Student's t, by Simpson's rule on the density."""
    scale = gamma((degrees + 1) / 2) / (sqrt(degrees * pi) * gamma(degrees / 2))

    def below(end: float, steps: int = 2_000) -> float:
        x = np.linspace(0, end, 2 * steps + 1)
        y = scale * (1 + x * x / degrees) ** (-(degrees + 1) / 2)
        return float((y[0] + y[-1] + 4 * y[1::2].sum() + 2 * y[2:-1:2].sum()) * end / (6 * steps))

    low, high = 0.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle) < 0.475 else (low, middle)
    return low


def score_interval(share: float, number: float) -> tuple[float, float]:
    z2 = 1.959964**2
    middle, half = share + z2 / (2 * number), sqrt(z2 * (share * (1 - share) / number + z2 / (4 * number * number)))
    return max(0.0, (middle - half) / (1 + z2 / number)), min(1.0, (middle + half) / (1 + z2 / number))


@dataclass(frozen=True)
class Expected:
    """A rate, the ends of its interval if it has one, and the number of items for which it is defined."""

    mean: Fraction
    interval: tuple[float, float] | None
    num_items: int

    def text(self, metric: Metric) -> str:
        if metric.conditional and self.num_items <= 5:
            return "*"
        return f"{float(self.mean):.{metric.decimals}f}"

    def ends(self, metric: Metric) -> tuple[str, str]:
        if self.interval is None or self.text(metric) == "*":
            return "", ""
        low, high = (f"{end + 0.0:.{metric.decimals}f}" for end in self.interval)
        return low, high


def expected(answered: Answered, lines: Sequence[Mapping[str, Any]], metric: Metric) -> Expected | None:
    """Return what a rate over these lines has to be; None where it is undefined."""
    metrics = benchmark(answered.name).metrics
    values: dict[str, list[float | None]] = {}
    for line in lines:
        verdict = metrics.verdict(line, line["setting"], InvalidHandling.PUBLISHED)
        value = metric.value(verdict)
        values.setdefault(line["instanceId"], []).append(None if value is None else float(value))
    sums: dict[str, tuple[Fraction, Fraction]] = {}
    per_unit: Counter[str] = Counter(map(metrics.unit, values))
    num_items = 0
    for instance, listed in values.items():
        known = [Fraction(value) for value in listed if value is not None]
        num_items += bool(known)
        if known:
            total, number = sums.get(metrics.unit(instance), (Fraction(), Fraction()))
            share = Fraction(1, len(listed))
            sums[metrics.unit(instance)] = total + sum(known) * share, number + len(known) * share
    total, number = (sum((pair[k] for pair in sums.values()), Fraction()) for k in range(2))
    if not number:
        return None
    mean = total / number
    interval = expected_interval(sums, is_share=metric.is_share, is_clustered=max(per_unit.values()) > 1)
    return Expected(mean, interval, num_items)


def expected_interval(
    sums: Mapping[str, tuple[Fraction, Fraction]], *, is_share: bool, is_clustered: bool
) -> tuple[float, float] | None:
    """Return the ends of the interval of a rate whose sums over values and numbers are given by unit."""
    total, number = (sum((pair[k] for pair in sums.values()), Fraction()) for k in range(2))
    mean, units = total / number, len(sums)
    spread = float(sum((pair[0] - mean * pair[1]) ** 2 for pair in sums.values()))
    if units < 2:
        return None
    if is_share and not is_clustered:
        return score_interval(float(mean), float(number))
    if is_share and (spread == 0 or min(mean, 1 - mean) <= 0.1):
        return score_interval(float(mean), units)
    if spread == 0:
        return None
    half = student(units - 1) * sqrt(units / (units - 1) * spread) / float(number)
    low, high = float(mean) - half, float(mean) + half
    return (max(0.0, low), min(1.0, high)) if is_share else (low, high)


def row_groups(answered: Answered, *, by_stratum: bool) -> dict[tuple[str, str, str], list[Mapping[str, Any]]]:
    """Return the lines of each row of systems that are no people: setting, stratum and system."""
    groups: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for line in answered.lines:
        if not line["model"].startswith("human:"):
            key = line["setting"], line["stratum"] if by_stratum else "", line["model"]
            groups.setdefault(key, []).append(line)
    return groups


# --- comparisons ---------------------------------------------------------------------------------------------------


def printed(*arguments: object) -> str:
    done = called(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def printed_rows(*arguments: object) -> list[dict[str, Any]]:
    """Return the rows that a command prints with --json: of a table, or a line each."""
    text = printed(*arguments)
    rows: list[dict[str, Any]] = (
        json.loads(text)["rows"] if arguments[0] == "table" else [*map(json.loads, text.splitlines())]
    )
    return rows


@pytest.mark.usefixtures("counted")
def test_tables_state_the_expected_rates(answered: Answered) -> None:
    for by in ("pool", "stratum"):
        both = (answered.scores, answered.scores.with_name("again.jsonl"))
        rows = printed_rows("table", *both, "--by", by, "--json")
        groups = row_groups(answered, by_stratum=by == "stratum")
        stated = {(row["setting"], row.get("stratum") or "", row["system"]): row for row in rows}
        assert {row["system"] for row in rows} == {*(SHOWN.get(name, name) for name in SYSTEMS), "people (7)"}
        for (setting, stratum, system), lines in groups.items():
            row = stated[setting, stratum, SHOWN.get(system, system)]
            compare("n", row["n"], len({line["instanceId"] for line in lines}))
            for metric in answered.metrics:
                rate = expected(answered, lines, metric)
                is_hidden = rate is None or rate.text(metric) == "*"
                if metric.key in row and not metric.skill_of:
                    compare("table --json", row[metric.key], None if is_hidden or rate is None else float(rate.mean))
    text = printed("table", answered.scores, "--columns", f"system,setting,n,{answered.right.heading}")
    rows_of_text = [line.split("  ") for line in text.splitlines()]
    cells = {tuple(part.strip() for part in row if part.strip()) for row in rows_of_text}
    for (setting, _, system), lines in row_groups(answered, by_stratum=False).items():
        rate = expected(answered, lines, answered.right)
        number = str(len({line["instanceId"] for line in lines}))
        figures = {SHOWN.get(system, system), setting, number, DASH if rate is None else rate.text(answered.right)}
        assert any(figures <= set(row) for row in cells), figures
        COMPARED["table"] += 1


def _report(answered: Answered, form: str) -> str:
    out = answered.pool.with_name(f"report.{form}")
    if not out.exists():
        printed("report", answered.scores, "--pool", answered.pool, "--attribution", "--no-times", "--out", out)
    return out.read_text(encoding="utf-8")


def _views(answered: Answered) -> dict[str, Mapping[str, Metric]]:
    """Return the metrics of tables of a report that are views, by the table's id."""
    if answered.name == "replayscm":
        columns = {metric.key: metric for metric in answered.metrics}
        return {spec.id: columns for spec in (*SPECS, ATTRIBUTION)}
    views = benchmark(answered.name).metrics.views.values()
    return {view.id: {metric.key: metric for metric in view.metrics} for view in views if view.id}


@pytest.mark.usefixtures("counted")
def test_reports_state_the_expected_rates_and_intervals(answered: Answered) -> None:
    rows = list(csv.DictReader(io.StringIO(_report(answered, "csv"))))
    lines, views = answered.attributed, _views(answered)
    texts_of = {"md": cell_texts(_report(answered, "md"), "md"), "html": answered.page}
    pages = {form: [(set(text), text) for text in texts] for form, texts in texts_of.items()}
    seen = Counter[str]()
    for row in rows:
        metrics = views.get(row["table"], {})
        if row["source"] != "ours" or row["system"] not in SYSTEM_OF_NAME or row["column"] not in metrics:
            continue
        metric, model = metrics[row["column"]], SYSTEM_OF_NAME[row["system"]]
        if metric.skill_of or metric.key in ("chance", "best", "uniform"):
            continue
        chosen = [line for line in lines if line["model"] == model and _belongs(answered, line, row)]
        rate = expected(answered, chosen, metric)
        ends = ("", "") if rate is None else rate.ends(metric)
        shown = row["value"] or row["text"] or DASH
        compare("report csv", shown, DASH if rate is None else rate.text(metric))
        compare("report csv, intervals", (row["low"], row["high"]), ends)
        seen[row["table"]] += 1
        figure = " ".join(filter(None, [shown, f"[{row['low']}, {row['high']}]" if row["low"] else ""]))
        labels = {row["system"], row["setting"], row.get("stratum") or row["setting"]}
        for form, texts in pages.items():
            assert any(labels <= known and figure in text for known, text in texts), (form, labels, figure)
            COMPARED[f"report {form}"] += 1
    assert len(seen) >= 2


def _belongs(answered: Answered, line: Mapping[str, Any], row: Mapping[str, str]) -> bool:
    """Return whether a line is of a row of a view: CauSim's are by topology, by type and nodes, or of all."""
    if answered.name == "causim":
        if row["setting"] == "all":
            return True
        topology, _, nodes = line["stratum"].rpartition("-")
        kind = line["setting"].partition("-")[0]
        return (row["setting"], row["stratum"]) in ((line["setting"], topology), (kind, str(int(nodes))))
    return (line["setting"], line["stratum"]) == (row["setting"], row.get("stratum", line["stratum"]))


def cell_texts(page: str, form: str) -> list[list[str]]:
    """Return the texts of the cells of every row of every table of a page."""
    if form == "md":
        rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("|")]
        return [[re.sub(r"\\(.)", r"\1", text).strip() for text in row] for row in rows]
    cells = [
        re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row, re.DOTALL) for row in re.findall(r"<tr.*?</tr>", page, re.DOTALL)
    ]
    return [[" ".join(html.unescape(re.sub(r"<[^>]+>", " ", cell)).split()) for cell in row] for row in cells]


PRINTED = {  # table, column, and the stratum or setting of its items
    "blickets": (("5a", "accuracy", "easy-3"), ("6", "accuracy", "hard-3")),
    "causalab": (("3", "within_percent", "3nodes"), ("3", "within_percent", "4nodes")),
}


def test_printed_tables_state_the_expected_rates(answered: Answered) -> None:
    """In percent, as the papers have them; what is in no such table is compared nowhere."""
    rows = list(csv.DictReader(io.StringIO(_report(answered, "csv"))))
    num_before = COMPARED.total()
    for table, column, items in PRINTED.get(answered.name, ()):
        for row in (row for row in rows if (row["table"], row["column"], row["source"]) == (table, column, "ours")):
            model = SYSTEM_OF_NAME.get(row["system"])
            chosen = [line for line in answered.lines if line["model"] == model]
            chosen = [line for line in chosen if items in (line["stratum"], line["setting"])]
            num_items = str(len({line["instanceId"] for line in chosen}))
            if (row.get("suite") or row["setting"] or items) != items or (row["n"] or num_items) != num_items:
                continue  # of another suite, or of some items of it alone
            if not chosen:
                continue  # of people
            rate = expected(answered, chosen, answered.right)
            assert rate is not None
            figures = (rate.mean, *(rate.interval or ()))
            shown = [row[key] for key in ("value", "low", "high") if row[key]]
            compare("printed tables", shown, [f"{100 * float(figure):.1f}" for figure in figures])
    assert COMPARED.total() > num_before or answered.name not in PRINTED


@pytest.mark.usefixtures("counted")
def test_first_screens_state_the_expected_rates(answered: Answered) -> None:
    page = _report(answered, "html")
    rows = re.findall(
        r'<tr data-system="([^"]*)".*?class="accuracy">([^<]*)</span>(?: <span[^>]*>([^<]*)</span>)?', page
    )
    shown = {html.unescape(name): (share, reach) for name, share, reach in rows}
    lines = answered.attributed
    earned = next(metric for metric in answered.metrics if metric.key == "earned")
    for system in SYSTEMS:
        listed = [line for line in lines if line["model"] == system]
        rate = expected(answered, listed, answered.right)
        assert rate is not None
        assert rate.interval is not None
        name, (low, high) = SHOWN.get(system, system), rate.interval
        compare("first screen", shown[name], (rate.text(answered.right), f"{low:.2f}{DASH}{high:.2f}"))
        row = next(text for text in answered.page if text[0] == name and len(text) > 7)
        share = expected(answered, listed, earned)
        reach = f"{low:.3f}{DASH}{high:.3f}"
        number = str(len({line["instanceId"] for line in listed}))
        earned_text = DASH if share is None else share.text(earned)
        compare("first screen, levels", row[1:5], [number, rate.text(answered.right), reach, earned_text])
    names = {*(SHOWN.get(name, name) for name in SYSTEMS), "people (7)"}
    assert names == shown.keys()


@pytest.mark.usefixtures("counted")
def test_shares_of_all_answers_add_up_to_1_wherever_they_stand(answered: Answered) -> None:
    """Refusals are NoAnswer, whatever was decided, and no rate leaves them out (docs/chance.md)."""
    rows = answered.shares
    given = list(map(json.loads, answered.predictions.read_text(encoding="utf-8").splitlines()))
    setting = {line["instanceId"]: line["setting"] for line in answered.lines}
    for row in rows:
        compare("shares", sum(row[key] for key in SEVEN), pytest.approx(1))
        compare(
            "causes of wrong answers", row["missed"] + row["short"], pytest.approx(row["misfit"] + row["open_error"])
        )
        if not row["system"].startswith("people"):
            model = SYSTEM_OF_NAME[row["system"]]
            refusals: dict[str, list[bool]] = {}
            for line in given:
                if (line["model"], setting[line["id"]]) == (model, row["setting"]):
                    refusals.setdefault(line["id"], []).append(line["response"] == REFUSAL)
            share = sum(Fraction(sum(listed), len(listed)) for listed in refusals.values()) / len(refusals)
            compare("refusals", row["no_answer"], pytest.approx(float(share)))
    assert any(row["no_answer"] > 0 for row in rows)
    sums: dict[tuple[str, ...], float] = defaultdict(float)
    for line in csv.DictReader(io.StringIO(_report(answered, "csv"))):
        if line["column"] in SEVEN and "attribution" in line["table"]:
            sums[line["setting"], line.get("stratum", ""), line["system"]] += float(line["value"])
    for total in sums.values():
        compare("shares of a report", total, pytest.approx(1, abs=0.0036))
    assert sums


@pytest.mark.usefixtures("counted")
def test_pictures_and_figures_of_a_page_are_those_shares(answered: Answered) -> None:
    """Bars are whole, their counts are of all items, and what is missed is what the table calls so."""
    rows = answered.shares
    page = _report(answered, "html")
    lines = re.findall(r'<tr data-system="([^"]*)" data.*?aria-label="[^"]*: ([^":;]*) of ([\d.]+)[";].*?</tr>', page)
    for _, text, number in lines:
        counts = [float(part.split()[0]) for part in text.split(", ")]
        compare("counts of a bar", sum(counts), pytest.approx(float(number), abs=0.006 * len(counts)))
    for bar in re.findall(r'<svg class="row-plot"[^>]*>.*?</svg>', page):
        if widths := re.findall(r'<rect class="class-\w+"[^>]* width="([\d.]+)%"', bar):
            compare("bars", sum(map(float, widths)), pytest.approx(100, abs=0.001))
    systems = [row for row in rows if not row["system"].startswith("people")]
    (card,) = re.findall(r'<li data-figure="missed"><b>([^<]*)</b>', page) or ("0",)
    people = sum(float(n) for name, text, _ in lines if "people" in name for n in re.findall(r"([\d.]+) missed", text))
    compare("card", float(card) - people, pytest.approx(sum(row["n"] * row["missed"] for row in systems), abs=0.006))
    plots = answered.pool.with_name("plots")
    options = ("--pool", answered.pool, "--attribution", "--no-times", "--format", "csv", "--plots", plots)
    printed("report", answered.scores, *options)
    pictures = [
        f
        for name in ("attribution", "lab-frequency", "lab-graph", "causim-kinds", "logic-kinds")
        for f in plots.glob(f"{name}.svg")
    ]
    for group in (part for file in pictures for part in file.read_text(encoding="utf-8").split("<g ")[1:]):
        of_bar: dict[str, float] = defaultdict(float)
        for y, width in re.findall(r'<rect x="[\d.]+" y="([\d.]+)" width="([\d.]+)"', group):
            of_bar[y] += float(width)
        for length in of_bar.values():
            compare("charts", length, pytest.approx(420 if length > 200 else 180, abs=0.4))
    assert COMPARED["charts"]


@pytest.mark.usefixtures("counted")
def test_lists_boards_and_difficulty_state_the_expected_rates(answered: Answered) -> None:
    systems = [name for name in SYSTEMS if name != "m"]  # a board counts what `m` left out as wrong
    judge, table = PoolJudge(answered.pool), read_outcomes([answered.scores], [answered.pool])
    rows = printed_rows("list", answered.pool, "--scores", answered.scores, "--limit", "0", "--json")
    for system in systems:
        lines = [line for line in answered.lines if line["model"] == system]
        rate = expected(answered, lines, answered.right)
        assert rate is not None
        listed: dict[str, list[float]] = {}
        for row in rows:
            if row["system"] == system:
                listed.setdefault(row["id"], []).append(float(row["right"]))
        means = [Fraction(int(sum(values)), len(values)) for values in listed.values()]
        compare("list --scores", sum(means) / len(means), rate.mean)
        column = table.systems.index(SHOWN.get(system, system))
        compare("difficulty", pytest.approx(float(rate.mean)), float(np.nanmean(table.rates[:, column])))
        file = answered.pool.with_name("one.jsonl")
        answers = map(json.loads, answered.predictions.read_text(encoding="utf-8").splitlines())
        file.write_text("".join(json.dumps(line) + "\n" for line in answers if line["model"] == system))
        cell = BoardCell.of_result("pool", judge.score_file(file))
        compare("board", cell.rate, float(rate.mean))
        compare("shares of a board", sum(cell.kinds.values()), pytest.approx(1))
        compare("board, intervals", (cell.low, cell.high), pytest.approx(rate.interval, abs=1e-6))


@pytest.mark.usefixtures("counted")
def test_samples_state_the_expected_rates(answered: Answered) -> None:
    rows = json.loads(printed("table", answered.scores, "--json"))["samples"]
    groups = row_groups(answered, by_stratum=False)
    key = "heldout_exact" if answered.name == "replayscm" else benchmark(answered.name).metrics.rights[0][0]
    for row in (row for row in rows if row["way"] == "mean"):
        system = SYSTEM_OF_NAME[row["system"]]
        rate = expected(answered, groups[row["setting"], "", system], answered.right)
        assert rate is not None
        compare("samples", row[key]["value"], float(rate.mean))
        ends = None if rate.interval is None else pytest.approx(rate.interval, abs=1e-6)
        shown = None if row[key]["low"] is None else (row[key]["low"], row[key]["high"])
        compare("samples, intervals", shown, ends)
    assert COMPARED["samples"]


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
