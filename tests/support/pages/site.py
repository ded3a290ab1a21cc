"""Build the documentation site: `python -m tests.support.pages.site`, followed by what `sphinx-build` takes."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from functools import cache
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
    english: Any = import_module("sphinx.search.en").SearchEnglish
    english.stem = cache(english.stem)  # pages share most of their words
    nodes: Any = import_module("docutils.nodes").Node
    nodes._fast_findall = _nodes_of_a_class


def _nodes_of_a_class(self: Any, cls: type) -> Iterator[Any]:
    """Yield what docutils does: it asks generators within generators, one for each level of the tree."""
    if isinstance(self, cls):
        yield self
    levels = [iter(self.children)]
    while levels:
        for child in levels[-1]:
            if isinstance(child, cls):
                yield child
            if child.children:
                levels.append(iter(child.children))
                break
        else:
            levels.pop()


if __name__ == "__main__":
    sys.exit(build(sys.argv[1:]))
