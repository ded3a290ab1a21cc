"""Items of every kind solved by keys alone on the page of play."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from calibrant.dsl.formulas.text import infix
from calibrant.dsl.replayscm.extensions.extension import Question
from calibrant.dsl.replayscm.item import TaskKind
from tests.support.accessibility import find_violations
from tests.support.browser import CONTROL, Tab
from tests.support.play.right_lines import (
    alternative_choices,
    detector_rule,
    forecast_chances,
    program_answer,
    solved_alternative,
)

# --- A page in headless Chromium that real keys are sent to -----------------------------------------------------------
MAX_TABS = 400


class KeyboardPage(Tab):
    """A page of the player's service. All that a person does in it goes through keys."""

    def open(self, url: str) -> None:
        super().open(url)
        self.wait("document.querySelector('#screen h1') !== null")

    def type(self, text: str) -> None:
        """Replace what is in the focused field by typing."""
        self.press("a", CONTROL)
        self.evaluate("document.activeElement.select?.()")
        self.press("Backspace")
        for letter in text:
            self.press(letter)

    def reach(self, selector: str) -> None:
        """Press Tab until a control has the focus."""
        for _ in range(MAX_TABS):
            if self.evaluate(f"document.activeElement?.matches({json.dumps(selector)}) ?? false"):
                return
            self.press("Tab")
        raise AssertionError(f"{selector} is not reached by Tab: {self.evaluate('document.body.innerText')[:2000]}")

    def violations(self) -> list[str]:
        """Return what axe-core objects to on the page as it is."""
        return find_violations(self)

    def width(self, pixels: int, *, dark: bool = False) -> None:
        """Set width and theme of the page."""
        self.emulate(pixels, height=800, dark=dark)


# --- Items solved in the browser by keys alone, from what is sealed ---------------------------------------------------
SETTLED = "!waiting && pendingDraft === null"


def solve(page: KeyboardPage, item: Any) -> None:
    """Solve the item on the page with moves of its own where there are moves, and wait for the end."""
    _SOLVERS[item.benchmark](page, item)
    page.wait("state.item?.closed || state.phase === 'end'")


def submit_by_key(page: KeyboardPage, key: str = "") -> None:
    """Press the key of Submit, which goes to the button and ends nothing, then Enter."""
    page.wait(SETTLED)
    focused = "document.activeElement.dataset.key"
    if page.evaluate(focused) != "submit":  # Tab, or Enter in the last formula, may have led there
        page.press(key or "Enter", 0 if key else CONTROL)
        assert page.evaluate(focused) == "submit"
        assert "press Enter" in page.evaluate("news.textContent")
    assert page.evaluate("state.item.closed") is False
    page.press("Enter")


def _control(key: str) -> str:
    return f'[data-key="{key}"]'


def _choose(page: KeyboardPage, key: str, index: int) -> None:
    """Choose an option of a list by arrows."""
    page.reach(_control(key))
    while page.evaluate("document.activeElement.selectedIndex") < index:
        page.press("ArrowDown")
    page.wait(SETTLED)


def _detector(page: KeyboardPage, item: Any) -> None:
    rule, first = detector_rule(item), item.task.objects[0]
    before = page.evaluate("state.item.moves")
    for count in (1, 2):
        page.press(first.lower())
        page.wait(f"{SETTLED} && state.item.moves === {before + count}")
    page.reach(_control(f"rule-{rule['rule']}") if rule["rule"] == "conjunctive" else "[name=rule]")
    if rule["rule"] == "disjunctive":
        page.press("ArrowRight")
    page.press("Space")
    for name in rule["blickets"]:
        page.wait(SETTLED)
        page.reach(_control(f"blicket-{name}"))
        page.press("Space")
    page.wait(SETTLED)
    submit_by_key(page, "s")


