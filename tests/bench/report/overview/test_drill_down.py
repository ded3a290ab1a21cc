"""From a cell to its items to one response, by links and keys; anchors survive a reload; every state is accessible."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from calibrant.bench.cli import main
from calibrant.bench.core.registry import bundled_files
from calibrant.bench.runs.records import folder_records
from tests.support.accessibility import DESKTOP, PHONE, measure, needs_axe
from tests.support.browser import needs_chromium, pressed
from tests.support.commands import CHECKOUT, jsonl

ANCHOR = "#blickets/moderator/quiet/hard-3-20-0"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of blickets whole episodes, of CauSim programs; the page embeds two responses of each class."""
    made = tmp_path_factory.mktemp("drill")
    pools = bundled_files()
    for name, systems in (("blickets", "quiet,static"), ("causim", "exact,copy")):
        assert main(["run", systems, str(pools[name][0]), "--out", str(made / "run"), "--workers", "1"]) == 0
    line = ["report", str(made / "run"), *("--pool", str(pools["blickets"][0])), *("--pool", str(pools["causim"][0]))]
    assert main([*line, "--attribution", "--out", str(made / "r.html")]) == 0
    assert main([*line, "--attribution", "--embed", "2", "--out", str(made / "few.html")]) == 0
    return made


@pytest.fixture(scope="module")
def page(folder: Path) -> str:
    return (folder / "r.html").read_text(encoding="utf-8")


