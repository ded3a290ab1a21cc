"""Pictures of the README and the site: `python -m tests.support.pages.pictures`, which `make pictures` calls.

Drawings are SVG files of `show --svg`, one a theme. Screenshots are of pages that the commands in `SHOWN` write; beside
each lies the text of its page, by which tests/test_pages.py notices that a picture is out of date.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from html.parser import HTMLParser
from io import StringIO
from itertools import product
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

from calibrant.bench.cli import main
from calibrant.bench.commands import options
from calibrant.bench.core.registry import bundled_files
from calibrant.bench.pages.page import DARK
from tests.support.browser import CHROMIUM, FLAGS
from tests.support.commands import CHECKOUT

IMAGES = CHECKOUT / "docs" / "images"
GALLERY = IMAGES / "gallery"
EXAMPLES = CHECKOUT / "docs" / "examples"
DRAWING = "calibrant show switches.jsonl lamp --svg item.svg"
THEMES = {"light": (), "dark": ("--blink-settings=preferredColorScheme=0",)}
WIDTH, HEIGHT = 1000, 660  # of a screenshot
GALLERY_HEAD = """# Gallery

Every kind of page, made by the command below it from the files in `docs/examples` and the bundled pools; a click opens
the page on the site, in a checkout after `make docs`. Pages need no network and can be read by keyboard and on a phone.
`make pictures` draws the pictures again.
"""
MAX_TEXT_CHARS = 6_000


class Shown(NamedTuple):
    """A page of the gallery.

    name: of its files; title and text: beside the picture; commands: the last one writes the page, to NAME.html
    parts: anchors in the page that pictures show, each in a file of its own; the first is the one of the gallery
    """

    name: str
    title: str
    text: str
    commands: tuple[str, ...]
    parts: tuple[str, ...] = ("",)

    @property
    def command(self) -> str:
        return self.commands[-1]

    def picture(self, part: str, theme: str) -> str:
        """Return the name of a picture."""
        return f"{self.name}{f'-{part}' if part != self.parts[0] else ''}-{theme}.png"


RUN = "calibrant run static,quiet,switch-aware detectors.jsonl --out runs --workers 1"
SHOWN = (
    Shown(
        "why",
        "Why is it ambiguous?",
        "two SCMs that fit, the row that was never shown, and what settles it",
        ("calibrant show switches.jsonl lamp --html why.html",),
    ),
    Shown(
        "table",
        "A table of your own",
        "the least formula of a column, with proof, and what the table leaves open",
        ("calibrant fit switches.csv --target lamp --html table.html",),
    ),
    Shown(
        "family",
        "All logic models of cells that fit",
        "which edges every model has, which are open, and the next experiment",
        ("calibrant family prior.sif cells.csv --fit 0.1 --size 2 --next --html family.html",),
    ),
    Shown(
        "vote",
        "For a class, with a vote",
        "evidence, a vote that is counted in the page, two models that fit, and what settles it",
        ("calibrant fit switches.csv --target lamp --html vote.html --steps",),
        ("i1s2", "i1s3"),
    ),
    Shown(
        "laboratory",
        "A laboratory, still open",
        "which edges the records prove, and which settings decide the rest",
        ("calibrant show lab.jsonl 4nodes/20/2 --html laboratory.html",),
    ),
    Shown(
        "question",
        "A question about a program",
        "the program's graph with its noise, and what follows for each answer",
        ("calibrant show causim.jsonl tree-0001-s20-v04-abduction-000 --html question.html",),
    ),
    Shown(
        "report",
        "Report",
        "who was right, who earned it, and how much a guess would have got",
        (RUN, "calibrant report runs --pool detectors.jsonl --attribution --no-times --out report.html"),
    ),
    Shown(
        "episode",
        "An episode, step by step",
        "every move with what was read and which hypotheses it left",
        (RUN, "calibrant show detectors.jsonl hard-3-20-0 --run runs --html episode.html"),
    ),
    Shown(
        "items",
        "All items of a pool",
        "an index with the reason of each",
        ("calibrant list pool.jsonl --limit 6 --html items.html",),
    ),
    Shown(
        "audit",
        "Audit",
        "exact counts of what the evidence leaves open, beside bounded searches",
        ("calibrant audit pool.jsonl --limit 3 --html audit.html",),
    ),
)
POOLS = {
    "detectors.jsonl": "sample_blickets.jsonl",
    "lab.jsonl": "sample_causalab.jsonl",
    "causim.jsonl": "sample_causim.jsonl",
    "pool.jsonl": "sample_hidden_order.jsonl",
}


def write_pages(folder: Path) -> None:
    """Write every page of the gallery into a folder, with what its commands need."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, chdir(scratch):
        _write_inputs(Path(scratch))
        done: set[str] = set()
        for shown in SHOWN:
            for command in shown.commands:
                if command not in done:
                    _call(command)
                    done.add(command)
            shutil.copy(f"{shown.name}.html", folder)


