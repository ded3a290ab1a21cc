"""A page of each kind: both themes, real keys, reload, print, a phone, no network."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from calibrant.bench.core.registry import bundled_sample
from tests.support.accessibility import DESKTOP, PHONE, find_violations, needs_axe
from tests.support.browser import Tab
from tests.support.commands import CHECKOUT, called
from tests.support.suites.small_suite import SPECIFICATION, write_specification

FIRST_EPISODE = "CAL_hs_n6_easy_calibration_episode_hidden-order_1"
CARD = ("--system", "mine", "--system-version", "1", "--submitter", "me", "--date", "2026-01-02")
EXAMPLES = CHECKOUT / "docs" / "examples"
KINDS = (
    *("why", "index", "audit", "report", "failure", "episodes", "trajectory", "review", "fit", "next-world"),
    *("difficulty", "release", "board", "cell"),
)
LEAST_FONT = """Math.min(...[...document.querySelectorAll("body *")]
  .filter((part) => [...part.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim()))
  .filter((part) => part.checkVisibility() && part.getClientRects().length)
  .map((part) => [part, part.closest("svg") ? part.getScreenCTM() : { a: 1, b: 0 }])  // b: of turned labels
  .map(([part, matrix]) => parseFloat(getComputedStyle(part).fontSize) * Math.hypot(matrix.a, matrix.b)))"""
FOLDED_AND_UNSEEN = """[...document.querySelectorAll("details:not([open])")].filter((part) => part.checkVisibility())
  .filter((part) => ![...part.querySelectorAll(":scope > :not(summary)")].some((child) => child.checkVisibility()))
  .length"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("kinds")
    switches, cells, labs = EXAMPLES / "switches.jsonl", bundled_sample("blickets"), bundled_sample("causalab")
    pages = {kind: folder / f"{kind}.html" for kind in KINDS}
    worlds, suite = bundled_sample("replayscm_episodes"), folder / "suite"
    whole, _, _ = SPECIFICATION.rpartition("[[pool]]")  # one pool of two
    specification = write_specification(folder, whole)
    site = folder / "site" / "two-pools-1.0"
    pages |= {"release": suite / "public" / "index.html", "board": site / "index.html"}
    pages["cell"] = site / "systems" / "one" / "detectors.html"
    answers = suite / "gold" / "rows" / "static" / "detectors.jsonl"
    scores, played = folder / "scores.jsonl", folder / "played"
    lines = [
        ("show", switches, "lamp", "--html", pages["why"]),
        ("list", switches, "--html", pages["index"]),
        ("audit", switches, "--html", pages["audit"]),
        ("run", "copy-parent", switches, "--out", folder / "answers"),
        ("show", switches, "lamp", "--run", folder / "answers", "--gold", "--html", pages["failure"]),
        ("score", switches, EXAMPLES / "answers.jsonl", "--out", scores),
        ("report", scores, "--pool", switches, "--attribution", "--out", pages["report"]),
        ("run", "quiet", cells, "--limit", "1", "--out", folder / "cells"),
        ("show", cells, "conjunctive-20-0", "--run", folder / "cells", "--html", pages["episodes"]),
        ("run", "abstain", labs, "--limit", "1", "--out", folder / "labs"),
        ("show", labs, "3nodes/20/0", "--run", folder / "labs", "--html", pages["trajectory"]),
        ("fit", EXAMPLES / "switches.csv", "--target", "lamp", "--html", pages["fit"]),
        ("show", worlds, FIRST_EPISODE, "--why", "--html", pages["next-world"]),
        ("run", "base,quiet", cells, "--out", folder / "runs"),
        ("difficulty", folder / "runs", "--pool", cells, "--html", pages["difficulty"]),
        ("release", specification, "--out", suite),
        ("submission", suite, answers, *CARD, "--out", folder / "sent" / "one"),
        ("board", suite, folder / "sent", "--out", site.parent),
        ("play", cells, "conjunctive-20-0", "--out", played, "--participant", "p1"),
        ("play", cells, "--out", played, "--participant", "p1", "--review", pages["review"]),
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdin", io.StringIO("place A\ncheck conjunctive A B\n"))
        for line in lines:
            done = called(*line)
            status = 1 if line[-1] == "p1" else 0  # of an answer that is not right
            assert done.returncode == status, (line, done.stderr)
    return pages


@needs_axe
@pytest.mark.parametrize("kind", KINDS)
def test_a_page_is_read_in_both_themes_by_keys_on_a_phone_and_in_print(kind: str, pages: dict[str, Path]) -> None:
    with Tab() as tab:
        tab.emulate(PHONE, dark=True)
        tab.open(pages[kind].as_uri())
        assert find_violations(tab) == []
        assert tab.evaluate("document.documentElement.scrollWidth") <= PHONE
        assert tab.evaluate(LEAST_FONT) >= 9
        tab.press("Tab")
        tab.press("?")
        assert tab.evaluate("[keys.hidden, document.activeElement.id]") == [False, "keys"]
        tab.press("Escape")
        assert tab.evaluate("[keys.hidden, document.activeElement.className]") == [True, "skip"]
        tab.evaluate("theme.click()")
        tab.reload()
        assert tab.evaluate("document.documentElement.dataset.theme") == "light"
        assert find_violations(tab) == []
        tab.emulate(DESKTOP, medium="print")
        assert tab.evaluate("getComputedStyle(document.querySelector('.bar nav')).display") == "none"
        assert tab.evaluate(FOLDED_AND_UNSEEN) == 0
        assert tab.evaluate("performance.getEntriesByType('resource').length") == 0
