"""Pages measured in headless Chromium: axe-core, sideways scroll, network; in a theme and at a width.

axe-core (MPL-2.0) is what the package axe-playwright-python carries; nothing else of that package is used.
"""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.browser import CHROMIUM, Tab

PACKAGE = "axe_playwright_python"
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
    """Measure a page in a window of that width; every `details` open."""
    file = folder / "measured.html"
    file.write_text(page, encoding="utf-8")
    with Tab() as tab:
        tab.emulate(width, dark=theme == "dark")
        tab.open(file.as_uri())
        tab.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
        violations = find_violations(tab)
        requests = tab.evaluate("performance.getEntriesByType('resource').map((entry) => entry.name)")
        return Measured(violations, tab.evaluate("document.documentElement.scrollWidth"), requests)


def find_violations(tab: Tab) -> list[str]:
    """Return what axe-core objects to on a page as it is: rule and element."""
    assert AXE is not None, f"CI=true requires {PACKAGE}, which requirements-rivals.lock installs"
    if not tab.evaluate("'axe' in window"):
        tab.evaluate(AXE.read_text(encoding="utf-8") + "; 0")
    violations = tab.evaluate(
        "axe.run(document, {resultTypes: ['violations']}).then((r) => r.violations.flatMap((v) => "
        "v.nodes.map((n) => `${v.id}: ${n.target} ${n.failureSummary}`)))"
    )
    assert isinstance(violations, list)
    return violations
