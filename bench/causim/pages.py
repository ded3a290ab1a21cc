"""Questions of CauSim as text and page: the graph of the program with noise and `do`."""

from __future__ import annotations

from calibrant.bench.causim.picture import question_page, question_picture
from calibrant.bench.pages.layered import layered_text
from calibrant.dsl.causim.item import CausimItem


def drawing(item: CausimItem, *, reveal_sealed: bool) -> str:
    """Return the graph of the program in text."""
    return layered_text(question_picture(item, reveal_sealed=reveal_sealed))


class CausimPages:
    """Implements Pageable (bench.pages.capabilities)."""

    def page(self, item: CausimItem, *, reveal_sealed: bool) -> str:
        return question_page(item, reveal_sealed=reveal_sealed)


PAGES = CausimPages()