def _laboratory(page: KeyboardPage, item: Any) -> None:
    mechanism, name = item.sealed.mechanism, item.task.settable[0]
    for count, (key, value) in enumerate(((f"number-{name}", 20), ("dial", item.sealed.target)), 1):
        page.reach(_control(key))
        page.type(f"{value:g}")
        page.press("Enter")
        page.wait(f"{SETTLED} && state.item.moves === {count}")
    for cause, effect in sorted(mechanism.edges):
        page.reach(_control(f"edge-{cause}-{effect}"))
        page.press("Space")
        page.wait(f"{SETTLED} && state.item.draft.edges.some(([a, b]) => a === '{cause}' && b === '{effect}')")
    numbers = {"base": mechanism.frequency.base}
    numbers |= {f"weight-{term.parent}": term.weight for term in mechanism.frequency.terms if term.power == 1}
    for key, value in numbers.items():
        page.reach(_control(key))
        page.type(f"{value:g}")
        page.press("Tab")
        page.wait(SETTLED)
    submit_by_key(page)


def _worlds(page: KeyboardPage, item: Any) -> None:
    gold, extension = item.sealed.gold, item.task.extension
    if extension is not None and extension.is_episode:
        _choose(page, f"do-{extension.variables[0]}", 2)
        page.reach(_control("ask"))
        page.press("Enter")
        page.wait(f"{SETTLED} && state.item.moves === 1")
    if item.task.disclosure.roots is None:
        for name in gold.roots:
            page.reach(_control(f"root-{name}"))
            page.press("Space")
            page.wait(SETTLED)
    if extension is not None and extension.question is Question.FORECAST:
        _forecast(page, item)
        return
    mechanisms = gold.mechanisms
    if item.task.kind is TaskKind.ALTERNATIVE:
        answer = solved_alternative(item)
        for key, index in alternative_choices(item, answer):
            _choose(page, key, index)
        mechanisms = answer.model.mechanisms
    hidden = () if extension is None else tuple(extension.hidden)
    for name in (v for v in (*item.task.variables, *hidden) if v in mechanisms):
        page.reach(_control(f"formula-{name}"))
        page.type(infix(mechanisms[name]))
        page.press("Enter")
        page.wait(SETTLED)
    submit_by_key(page)


def _forecast(page: KeyboardPage, item: Any) -> None:
    page.reach(_control("forecast"))
    page.press("Enter")
    for (world, row, name), bit in forecast_chances(item).items():
        page.reach(_control(f"chance-{world}.{row}.{name}"))
        page.type(str(bit))
        page.press("Tab")
        page.wait(SETTLED)
    submit_by_key(page)


def _program(page: KeyboardPage, item: Any) -> None:
    fields = {field["name"]: field for field in page.evaluate("state.item.view.fields")}
    for key, value in program_answer(item).items():
        if "given" not in fields[key]:
            places = [json.dumps(choice["value"]) for choice in fields[key]["choices"]]
            _choose(page, f"field-{key}", places.index(json.dumps(value)) + 1)
    submit_by_key(page)


def _network(page: KeyboardPage, item: Any) -> None:
    targets = page.evaluate("Object.keys(state.item.view.sources)")
    for number, clause in enumerate(sorted(item.sealed.gold), 1):
        page.reach(_control("target"))
        while page.evaluate("document.activeElement.selectedIndex") != targets.index(clause.target):
            ahead = page.evaluate("document.activeElement.selectedIndex") < targets.index(clause.target)
            page.press("ArrowDown" if ahead else "ArrowUp")
        for source in clause.sources:
            page.reach(_control(f"source-{source}"))
            page.press("Space")
        page.reach(_control("add"))
        page.press("Enter")
        page.wait(f"{SETTLED} && state.item.draft.model?.length === {number}")
    submit_by_key(page)


_SOLVERS: dict[str, Callable[[KeyboardPage, Any], None]] = {
    "blickets": _detector,
    "causalab": _laboratory,
    "causim": _program,
    "logic": _network,
    "replayscm": _worlds,
}
