"""Items that the paper's tables are about: which questions belong beside their printed rows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from calibrant.bench.core.samples import Item
from calibrant.dsl.causim.generated_functions import NOISE_WORDS, VALUE_WORDS
from calibrant.dsl.causim.item import CausimItem
from calibrant.dsl.causim.networks import NETWORKS
from calibrant.dsl.causim.prompt import View

NIHSS: Final = "nihss"
MEDICAL: Final = "medical"
NONSENSE: Final = "nonsense"
OTHER: Final = "other"
_TEXTS: Final = re.compile(r"'([^'\\\n]*)'|\"([^\"\\\n]*)\"")
GENERATED: Final = ("inverted_star", "chain", "layered")  # topologies of the paper's sets
OF_NIHSS: Final = "33"
OF_NETWORKS: Final = "25"
PASS_OF_NIHSS: Final = "34"
ASKED_KINDS: Final = ("counterfactual", "intervention")  # of tables about all questions: they print the means of both


class ShownProgram(NamedTuple):
    """View and vocabulary of an item, from the item itself.

    vocabulary: as `vocabulary_of`
    """

    view: View | None
    vocabulary: str


def shown_programs(items: Mapping[Item, CausimItem]) -> dict[Item, ShownProgram]:
    """Return what each of these items shows; programs that items share are read once."""
    by_source: dict[str, str] = {}
    programs = {}
    for key, item in items.items():
        source = item.task.source
        if source not in by_source:
            by_source[source] = vocabulary_of(source)
        vocabulary = item.vocabulary if item.vocabulary != NONSENSE else by_source[source]
        programs[key] = ShownProgram(item.task.view, vocabulary)
    return programs


def vocabulary_of(source: str) -> str:
    """Return the vocabulary that the texts of a program are from: medical, nonsense, or other.

    A record without a vocabulary is read as nonsense, whatever its program is; the words tell.
    """
    texts = {text for pair in _TEXTS.findall(source) for text in pair}
    kinds = [kind for kind in (NONSENSE, MEDICAL) if not texts.isdisjoint((*VALUE_WORDS[kind], *NOISE_WORDS[kind]))]
    return kinds[0] if len(kinds) == 1 else OTHER


class QuestionFacts(NamedTuple):
    """Properties of a question on which printed rows depend; None where they are not known.

    view: code, or prose; vocabulary: of the values of its program
    """

    view: View | None
    vocabulary: str | None
    topology: str
    nodes: int
    scenario: str


class Declared(NamedTuple):
    """Items of one table.

    nodes: the numbers that it has columns for; empty for any
    """

    view: View
    vocabulary: str | None
    topologies: tuple[str, ...]
    nodes: range
    words: str

    def fits(self, facts: QuestionFacts) -> bool:
        """Return whether a question is one that the table is about."""
        return (
            facts.scenario == "deterministic"
            and facts.view == self.view
            and (self.vocabulary is None or facts.vocabulary == self.vocabulary)
            and facts.topology in self.topologies
            and (not self.nodes or facts.nodes in self.nodes)
        )


_TO_TEN, _TO_NINE = range(1, 11), range(4, 10)
_PROGRAMS = Declared(
    "code", NONSENSE, GENERATED, _TO_TEN, "with one right answer; programs of 1 to 10 nodes, shown as code"
)
_MEDICAL = Declared("prose", MEDICAL, GENERATED, _TO_TEN, "with one right answer; medical prose, 1 to 10 nodes")
_STARS = Declared("prose", NONSENSE, GENERATED[:1], _TO_TEN, "nonsense prose, inverted stars of 1 to 10 nodes")
_SEVERAL = Declared("prose", NONSENSE, GENERATED, _TO_TEN, "nonsense prose of 1 to 10 nodes, topologies together")
DECLARED: dict[str, Declared] = {
    **dict.fromkeys(("3", "4", "5", "6"), _PROGRAMS),
    **dict.fromkeys(("11", "12", "13"), _MEDICAL),
    **dict.fromkeys(("17", "18", "19"), _STARS),
    **dict.fromkeys(("20", "21", "22"), _SEVERAL),
    OF_NETWORKS: Declared("code", None, tuple(NETWORKS), range(0), "programs of asia, cancer and survey"),
    OF_NIHSS: Declared("code", None, (NIHSS,), _TO_NINE, "programs of the NIH stroke scale, 4 to 9 nodes"),
    PASS_OF_NIHSS: Declared(
        "code", None, (NIHSS,), range(1, 10), "programs of the NIH stroke scale, 8 answers to each question"
    ),
}
