"""A page in headless Chromium that real keys are sent to."""

from __future__ import annotations

import base64
import json
from pathlib import Path

from tests.support.accessibility import find_violations
from tests.support.browser import Tab

KEYS = {
    "Enter": ("Enter", "\r", 13),
    "Tab": ("Tab", "", 9),
    "Escape": ("Escape", "", 27),
    "Space": ("Space", " ", 32),
    "ArrowDown": ("ArrowDown", "", 40),
    "ArrowUp": ("ArrowUp", "", 38),
    "ArrowRight": ("ArrowRight", "", 39),
    "Backspace": ("Backspace", "", 8),
}
CONTROL, SHIFT = 2, 8
MAX_TABS = 400


class KeyboardPage(Tab):
    """A page of the player's service. All that a person does in it goes through keys."""

    def open(self, url: str) -> None:
        super().open(url)
        self.wait("document.querySelector('#screen h1') !== null")

    def press(self, key: str, modifiers: int = 0) -> None:
        """Press and release one key."""
        name, text, code = KEYS.get(key, (key, key, ord(key.upper()) if len(key) == 1 and key.isalnum() else 0))
        shown = "" if modifiers & CONTROL else text
        common = {"key": " " if name == "Space" else name, "windowsVirtualKeyCode": code, "modifiers": modifiers}
        self.call("Input.dispatchKeyEvent", type="keyDown", text=shown, **common)
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

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