def _write_inputs(folder: Path) -> None:
    for path in EXAMPLES.iterdir():
        shutil.copy(path, folder)
    for name, bundled in POOLS.items():
        (source,) = (pool for pools in bundled_files().values() for pool in pools if pool.name == bundled)
        shutil.copy(source, folder / name)


def _call(command: str) -> None:
    """Call a command in this process: for three items, workers would import everything twice more."""
    printed = StringIO()
    with redirect_stdout(printed), redirect_stderr(printed), patch.object(options, "usable_cores", lambda: 1):
        code = main(shlex.split(command)[1:])
    if code:
        raise RuntimeError(f"{command}: {printed.getvalue()}")


def drawings() -> Iterator[tuple[str, str]]:
    """Yield the README's drawing in each theme: name of the file, text."""
    with tempfile.TemporaryDirectory() as scratch, chdir(scratch):
        _write_inputs(Path(scratch))
        _call(DRAWING)
        svg = Path("item.svg").read_text(encoding="utf-8")
    for theme in THEMES:
        yield f"item-{theme}.svg", svg.replace(DARK, "@media all" if theme == "dark" else "@media not all")


def gallery_page() -> str:
    """Return docs/gallery.md: a card a page, with its command."""
    cards = "\n".join(map(_card, SHOWN))
    return f"{GALLERY_HEAD}\n::::::{{container}} gallery\n{cards}\n::::::\n"


def _card(shown: Shown) -> str:
    images = "".join(
        f"```{{image}} images/gallery/{shown.picture(shown.parts[0], theme)}\n:class: only-{theme}\n"
        f":alt: {shown.title} {shown.text}\n:target: pages/{shown.name}.html\n```\n\n"
        for theme in THEMES
    )
    return (
        f':::::{{container}} card\n{images}**<a href="pages/{shown.name}.html">{shown.title}</a>**\n{shown.text}\n\n'
        f"`{shown.command}`\n:::::\n"
    )


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._hidden += tag in ("script", "style", "template")

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in ("script", "style", "template")

    def handle_data(self, data: str) -> None:
        if not self._hidden and data.strip():
            self.parts.append(" ".join(data.split()))


def page_text(page: str) -> str:
    """Return the beginning of the text of a page, a line a piece."""
    reader = _Text()
    reader.feed(page)
    text = re.sub(r"[0-9a-f]{12,}", "DIGEST", "\n".join(reader.parts))
    return text[:MAX_TEXT_CHARS] + "\n"


def take_screenshot(page: str, target: Path, theme: str, profile: Path) -> None:
    """Write the first screen of a page, or of an anchor in it, as a PNG file; page: its address."""
    assert CHROMIUM is not None, "screenshots need chromium"
    size = (f"--window-size={WIDTH},{HEIGHT}", "--hide-scrollbars", f"--user-data-dir={profile}")
    line = [CHROMIUM, *FLAGS, *THEMES[theme], *size, f"--screenshot={target}", page]
    subprocess.run(line, capture_output=True, timeout=90, check=True)


def write_pictures() -> None:
    """Write the drawings, and for each page a screenshot a theme and its text."""
    for name, svg in drawings():
        (IMAGES / name).write_text(svg, encoding="utf-8")
    GALLERY.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        pages = Path(folder, "pages")
        write_pages(pages)
        for shown in SHOWN:
            page = pages / f"{shown.name}.html"
            (GALLERY / f"{shown.name}.txt").write_text(page_text(page.read_text("utf-8")), encoding="utf-8")
            for theme, part in product(THEMES, shown.parts):
                address = f"{page.as_uri()}{f'#{part}' if part else ''}"
                take_screenshot(address, GALLERY / shown.picture(part, theme), theme, Path(folder, "profile"))


if __name__ == "__main__":
    write_pictures()
