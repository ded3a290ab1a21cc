"""Responses beside gold: why a wrong one is wrong, marks where mechanisms differ in meaning, and none elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.browser import needs_chromium, pressed
from tests.support.commands import CHECKOUT, called, jsonl

POOL = CHECKOUT / "docs" / "examples" / "switches.jsonl"  # X3 = X1 replays all worlds
RESPONSES = {
    "right": 'Let me think. {"mechanisms": {"X3": "X1"}}',
    "respelled": 'So {"mechanisms": {"X3": "(or X1 (and X1 X2))"}}',
    "wrong": 'Let me think. {"mechanisms": {"X3": "(and X1 X2)"}}',
    "misfit": '{"mechanisms": {"X3": "X2"}}',
    "invalid": '{"mechanisms": {"X3": "(and X1"}}',
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("marks")
    lines = [{"id": "lamp", "model": name, "response": text} for name, text in RESPONSES.items()]
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
      for (const name of ["right", "respelled", "wrong", "misfit", "invalid"]) {
        location.hash = `replayscm/Hidden-order/${name}/lamp`; moved();
        const text = (one) => one.textContent.trim().replaceAll("/", "|");
        const marks = [...document.querySelectorAll("#drill ins, #drill del")].map(text);
        const panel = document.querySelector("#drill .three .panel pre, #drill .three .panel .soft");
        said.push([text(document.querySelector("#drill .response h1")), text(panel), marks.join(" ~ ")].join(" # "));
      }
    """
    parts = [entry.split(" # ") for entry in pressed(page.read_text("utf-8"), presses, tmp_path)]
    return dict(zip(RESPONSES, parts, strict=True))


@needs_chromium
def test_marks_are_mechanisms_that_mean_something_else(folder: Path, tmp_path: Path) -> None:
    seen = responses(folder / "given.html", tmp_path)
    assert seen["right"] == ["Right, but lucky", "X3 = X1", ""]
    assert seen["respelled"] == ["Right, but lucky", "X3 = (or X1 (and X1 X2))", ""]
    assert seen["wrong"] == ["Wrong: the evidence was short", "X3 = (and X1 X2)", "X3 = (and X1 X2) ~ X3 = X1"]
    assert seen["misfit"] == ["Wrong: it contradicts the evidence", "X3 = X2", "X3 = X2 ~ X3 = X1"]
    assert seen["invalid"] == ["Wrong: an invalid answer", RESPONSES["invalid"], ""]


@needs_chromium
def test_a_response_that_verdicts_do_not_hold_is_said_to_be_elsewhere(folder: Path, tmp_path: Path) -> None:
    for _, text, marks in responses(folder / "verdicts.html", tmp_path).values():
        assert text.startswith("Files of verdicts do not hold responses")
        assert marks == ""


def test_the_page_of_a_lucky_answer_says_so(folder: Path) -> None:
    page = folder / "answer.html"
    line = ("show", POOL, "lamp", "--gold", "--run", folder / "given.jsonl", "--system")
    assert called(*line, "right", "--html", page).returncode == 0
    text = page.read_text("utf-8")
    assert "lamp: a right answer, by luck" in text
    assert "the evidence left several answers: 2 SCMs fit (functional parents" in text
    assert "Why is it ambiguous?" not in text
    assert "by luck" not in called(*line, "wrong").stdout
