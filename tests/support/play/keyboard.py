"""A page in headless Chromium that real keys are sent to."""

from __future__ import annotations

import base64
import json
from pathlib import Path

from tests.support.accessibility import find_violations
from tests.support.browser import CONTROL, Tab

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

    def screenshot(self, file: Path) -> None:
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)["data"]
        file.write_bytes(base64.b64decode(data))
