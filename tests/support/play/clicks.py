"""Items solved in the browser with a mouse: every control is clicked; text and entries of lists then come from keys."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from calibrant.dsl.formulas.text import infix
from calibrant.dsl.replayscm.extensions.extension import Question
from calibrant.dsl.replayscm.item import TaskKind
from tests.support.play.right_lines import (
    alternative_choices,
    detector_rule,
    forecast_chances,
    program_answer,
    solved_alternative,
)
from tests.support.play.solved_by_keys import SETTLED, KeyboardPage

TOKENS = {"(": "pad-parentheses", ")": "pad-right"}


class MousePage(KeyboardPage):
    """A page in which real mouse buttons are pressed where a control lies."""

    def click(self, key: str, *, is_last: bool = True) -> None:
        """Scroll to a control and press and release the button in its middle.

        is_last: wait for the answer of the server
        """
        place = self.evaluate(
            f"(() => {{ const one = document.querySelector('[data-key={json.dumps(key)}]'); "
            "one.scrollIntoView({ block: 'center' }); const box = one.getBoundingClientRect(); "
            "return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        )
        common = {"x": place[0], "y": place[1], "button": "left", "clickCount": 1}
        self.call("Input.dispatchMouseEvent", type="mousePressed", **common)
        self.call("Input.dispatchMouseEvent", type="mouseReleased", **common)
        if is_last:
            self.wait(SETTLED)

    def fill(self, key: str, text: str) -> None:
        """Click a field, type, and leave it."""
        self.click(key, is_last=False)
        self.type(text)
        self.press("Tab")
        self.wait(SETTLED)

    def choose(self, key: str, index: int) -> None:
        """Click a list, go down to an entry, and take it."""
        self.click(key)
        for _ in range(index):
            self.press("ArrowDown")
        self.press("Enter")
        self.wait(f"{SETTLED} && document.querySelector('[data-key={json.dumps(key)}]').selectedIndex === {index}")


def solve_by_clicks(page: MousePage, item: Any) -> None:
    """Solve the item on the page with a mouse, with the moves of `right_lines`, and wait for the end."""
    _SOLVERS[item.benchmark](page, item)
    page.click("submit")
    page.wait("state.item?.closed || state.phase === 'end'")


def _detector(page: MousePage, item: Any) -> None:
    rule, first = detector_rule(item), item.task.objects[0]
    page.click(f"object-{first}")
    page.click(f"object-{first}")
    page.click(f"rule-{rule['rule']}")
    for name in rule["blickets"]:
        page.click(f"blicket-{name}")


def _laboratory(page: MousePage, item: Any) -> None:
    mechanism, name = item.sealed.mechanism, item.task.settable[0]
    page.fill(f"number-{name}", "20")
    page.click(f"set-{name}")
    page.fill("dial", f"{item.sealed.target:g}")
    page.click("try")
    for cause, effect in sorted(mechanism.edges):
        page.click(f"edge-{cause}-{effect}")
    page.fill("base", f"{mechanism.frequency.base:g}")
    for term in mechanism.frequency.terms:
        if term.power == 1:
            page.fill(f"weight-{term.parent}", f"{term.weight:g}")


def _worlds(page: MousePage, item: Any) -> None:
    gold, extension = item.sealed.gold, item.task.extension
    if extension is not None and extension.is_episode:
        page.choose(f"do-{extension.variables[0]}", 2)
        page.click("ask")
    if item.task.disclosure.roots is None:
        for name in gold.roots:
            page.click(f"root-{name}")
    if extension is not None and extension.question is Question.FORECAST:
        page.click("forecast")
        for (world, row, name), bit in forecast_chances(item).items():
            page.fill(f"chance-{world}.{row}.{name}", str(bit))
        return
    mechanisms = gold.mechanisms
    if item.task.kind is TaskKind.ALTERNATIVE:
        answer = solved_alternative(item)
        for key, index in alternative_choices(item, answer):
            page.choose(key, index)
        mechanisms = answer.model.mechanisms
    for name, formula in mechanisms.items():
        page.click(f"formula-{name}")
        for token in re.findall(r"\w+|[()]", infix(formula)):
            page.click(TOKENS.get(token, f"pad-{token}"), is_last=False)
        page.wait(SETTLED)


def _program(page: MousePage, item: Any) -> None:
    fields = {field["name"]: field for field in page.evaluate("state.item.view.fields")}
    for key, value in program_answer(item).items():
        if "given" not in fields[key]:
            places = [json.dumps(choice["value"]) for choice in fields[key]["choices"]]
            page.choose(f"field-{key}", places.index(json.dumps(value)) + 1)


def _network(page: MousePage, item: Any) -> None:
    targets = page.evaluate("Object.keys(state.item.view.sources)")
    for clause in sorted(item.sealed.gold):
        page.click("target")
        page.press("Home")
        for _ in range(targets.index(clause.target)):
            page.press("ArrowDown")
        page.press("Enter")
        page.wait(f"views.network.target === '{clause.target}'")
        for source in clause.sources:
            page.click(f"source-{source}")
        page.click("add")


_SOLVERS: dict[str, Callable[[MousePage, Any], None]] = {
    "blickets": _detector,
    "causalab": _laboratory,
    "causim": _program,
    "logic": _network,
    "replayscm": _worlds,
}
