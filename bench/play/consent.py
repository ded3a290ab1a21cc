"""The text of consent, in Markdown: as safe HTML for a page, and for a terminal. Nothing in it is loaded or run."""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING
from unicodedata import category

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

MAX_CONSENT_CHARS = 40_000  # about 15 pages; parsing is quadratic in unclosed brackets: 1.5 s at this length
FIRST_HEADING = 3  # below the page's "What is kept"
MAX_HEADING = 6
MAX_COLUMNS = 100  # of a terminal, for lines that can be read


@lru_cache(maxsize=4)
def consent_html(text: str) -> str:
    """Return the text as HTML. Raw HTML is shown as text, a link as its words and its address, a picture as its words.

    Headings are numbered by their nesting, so that no level is skipped below the page's own.
    """
    parser = _parser()
    tokens = parser.parse(_printable(text))
    _nest_headings(tokens)
    for token in tokens:
        if token.type == "inline":
            token.children = list(_plain_children(token.children or ()))
        elif token.type == "fence":
            token.info = ""  # a class of the page would follow from it
    return str(parser.renderer.render(tokens, parser.options, {}))


def consent_text(text: str) -> str:
    """Return the text as lines for a terminal of the present width, without colours and control characters."""
    from rich.console import Console
    from rich.markdown import Markdown

    document = Markdown(_printable(text), hyperlinks=False)
    document.parsed = _parser().parse(_printable(text))  # the library's own parser drops raw HTML
    columns = min(shutil.get_terminal_size().columns, MAX_COLUMNS)
    console = Console(file=io.StringIO(), width=columns, color_system=None, force_terminal=False)
    with console.capture() as captured:
        console.print(document)
    return "\n".join(line.rstrip() for line in captured.get().splitlines()).strip("\n")


def _parser() -> MarkdownIt:
    """Return the parser of both: raw HTML is text."""
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False})


def _printable(text: str) -> str:
    """Return the text without control characters, which a terminal would obey.

    Blanks of every width and joiners of letters, which `isprintable` refuses too, are parts of words.
    """
    return "".join(char for char in text if category(char) != "Cc" or char in "\n\t")


def _nest_headings(tokens: Sequence[Token]) -> None:
    """Set the level of each heading by its nesting, from FIRST_HEADING on."""
    open_levels: list[int] = []
    tag = ""
    for token in tokens:
        if token.type == "heading_open":
            level = int(token.tag[1:])
            open_levels = [*(above for above in open_levels if above < level), level]
            tag = f"h{min(FIRST_HEADING + len(open_levels) - 1, MAX_HEADING)}"
        if token.type in ("heading_open", "heading_close"):
            token.tag = tag


def _plain_children(children: Sequence[Token]) -> Iterator[Token]:
    """Yield what stands in a line: links and pictures as text."""
    from markdown_it.token import Token

    addresses: list[str] = []
    label = ""
    for child in children:
        if child.type == "link_open":
            addresses.append("" if child.info == "auto" else str(child.attrs.get("href", "")))
            label = ""
        elif child.type == "link_close":
            address = addresses.pop()
            if address and address != label:
                yield Token("text", "", 0, content=f" ({address})")
        elif child.type == "image":
            yield Token("text", "", 0, content=child.content)
        else:
            label += child.content
            yield child
