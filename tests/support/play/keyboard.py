"""A page in headless Chromium that real keys are sent to: the DevTools protocol over a pipe, no library."""

from __future__ import annotations

import json
import os
import select
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.support.accessibility import AXE
from tests.support.browser import CHROMIUM, FLAGS

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


class KeyboardPage:
    """One tab of a browser. All that a person does in it goes through keys."""

    def __init__(self, profile: Path) -> None:
        assert CHROMIUM is not None, "CI=true requires the browser tests, and there is no chromium on this machine"
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()
        line = [CHROMIUM, *FLAGS, f"--user-data-dir={profile}", "--remote-debugging-pipe", "about:blank"]
        # the protocol is spoken on the descriptors 3 and 4
        script = f'exec "$@" 3<&{to_browser} 4>&{from_browser}'
        self._process = subprocess.Popen(
            ["bash", "-c", script, "bash", *line],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._buffer = b""
        self._number = 0
        self._session = ""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Page.enable")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._out)
        os.close(self._in)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol; its result."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], 60)
            assert ready, "the browser does not answer"
            block = os.read(self._in, 1 << 20)
            assert block, "the browser ended"
            self._buffer += block
        message, _, self._buffer = self._buffer.partition(b"\0")
        decoded: dict[str, Any] = json.loads(message)
        return decoded

    def open(self, url: str) -> None:
        self.call("Page.navigate", url=url)
        self.wait("document.readyState === 'complete' && document.querySelector('#screen h1') !== null")

    def evaluate(self, script: str) -> Any:
        result = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def wait(self, condition: str, seconds: float = 120) -> None:
        """Wait until an expression is true."""
        end = time.monotonic() + seconds
        while not self.evaluate(f"Boolean({condition})"):
            assert time.monotonic() < end, self.evaluate("problemBox.textContent + document.body.innerText")[:3000]
            time.sleep(0.02)

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
        assert AXE is not None
        self.evaluate(AXE.read_text(encoding="utf-8") + "; 0")
        rules = self.evaluate(
            "axe.run(document, {resultTypes: ['violations']}).then((r) => r.violations.flatMap((v) => "
            "v.nodes.map((n) => `${v.id}: ${n.target} ${n.failureSummary}`)))"
        )
        assert isinstance(rules, list)
        return rules

    def width(self, pixels: int, *, dark: bool = False) -> None:
        """Set width and theme of the page."""
        self.call("Emulation.setDeviceMetricsOverride", width=pixels, height=800, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def screenshot(self, file: Path) -> None:
        import base64

        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)["data"]
        file.write_bytes(base64.b64decode(data))
