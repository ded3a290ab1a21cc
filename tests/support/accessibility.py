"""Pages measured in headless Chromium: axe-core, sideways scroll, network; in a theme and at a width.

axe-core (MPL-2.0) is what the package axe-playwright-python carries; nothing else of that package is used.
"""

from __future__ import annotations

import html
import importlib.util
import json
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.browser import CHROMIUM, FLAGS

PACKAGE = "axe_playwright_python"
DARK = "--blink-settings=preferredColorScheme=0"
THEMES = ("light", "dark")
PHONE, DESKTOP = 390, 1280


@dataclass(frozen=True)
class Measured:
    """Measures of a page.

    violations: rule and element; scroll_width: of the document; requests: addresses that it tried to load
    """

    violations: list[str]
    scroll_width: int
    requests: list[str]


def _axe() -> Path | None:
    spec = importlib.util.find_spec(PACKAGE)
    folders = spec.submodule_search_locations if spec else None
    return next((path for folder in folders or () if (path := Path(folder) / "axe.min.js").is_file()), None)


AXE = _axe()
needs_axe = pytest.mark.skipif(
    (CHROMIUM is None or AXE is None) and os.environ.get("CI") != "true",
    reason=f"no chromium or no {PACKAGE} in this environment; `make test` installs the package",
)


def measure(page: str, folder: Path, *, theme: str = "light", width: int = DESKTOP) -> Measured:
    """Measure a page in a frame of that width; every `details` open."""
    assert CHROMIUM is not None, "CI=true requires the browser tests, and there is no chromium on this machine"
    assert AXE is not None, f"CI=true requires {PACKAGE}, which requirements-rivals.lock installs"
    source = AXE.read_text(encoding="utf-8").replace("</script", "<\\/script")
    probe = f"""<script>{source}</script><script>addEventListener("load", async () => {{
  document.querySelectorAll("details").forEach((part) => {{ part.open = true; }});
  const found = await axe.run(document, {{ resultTypes: ["violations"] }});
  const line = (rule, node) => `${{rule.id}}: ${{node.target}} ${{node.failureSummary}}`;
  const violations = found.violations.flatMap((rule) => rule.nodes.map((node) => line(rule, node)));
  const requests = performance.getEntriesByType("resource").map((entry) => entry.name);
  const result = {{ violations, width: document.documentElement.scrollWidth, requests }};
  parent.document.body.dataset.result = JSON.stringify(result);
}});</script>"""
    framed = page.replace("</body>", f"{probe}</body>")
    outer = (
        f'<!DOCTYPE html><html lang="en"><body style="margin:0"><iframe title="page" style="border:0;width:{width}px;'
        f'height:900px" srcdoc="{html.escape(framed)}"></iframe></body></html>'
    )
    file = folder / f"measured-{theme}-{width}.html"
    file.write_text(outer, encoding="utf-8")
    flags = [*FLAGS, f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=60000", "--window-size=1400,900"]
    command = [CHROMIUM, *flags, *([DARK] if theme == "dark" else []), "--dump-dom", file.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    found = re.search(r'data-result="([^"]*)"', done.stdout)
    assert found is not None, done.stdout[-2000:] + done.stderr[-2000:]
    result: dict[str, Any] = json.loads(html.unescape(found[1]))
    return Measured(result["violations"], result["width"], result["requests"])
