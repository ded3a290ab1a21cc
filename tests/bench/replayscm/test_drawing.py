"""The picture of an open item: texts of long names do not overlap, by their extents in a browser."""

from __future__ import annotations

from pathlib import Path

import pytest

import calibrant
from calibrant.bench.replayscm.why.page import drawing
from tests.support.browser import Tab, needs_chromium

OVERLAPS = """
(() => {
  const texts = [...document.querySelectorAll('text')].map((part) => [part.textContent, part.getBoundingClientRect()]);
  const meet = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 0.5
    && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4;
  return texts.flatMap(([s, a], k) => texts.slice(k + 1).filter(([, b]) => meet(a, b)).map(([t]) => `${s} | ${t}`));
})()
"""
BEYOND = """
(() => { const all = document.querySelector('svg').getBoundingClientRect();
  return [...document.querySelectorAll('text')].filter((part) => part.getBoundingClientRect().right > all.right + 1)
    .map((part) => part.textContent); })()
"""


@needs_chromium
@pytest.mark.parametrize(
    "names", [("battery", "button", "master", "lamp"), ("w" * 20, "MAINS_SWITCH_OF_TEN_", "b", "wattmeter_in_the_hall")]
)
def test_no_two_texts_overlap(names: tuple[str, ...], tmp_path: Path) -> None:
    rows = [{name: r >> k & 1 for k, name in enumerate(names[:3])} | {names[3]: int(r == 7)} for r in (0, 1, 2, 7)]
    fitted = calibrant.fit(rows, target=names[3])
    assert fitted.why is not None
    (tmp_path / "why.html").write_text(drawing(fitted.why), encoding="utf-8")
    with Tab() as tab:
        tab.emulate(1280, dark=False)
        tab.open((tmp_path / "why.html").as_uri())
        assert tab.evaluate("document.querySelectorAll('text').length") > 10
        assert tab.evaluate(OVERLAPS) == []
        assert tab.evaluate(BEYOND) == []
