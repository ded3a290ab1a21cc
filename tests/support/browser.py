"""Pages in headless Chromium, pressed by a script as a reader would."""

from __future__ import annotations

import atexit
import base64
import io
import json
import os
import re
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-extensions", "--disable-component-extensions-with-background-pages"),
    "--disable-features=SpareRendererForSitePerProcess",  # a process that is started for each page and used by none
)
MAX_SILENCE_SECONDS = 90
KEYS = {
    "Enter": ("Enter", "\r", 13),
    "Tab": ("Tab", "", 9),
    "Escape": ("Escape", "", 27),
    "Space": ("Space", " ", 32),
    "ArrowDown": ("ArrowDown", "", 40),
    "ArrowUp": ("ArrowUp", "", 38),
    "ArrowRight": ("ArrowRight", "", 39),
    "ArrowLeft": ("ArrowLeft", "", 37),
    "Backspace": ("Backspace", "", 8),
    "Home": ("Home", "", 36),
}
CONTROL = 2

REQUIRED = os.environ.get("CI") == "true"  # then a missing browser is a failure, not a skip

needs_chromium = pytest.mark.skipif(CHROMIUM is None and not REQUIRED, reason="no chromium on this machine")


class Browser:
    """A Chromium process: the DevTools protocol over a pipe, no library."""

    def __init__(self) -> None:
        assert CHROMIUM is not None, "CI=true requires the browser tests, and there is no chromium on this machine"
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()
        self._profile = tempfile.mkdtemp(prefix="chromium-")
        line = [CHROMIUM, *FLAGS, f"--user-data-dir={self._profile}", "--remote-debugging-pipe", "about:blank"]
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
        self._events: set[tuple[str, str]] = set()
        self.num_tabs = 0

    def is_running(self) -> bool:
        return self._process.poll() is None

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._out)
        os.close(self._in)
        shutil.rmtree(self._profile, ignore_errors=True)

    def call(self, method: str, session: str = "", **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol; return its result."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._out, data) :]
        while (answer := self._receive()).get("id") != self._number:
            pass
        assert "error" not in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    def forget_event(self, session: str, name: str) -> None:
        """Forget an event of a session that has come."""
        self._events.discard((session, name))

    def wait_event(self, session: str, name: str) -> None:
        """Wait for an event of a session; one that has come since the last wait counts."""
        while (session, name) not in self._events:
            self._receive()
        self._events.remove((session, name))

    def _receive(self) -> dict[str, Any]:
        """Return the next message; an event is kept for who waits for it."""
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], MAX_SILENCE_SECONDS)
            if not ready:
                self._process.kill()  # so that the next test starts another one
                raise AssertionError("the browser does not answer")
            block = os.read(self._in, 1 << 20)
            assert block, "the browser ended"
            self._buffer += block
        message, _, self._buffer = self._buffer.partition(b"\0")
        decoded: dict[str, Any] = json.loads(message)
        if "method" in decoded:
            self._events.add((decoded.get("sessionId", ""), decoded["method"]))
        return decoded


_browsers: list[Browser] = []


def shared_browser() -> Browser:
    """Return the browser of this process: starting one takes a second of processor time, a page of it 0.15."""
    if not _browsers or not _browsers[-1].is_running():
        _browsers.append(Browser())
        atexit.register(_browsers[-1].close)
    return _browsers[-1]


class Tab:
    """A page of the shared browser, with storage that no other page sees.

    The only page that is open uses the first window, and leaves nothing stored: a context with a window of its own, as
    others have beside it, takes a third of a second of processor time more, and half of it again for what is measured.
    """

    def __init__(self) -> None:
        self._browser = shared_browser()
        self._origins: set[str] = set()
        self._context = self._browser.call("Target.createBrowserContext") if self._browser.num_tabs else {}
        self._target: str = self._browser.call("Target.createTarget", url="about:blank", **self._context)["targetId"]
        self._browser.num_tabs += 1
        attached = self._browser.call("Target.attachToTarget", targetId=self._target, flatten=True)
        self._session: str = attached["sessionId"]
        self.call("Page.enable")
        self.call("Emulation.setFocusEmulationEnabled", enabled=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._browser.is_running():
            for origin in self._origins:
                self.call("Storage.clearDataForOrigin", origin=origin, storageTypes="all")
            self._browser.call("Target.closeTarget", targetId=self._target)
            if self._context:
                self._browser.call("Target.disposeBrowserContext", **self._context)
        self._browser.num_tabs -= 1

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol for this page; return its result."""
        return self._browser.call(method, self._session, **parameters)

    def open(self, url: str) -> None:
        """Open an address and wait until it is loaded."""
        self._origins.add("{0.scheme}://{0.netloc}/".format(urlsplit(url)))
        answer = self.call("Page.navigate", url=url)
        assert "errorText" not in answer, answer
        self._browser.wait_event(self._session, "Page.loadEventFired")

    def reload(self) -> None:
        self._browser.forget_event(self._session, "Page.loadEventFired")  # of a page before: one load may fire late
        self.call("Page.reload")
        self._browser.wait_event(self._session, "Page.loadEventFired")

    def evaluate(self, script: str) -> Any:
        result = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def wait(self, condition: str, seconds: float = 120) -> None:
        """Wait until an expression is true; a page that is being left is asked again."""
        end = time.monotonic() + seconds
        while not self._holds(condition):
            assert time.monotonic() < end, (condition, self.evaluate("document.body.innerText")[:3000])
            time.sleep(0.02)

    def _holds(self, condition: str) -> bool:
        try:
            return bool(self.evaluate(f"Boolean({condition})"))
        except AssertionError as error:  # Chromium's words for a question that the next page took away, or came before
            if not re.search("navigated or closed|ReferenceError: state is not defined", str(error)):
                raise
            return False

    def press(self, key: str, modifiers: int = 0) -> None:
        """Press and release one key."""
        name, text, code = KEYS.get(key, (key, key, ord(key.upper()) if len(key) == 1 and key.isalnum() else 0))
        shown = "" if modifiers & CONTROL else text
        common = {"key": " " if name == "Space" else name, "windowsVirtualKeyCode": code, "modifiers": modifiers}
        self.call("Input.dispatchKeyEvent", type="keyDown", text=shown, **common)
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def emulate(self, width: int, *, height: int = 900, dark: bool = False, medium: str = "") -> None:
        """Set size, theme and medium ("print", or empty for the screen) of the page."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media=medium, features=[scheme])

    def print_pdf(self) -> io.BytesIO:
        """Return the page as a PDF, in the size that its styles ask for."""
        return io.BytesIO(base64.b64decode(self.call("Page.printToPDF", preferCSSPageSize=True)["data"]))


def pressed(page: str, presses: str, folder: Path, fragment: str = "") -> list[str]:
    """Return the list `said` of the script when it ends, as texts without slashes.

    fragment: of the address that the page is opened at, with its #
    """
    script = f"<script>const said = [];{presses}document.body.dataset.said = said.join('/');</script>"
    file = folder / "pressed.html"
    file.write_text(page.replace("</body>", f"{script}</body>"), encoding="utf-8")
    with Tab() as tab:
        tab.open(file.as_uri() + fragment)
        said = tab.evaluate("document.body.dataset.said")
    assert isinstance(said, str), "the script did not end"
    return said.split("/")
