"""Build the documentation site: `python -m tests.support.pages.site`, followed by what `sphinx-build` takes."""

from __future__ import annotations

import gc
import sys
from importlib import import_module
from typing import Any

NAVIGATED = ("index", "names/fit")  # in the folder and in one below, where the links of the same tree differ


def build(arguments: list[str]) -> int:
    """Return Sphinx's exit code."""
    from sphinx.cmd.build import main

    gc.disable()  # nearly all that the builder makes lives to the end: walks over it are two fifths of the time
    return main(arguments)


def setup(app: Any) -> None:
    """Be an extension of tests: the tree of all pages stands beside two of them alone, a fifth of the time."""
    theme: Any = import_module("furo")
    whole = theme._compute_navigation_tree
    theme._compute_navigation_tree = lambda context: whole(context) if context["pagename"] in NAVIGATED else ""


if __name__ == "__main__":
    sys.exit(build(sys.argv[1:]))
