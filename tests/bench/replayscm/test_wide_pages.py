"""Why pages of long names: no table, graph or heading is cut, in both themes, on a desktop and on a phone."""

from __future__ import annotations

from pathlib import Path

import pytest

import calibrant
from calibrant.bench.pages.why import why_page
from calibrant.bench.replayscm.why.page import body
from tests.support.accessibility import DESKTOP, PHONE
from tests.support.browser import Tab, needs_chromium

LENGTH = 20
CUT = """
[...document.querySelectorAll('main *')].filter((part) => {
  const box = part.getBoundingClientRect();
  const scroll = part.closest('.scroll');
  if (!box.width || part.closest('svg')) return false;
  if (scroll && scroll.scrollWidth > scroll.clientWidth) {
    const style = getComputedStyle(scroll);
    return style.overflowX !== 'auto' || style.scrollbarColor === 'auto';
  }
  const limit = (part.closest('.panel, .fix, .left') || document.documentElement).getBoundingClientRect().right;
  return box.right > limit + 1;
}).map((part) => part.outerHTML.slice(0, 80))
"""
SCROLLING = """
[...document.querySelectorAll('.scroll')].filter((s) => s.querySelector('table') && s.scrollWidth > s.clientWidth)
  .map((s) => s.getAttribute('aria-label'))
"""


def long_page(num_causes: int) -> str:
    """Return the page of a table of causes with names of LENGTH characters, of which no two rows are shown alike."""
    names = [f"cause_number_{k:02d}".ljust(LENGTH, "x") for k in range(num_causes)]
    rows = [{name: r >> k & 1 for k, name in enumerate(names)} | {"outcome": r & 1} for r in (0, 1, 2, 7)]
    fitted = calibrant.fit(rows, target="outcome")
    assert fitted.why is not None
    return why_page(fitted.why, body(fitted.why, "why"), "table.csv")


@needs_chromium
@pytest.mark.parametrize("num_causes", [3, 6, 10])
def test_nothing_is_cut_and_a_desktop_shows_whole_tables(num_causes: int, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(long_page(num_causes), encoding="utf-8")
    for width in (DESKTOP, PHONE):
        for dark in (False, True):
            with Tab() as tab:
                tab.emulate(width, dark=dark)
                tab.open(file.as_uri())
                assert tab.evaluate("document.documentElement.scrollWidth") <= width
                assert tab.evaluate(CUT) == []
                if width == DESKTOP:
                    assert tab.evaluate(SCROLLING) == []
