"""Questions of CauSim as text and page: the graph of the program with noise and `do`."""

from __future__ import annotations

from calibrant.bench.causim.picture import question_page, question_picture
from calibrant.bench.pages.layered import layered_text
from calibrant.dsl.causim.item import CausimItem


class CausimPages:
    """Implements Pageable (bench.core.capabilities)."""

    def drawing(self, item: CausimItem, *, reveal_sealed: bool) -> str:
        return layered_text(question_picture(item, reveal_sealed=reveal_sealed))

    def page(self, item: CausimItem, *, reveal_sealed: bool) -> str:
        return question_page(item, reveal_sealed=reveal_sealed)


PAGES = CausimPages()
