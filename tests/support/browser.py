"""Pages in headless Chromium, pressed by a script as a reader would."""

from __future__ import annotations

import html
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)

REQUIRED = os.environ.get("CI") == "true"  # then a missing browser is a failure, not a skip

needs_chromium = pytest.mark.skipif(CHROMIUM is None and not REQUIRED, reason="no chromium on this machine")


def pressed(page: str, presses: str, folder: Path, fragment: str = "") -> list[str]:
    """Return the list `said` of the script when it ends, as texts without slashes.

    fragment: of the address that the page is opened at, with its #
    """
    assert CHROMIUM is not None, "CI=true requires the browser tests, and there is no chromium on this machine"
    script = f"<script>const said = [];{presses}document.body.dataset.said = said.join('/');</script>"
    file = folder / "pressed.html"
    file.write_text(page.replace("</body>", f"{script}</body>"), encoding="utf-8")
    line = [CHROMIUM, *FLAGS, f"--user-data-dir={folder / 'profile'}", "--dump-dom", file.as_uri() + fragment]
    done = subprocess.run(line, capture_output=True, text=True, timeout=90, check=True)
    found = re.search(r'data-said="([^"]*)"', done.stdout)
    assert found is not None
    return html.unescape(found[1]).split("/")
