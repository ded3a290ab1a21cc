"""The documentation site is built without a warning, tutorials run; what its tables measured has a command."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

import pytest
from filelock import FileLock

import calibrant
import calibrant.datasets
import calibrant.rewards
from tests.support.accessibility import PHONE
from tests.support.browser import CHROMIUM, FLAGS, Tab, needs_chromium
from tests.support.effort import SOAKING
from tests.support.pages.reference import commands
from tests.support.tutorials import outputs

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(page for page in DOCS.rglob("*.md") if page.parent.name not in ("tutorials", "_build"))

MEASURED = re.compile(r"^\|.*\|[^|\n]*\d(?:\.\d| ms| s\b| %).*$", re.MULTILINE)
COMMAND = re.compile(r"(?:`|^ {4}|^)(?:python -m |calibrant [a-z]|pytest |make )", re.MULTILINE)


SITE = "tests.support.pages.site"
TUTORIALS = [page for page in sorted(DOCS.glob("tutorials/*.md")) if "{code-cell}" in page.read_text("utf-8")]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if importlib.util.find_spec("sphinx") is None:
        assert os.environ.get("CI") != "true", "requirements-docs.lock is not installed"
        pytest.skip("requirements-docs.lock is not installed: the site is not built")
    base = tmp_path_factory.getbasetemp()
    built = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "site"  # one for all workers: 10 s each
    with FileLock(f"{built}.lock"):
        if not (built / "html").exists():
            build_site(built)
    return built / "html"


def build_site(built: Path) -> None:
    built.mkdir()
    command = [sys.executable, "-m", SITE, "-W", "--keep-going", "-q", "-b", "html"]
    command += ["-d", str(built / "trees")]
    if not SOAKING:  # cells run below; without a kernel their language is not known
        command += ["-D", "nb_execution_mode=off", "-D", "suppress_warnings=myst-nb.lexer"]
        command += ["-D", f"extensions=myst_nb,sphinx.ext.autodoc,{SITE}"]  # no 47 pages of source, a sixth of the time
    done = subprocess.run(
        [*command, str(DOCS), str(built / "new")], cwd=ROOT, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    (built / "new").rename(built / "html")


def test_every_page_is_built_and_reached_from_the_first(site: Path) -> None:
    first = (site / "index.html").read_text(encoding="utf-8")
    for page in [*PAGES, *TUTORIALS]:
        name = page.relative_to(DOCS).with_suffix(".html").as_posix()
        assert (site / name).exists()
        assert f'href="{name}"' in first or name == "index.html", name


@pytest.mark.soak
@pytest.mark.parametrize("tutorial", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial_runs_and_shows_what_its_cells_gave(
    tutorial: Path, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run each cell in this process: one that raises and a command that fails show.

    `make docs` and the soak execute the pages as they are, with kernels and processes of their own.
    """
    if SOAKING:
        site: Path = request.getfixturevalue("site")
        page = (site / "tutorials" / f"{tutorial.stem}.html").read_text(encoding="utf-8")
        assert page.count('class="cell_output') >= 3
        assert "Traceback" not in page
        assert "\x1b" not in page
        return
    for name, value in {"MPLBACKEND": "agg", "NO_COLOR": "1", "COLUMNS": "80", "TTY_COMPATIBLE": "0"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    shown = list(outputs(tutorial))
    assert sum(map(bool, shown)) >= 3
    assert "Traceback" not in "".join(shown)
    assert "\x1b" not in "".join(shown)


def test_every_public_name_has_its_signature_and_docstring_on_the_site(site: Path) -> None:
    """Those of `calibrant` on pages by task, beside an example (tests/calibrant/test_public_names.py)."""
    pages = "".join(page.read_text(encoding="utf-8") for page in (site / "names").glob("*.html"))
    documented = set(re.findall(r'id="(calibrant[\w.]*)"', pages))
    for module in (calibrant, calibrant.datasets, calibrant.rewards):
        for name in set(module.__all__) - {"__version__", "Item", "Verdict"}:
            assert f"{module.__name__}.{name}" in documented


class Links(HTMLParser):
    """Links of a page, and the anchors that it has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.targets: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.anchors |= {value for key, value in attrs if key in ("id", "name") and value}
        self.targets |= {value for key, value in attrs if key in ("href", "src") and value}


def test_every_link_leads_somewhere(site: Path) -> None:
    """Files and anchors; anchors of pages of reports are made by their script, and tested there."""
    pages = {page: Links(page.read_text(encoding="utf-8")) for page in site.rglob("*.html")}
    broken = []
    for page, links in pages.items():
        for link in links.targets:
            if re.match(r"[a-z]+:|//", link):
                if not re.match(r"https?://[\w.-]+\.[a-z]+(?:/|$)|data:", link):  # such as tcp://HOST:PORT
                    broken.append(f"{page.relative_to(site)}: {link}")
                continue
            path, _, anchor = link.partition("#")
            target = (page.parent / unquote(path.partition("?")[0])).resolve() if path else page
            is_made = page.parent.name == "pages" and not path
            if not target.is_file() or (anchor and not is_made and unquote(anchor) not in pages[target].anchors):
                broken.append(f"{page.relative_to(site)}: {link}")
    assert broken == []
    assert sum(len(links.targets) for links in pages.values()) > 1000


def test_the_search_finds_every_command_and_public_name(site: Path) -> None:
    index = json.loads((site / "searchindex.js").read_text(encoding="utf-8")[len("Search.setIndex(") : -1])
    pages = {place for place, name in enumerate(index["docnames"]) if name.startswith("commands/")}
    for _, name, _ in commands():
        assert pages & {place for place, _ in index["alltitles"][f"calibrant {name}"]}, name
    names = {entry[-1] for entry in index["objects"]["calibrant"]}
    assert set(calibrant.__all__) - {"__version__", "Item", "Verdict"} <= names


QUESTIONS = {  # what is typed into the search: the page that answers
    "my own table": "tables.html",
    "own table": "tables.html",
    "missing values": "tables.html#gaps",
    "midas": "logic.html#files",
    "leak": "releases.html#has-gold-leaked",
    "leakage": "releases.html#has-gold-leaked",
    "interval": "metrics.html#one-rate-one-interval",
    "confidence interval": "metrics.html#one-rate-one-interval",
    "solve": "names/solve.html#calibrant.solve",
    "glossary": "glossary.html",
}


@needs_chromium
def test_the_first_hit_of_the_search_is_the_page_that_answers(site: Path) -> None:
    """The site's own search, as a browser runs it; pages of decisions are no hits."""
    first = {}
    with Tab() as tab:
        for question in [*QUESTIONS, "bulk scoring keeps its own workers"]:
            tab.open(f"{(site / 'search.html').as_uri()}?q={question.replace(' ', '+')}")
            tab.wait("document.querySelector('#search-results .search-summary')?.innerText")
            tab.wait(
                "document.querySelectorAll('#search-results li a').length || /not match/.test(document.body.innerText)"
            )
            hits = tab.evaluate(
                "[...document.querySelectorAll('#search-results li a')].map((a) => a.getAttribute('href'))"
            )
            first[question] = re.sub(r"\?[^#]*", "", next(iter(hits), ""))
            assert not [hit for hit in hits if hit.startswith("decisions")], question
    first.pop("bulk scoring keeps its own workers")
    assert first == QUESTIONS


@needs_chromium
def test_code_is_copied_without_prompts_and_output(site: Path) -> None:
    count = "document.querySelectorAll('.copy').length === document.querySelectorAll('.content .highlight pre').length"
    with Tab() as tab:
        tab.open((site / "commands" / "start.html").as_uri())
        assert tab.evaluate(count)
        tab.evaluate("navigator.clipboard.writeText = async (text) => { document.title = text; }; 0")
        tab.evaluate("document.querySelector('.highlight-console .copy').click()")
        tab.wait("document.querySelector('.highlight-console .copy').textContent === 'copied'")
        assert tab.evaluate("document.title") == "calibrant list switches.jsonl --why"


def test_every_tutorial_has_a_picture_that_says_what_it_shows(site: Path) -> None:
    for tutorial in TUTORIALS:
        page = (site / "tutorials" / f"{tutorial.stem}.html").read_text(encoding="utf-8")
        pictures = re.findall(r'<img alt="([^"]{30,})"', page)
        assert pictures, tutorial.stem


@needs_chromium
def test_no_page_scrolls_sideways_on_a_phone(site: Path, tmp_path: Path) -> None:
    """All pages in one browser, with one that does scroll."""
    assert CHROMIUM is not None, "CI=true requires the browser tests, and there is no chromium on this machine"
    probe = tmp_path / "probe.html"
    probe.write_text("<!DOCTYPE html><div style='width:600px'>wide</div>", encoding="utf-8")
    folders = (".", "tutorials", "commands", "formats", "names")
    pages = [probe, *(page for folder in folders for page in site.glob(f"{folder}/*.html"))]
    script = f"""
const addresses = {json.dumps([page.as_uri() for page in pages])}, wide = [];
const frame = document.querySelector("iframe");
const measured = async (address) => {{
  await new Promise((done) => {{ frame.onload = done; frame.src = address; }});
  if (frame.contentDocument.documentElement.scrollWidth > {PHONE}) wide.push(address);
}};
(async () => {{
  for (const address of addresses) await measured(address);
  document.body.dataset.wide = wide.join(" ");
}})();"""
    outer = tmp_path / "outer.html"
    frame = f'<iframe style="border:0;width:{PHONE}px;height:800px"></iframe>'
    outer.write_text(f"<!DOCTYPE html><body>{frame}<script>{script}</script></body>", encoding="utf-8")
    flags = [*FLAGS, f"--user-data-dir={tmp_path / 'profile'}", "--allow-file-access-from-files"]
    line = [CHROMIUM, *flags, "--virtual-time-budget=120000", "--dump-dom", outer.as_uri()]
    done = subprocess.run(line, capture_output=True, text=True, timeout=120, check=True)
    wide = re.search(r'data-wide="([^"]*)"', done.stdout)
    assert wide is not None, done.stdout[-2000:] + done.stderr[-2000:]
    assert wide[1] == probe.as_uri()


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert not re.search(r"<(?:script|img)[^>]+src=\"https?:", text), page.name
        assert not re.search(r"<link[^>]+rel=\"stylesheet\"[^>]+href=\"https?:", text), page.name


def sections(text: str) -> Iterator[tuple[str, str, str]]:
    """Each section's heading, its own text, and that after the text of the sections that it stands in."""
    above: list[tuple[int, str]] = [(0, "")]
    for part in re.split(r"^(?=#{1,6} )", text, flags=re.MULTILINE):
        level = len(part) - len(part.lstrip("#"))
        while above and above[-1][0] >= level > 0:
            above.pop()
        yield part.split("\n", 1)[0], part, "".join(body for _, body in above) + part
        above.append((level, part))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_table_of_measured_figures_stands_beside_the_command_that_makes_it(page: Path) -> None:
    """A table of measured figures has two rows or more with decimals, per cents or times."""
    silent = [
        heading
        for heading, own, text in sections(page.read_text(encoding="utf-8"))
        if len(MEASURED.findall(own)) > 1 and not COMMAND.search(text)
    ]
    assert silent == []


def test_every_column_of_a_table_has_a_heading() -> None:
    """A screen reader names the column of each cell; axe-core objects to empty ones."""
    separator = re.compile(r"^\|[ :|-]+\|$")
    empty = []
    for page in sorted(DOCS.rglob("*.md")):
        lines = page.read_text(encoding="utf-8").splitlines()
        heads = [above for above, line in pairwise(lines) if separator.match(line) and above.startswith("|")]
        empty += [(page.name, head) for head in heads if not all(map(str.strip, head.strip("|").split("|")))]
    assert empty == []
