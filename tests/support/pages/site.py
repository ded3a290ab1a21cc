"""Build the documentation site: `python -m tests.support.pages.site`, followed by what `sphinx-build` takes."""

from __future__ import annotations

import gc
import sys


def build(arguments: list[str]) -> int:
    """Return Sphinx's exit code."""
    from sphinx.cmd.build import main

    gc.disable()  # nearly all that the builder makes lives to the end: walks over it are two fifths of the time
    return main(arguments)


if __name__ == "__main__":
    sys.exit(build(sys.argv[1:]))