def packed(page: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(re.findall(rf'id="pack-{name}">(.*?)</script>', page)[0])
    return found


@needs_chromium
def test_a_reader_goes_from_a_cell_to_a_response_and_back(page: str, tmp_path: Path) -> None:
    presses = """
      const key = (name) => document.body.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true }));
      const moved = () => dispatchEvent(new HashChangeEvent("hashchange"));
      const text = (selector) => document.querySelector(selector)?.textContent.trim().replaceAll("/", "|") ?? "nothing";
      const here = () => said.push(decodeURIComponent(location.hash.slice(1)).replaceAll("/", "|"));
      const press = (name) => { key(name); moved(); };
      location.hash = "blickets"; moved();
      const cell = document.querySelector('#blickets .matrix a[href="#blickets/moderator/quiet"]');
      said.push(cell.textContent.replace("/", "|"));
      cell.click(); moved();
      said.push(text("#drill h1"), document.querySelectorAll("#drill tbody tr").length);
      document.querySelectorAll("#drill tbody a")[4].click(); moved(); here();
      said.push(text("#drill .response h1"), document.querySelectorAll("#drill .three > *").length);
      said.push([...document.querySelectorAll("#drill .three pre")].map((pre) => pre.textContent).join(" = "));
      press("j"); here(); press("k"); press("k"); here();
      press("Escape"); here(); press("Escape"); here();
      const focused = document.activeElement.getAttribute("href") ?? "nothing";
      said.push(document.getElementById("overview").hidden, focused.replaceAll("/", "|"));
    """
    assert pressed(page, presses, tmp_path) == [
        "8|8",
        "quiet on moderator: 8 answers",
        "8",
        "blickets|moderator|quiet|hard-3-20-0",
        "Right, but lucky",
        "3",
        "conjunctive A E = conjunctive A E",
        "blickets|moderator|quiet|hard-3-20-1",
        "blickets|moderator|quiet|easy-3-20-3",
        "blickets|moderator|quiet",
        "blickets",
        "false",
        "#blickets|moderator|quiet",
    ]


@needs_chromium
@pytest.mark.parametrize(
    ("fragment", "heading"),
    [
        (ANCHOR, "Right, but lucky"),
        ("#blickets/moderator/quiet", "quiet on moderator: 8 answers"),
        ("#blickets/~all", "All items: 24 detectors"),
        ("#causim/counterfactual-deterministic/copy", "copy on counterfactual-deterministic: 9 answers"),
        ("#causim", "2 systems on 48 questions"),
        ("#nothing/of/the/kind", "4 systems on 2 benchmarks"),
    ],
)
def test_an_anchor_opens_the_same_view_in_a_fresh_browser(
    page: str, fragment: str, heading: str, tmp_path: Path
) -> None:
    presses = """
      const visible = (h) => h.getClientRects().length > 0;
      const titles = [...document.querySelectorAll("h1")].filter(visible).map((h) => h.textContent);
      said.push(titles.join().replaceAll("/", "|"));
      said.push(performance.getEntriesByType("resource").length);
    """
    assert pressed(page, presses, tmp_path, fragment) == [heading, "0"]


@needs_axe
@pytest.mark.parametrize(  # each takes some seconds: both themes and widths, and every kind of view, once
    ("fragment", "theme", "width"),
    [("all", "light", PHONE), ("blickets", "dark", PHONE), (ANCHOR[1:], "light", DESKTOP), (ANCHOR[1:], "dark", PHONE)],
)
def test_every_view_is_accessible_and_does_not_scroll_sideways(
    page: str, fragment: str, theme: str, width: int, tmp_path: Path
) -> None:
    at = page.replace("</body>", f"<script>location.hash = '{fragment}';</script></body>")
    found = measure(at, tmp_path, theme=theme, width=width)
    assert found.violations == []
    assert found.scroll_width <= width
    assert found.requests == []


@needs_chromium
def test_no_label_is_below_nine_pixels(page: str, tmp_path: Path) -> None:
    presses = """
      document.querySelectorAll(".section").forEach((part) => { part.hidden = false; });
      const texts = [...document.querySelectorAll("#overview *")];
      const sizes = texts.filter((one) => one.textContent.trim() && !one.children.length)
        .map((one) => parseFloat(getComputedStyle(one).fontSize));
      said.push(Math.min(...sizes) >= 9, sizes.length > 500);
    """
    assert pressed(page, presses, tmp_path) == ["true", "true"]


def test_lists_hold_every_answer_with_its_class_cost_and_what_was_left(folder: Path, page: str) -> None:
    pack = packed(page, "blickets")
    records = {(r.protocol, r.instance): r for r in folder_records(folder / "run") if r.benchmark == "blickets"}
    assert sum(len(system["i"]) for system in pack["systems"]) == len(records) == 48
    for system in pack["systems"]:
        for item, letter, cost, left in zip(system["i"], system["k"], system["c"], system["l"], strict=True):
            record = records[system["name"], pack["ids"][item]]
            assert isinstance(record.attribution, dict)
            assert pack["letters"][letter.lower()] == record.attribution["kind"]
            assert cost == record.score["steps"]
            assert pack["left"][left].replace(",", "") == record.attribution["members"]


def test_what_is_not_embedded_is_named_by_file_and_line(folder: Path) -> None:
    pack = packed((folder / "few.html").read_text(encoding="utf-8"), "blickets")
    lines = (folder / "run" / "records.jsonl").read_text(encoding="utf-8").splitlines()
    classes: dict[str, int] = {}
    for system in pack["systems"]:
        embedded = {at for at, _ in system["d"]}
        for at, item in enumerate(system["i"]):
            if at in embedded:
                classes[system["k"][at]] = classes.get(system["k"][at], 0) + 1
                assert system["n"][at] == 0
                continue
            record = json.loads(lines[system["n"][at] - 1])
            assert (record["protocol"], record["instance"]) == (system["name"], pack["ids"][item])
            assert pack["files"][system["f"][at]] == str(folder / "run" / "records.jsonl")
    assert set(classes.values()) == {2}


def test_a_prediction_line_can_be_scored_again(folder: Path, page: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The line of an embedded response gives the class that the page shows."""
    details = json.loads(re.findall(r'id="details-blickets">(.*?)</script>', page)[0])
    pack = packed(page, "blickets")
    wanted = {
        (system["name"], pack["ids"][system["i"][at]]): pack["letters"][system["k"][at].lower()]
        for system in pack["systems"]
        for at, place in system["d"]
        if "line" in details[place]
    }
    file = jsonl(folder / "again.jsonl", *(json.loads(detail["line"]) for detail in details if "line" in detail))
    pool = bundled_files()["blickets"][0]
    assert main(["score", str(pool), str(file), "--out", str(folder / "scored.jsonl")]) == 0
    capsys.readouterr()
    scored = [json.loads(line) for line in (folder / "scored.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {(line["model"], line["instanceId"]): line["attribution"]["kind"] for line in scored} == wanted


def test_a_script_cannot_be_ended_by_what_a_model_answered(tmp_path: Path) -> None:
    hostile = "</script><script>alert(1)</script>\u2028 & <!--"
    pool = bundled_files()["causim"][0]
    item = json.loads(pool.read_text(encoding="utf-8").splitlines()[1])["id"]
    file = jsonl(tmp_path / "p.jsonl", {"id": item, "model": hostile, "response": hostile})
    assert main(["report", "--predictions", str(file), "--pool", str(pool), "--out", str(tmp_path / "r.html")]) == 0
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "<script>alert" not in text
    assert packed(text, "causim")["systems"][0]["name"].startswith("</script>")


def test_the_command_beside_an_answer_without_moves_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers of given worlds have no steps to go through: the page offers the comparison with gold."""
    monkeypatch.chdir(tmp_path)
    pool = CHECKOUT / "docs" / "examples" / "switches.jsonl"
    assert main(["run", "copy-parent", str(pool), "--out", "run", "--workers", "1"]) == 0
    assert main(["report", "run", "--pool", str(pool), "--out", "r.html"]) == 0
    commands = packed((tmp_path / "r.html").read_text(encoding="utf-8"), "replayscm")["commands"]
    assert commands.keys() == {"why", "gold"}
    for command in commands.values():
        assert main(shlex.split(command.replace("{id}", "lamp"))[1:]) == 0
