"""The Python blocks of each page as one module, for type checkers: what a reader who pastes them sees in an editor."""

from __future__ import annotations

from pathlib import Path

from tests.support.pages.blocks import PAGES, page_name, page_units
from tests.support.tutorials import cells

FOREIGN = ("!", "%")  # commands and magic of a notebook, which no type checker reads


def write_page_modules(folder: Path) -> list[Path]:
    """Write a module for each page that has Python, blocks of Markdown at the lines where the page has them."""
    files = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        lines: list[str] = []
        for unit in page_units(page_name(page), text):
            if unit.kind == "python":
                lines += [""] * (unit.line - len(lines)) + unit.text.splitlines()
        lines += [line for cell in cells(page) if not cell.startswith(FOREIGN) for line in cell.splitlines()]
        if lines:
            files.append(folder / f"{page_name(page).removesuffix('.md').replace('/', '_')}.py")
            files[-1].write_text("\n".join(lines) + "\n", encoding="utf-8")
    return files
