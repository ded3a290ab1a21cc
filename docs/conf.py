"""How Sphinx builds the site: `make docs`, offline; the tutorials are executed, and a warning is an error there."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

from sphinx import addnodes

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from calibrant.bench.pages.tokens import TOKENS  # noqa: E402  # the checkout is on the path only now
from calibrant.bench.version import __version__  # noqa: E402

project = "Calibrant"
copyright = "2026, the authors of Calibrant"
release = version = __version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.viewcode"]
source_suffix = {".md": "myst-nb"}
exclude_patterns = ["_build", "images", "static"]
html_theme = "furo"
html_title = f"Calibrant {release}"
html_static_path = ["static"]
THEME_VARIABLES = {  # furo's, in the colours of all our pages
    "color-brand-primary": "ink",
    "color-brand-content": "link",
    "color-background-primary": "paper",
    "color-background-secondary": "panel",
    "color-background-hover": "sunk",
    "color-background-border": "line",
    "color-foreground-primary": "ink",
    "color-foreground-secondary": "soft",
    "color-foreground-muted": "soft",
    "color-foreground-border": "edge",
    "color-inline-code-background": "panel",
    "color-code-background": "panel",
    "color-code-foreground": "ink",
    "color-link": "link",
    "color-link--visited": "link",
    "color-link--hover": "link",
    "color-api-keyword": "soft",
    "color-api-name": "ink",
    "color-api-pre-name": "soft",
    "color-sidebar-link-text": "soft",
    "color-sidebar-caption-text": "soft",
    "color-sidebar-search-text": "ink",
    "color-toc-item-text": "soft",
}
html_theme_options = {
    f"{theme}_css_variables": {name: getattr(TOKENS[token], theme) for name, token in THEME_VARIABLES.items()}
    for theme in ("light", "dark")
}
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_show_sphinx = False
html_last_updated_fmt = None
pygments_style = "a11y-high-contrast-light"  # 4.5 on our panels, which "friendly" misses; the theme requires them
pygments_dark_style = "a11y-high-contrast-dark"

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

# Cells run in a folder of their own with the command that this Python has, and nothing of a terminal in their output.
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_in_temp = True
nb_execution_timeout = 600  # the first cell of a new machine compiles kernels
nb_merge_streams = True
suppress_warnings = [
    "misc.highlighting_failure"
]  # files that a cell writes are no Python, as which its lexer reads them
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
os.environ.update(NO_COLOR="1", COLUMNS="80", TTY_COMPATIBLE="0", JUPYTER_PLATFORM_DIRS="1")
os.environ.pop("MPLBACKEND", None)
os.environ["PYTHONPATH"] = str(HERE.parent)

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_class_signature = "separated"
autodoc_default_options = {"members": True, "undoc-members": False, "show-inheritance": False}

FIELD = re.compile(r"(?P<names>[a-z_][\w, ]{0,60}): (?P<meaning>\S.*)")


def as_list(app: Any, what: str, name: str, subject: Any, options: Any, lines: list[str]) -> None:
    """Docstrings say `field: meaning` on a line of its own and continue it indented; the site makes a list of that."""
    shown: list[str] = []
    inside = False
    for line in (re.sub(r"(?<!`)`([^`]+)`(?!`)", r"``\1``", line) for line in lines):
        field = FIELD.fullmatch(line)
        if field and (inside or not shown or not shown[-1]):
            shown += [""] * (not inside) + [f"- **{field['names']}**: {field['meaning']}"]
            inside = True
        else:
            inside = inside and line.startswith(" ")
            shown.append(f"  {line.strip()}" if inside else line)
    lines[:] = shown


ANSWERS = {  # words that readers search for by the page, or its section, that answers; others stand in texts and titles
    "tables": "my own table, own table, csv, spreadsheet, excel, data frame, pandas, parquet",
    "tables#gaps": "missing values, missing data, missing, nan",
    "logic#files": "midas, sif, perturbation data",
    "releases#has-gold-leaked": "leak, leaks, leakage, contamination, memorised",
    "metrics#one-rate-one-interval": "interval, confidence interval, error bar, significance, bootstrap",
    "studies": "people, participants, survey, experiment with people",
    "predictions": "responses, my model, jsonl, harness",
    "names/fit": "fit a formula",
}
UNSEARCHED = ("decisions/", "changelog")  # about the project: its pages mention everything, and answer nobody


def add_answers(app: Any, doctree: Any) -> None:
    """Add words to the index of the page that answers them, which the search looks up first."""
    page = app.env.docname
    for place, words in ANSWERS.items():
        name, _, anchor = place.partition("#")
        if name == page:
            entries = [("single", word, anchor, "main", None) for word in words.split(", ")]
            doctree.append(addnodes.index(entries=entries))
    if page.startswith(UNSEARCHED):
        app.env.metadata[page]["nosearch"] = "true"


def write_gallery(app: Any, error: Exception | None) -> None:
    """Write the pages that the gallery opens, each by its command."""
    if error is None and app.builder.format == "html":
        from tests.support.pages.pictures import write_pages

        write_pages(Path(app.outdir) / "pages")


def drop_modules_without_source(app: Any) -> list[Any]:
    """Leave modules without source, such as builtins, out of the list that viewcode links to."""
    sources = getattr(app.env, "_viewcode_modules", {})
    for name in [name for name, entry in sources.items() if not entry]:
        del sources[name]
    return []


def setup(app: Any) -> None:
    app.connect("html-collect-pages", drop_modules_without_source, priority=100)  # viewcode has 500
    app.connect("autodoc-process-docstring", as_list)
    app.connect("doctree-read", add_answers)
    app.connect("build-finished", write_gallery)


smartquotes_action = "qe"  # quotes and ellipses: dashes would make –why of --why, which cannot be pasted
