"""Description of an export, for people and for programs: its numbers, and the words that both get."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from calibrant.bench.core.registry import benchmark
from calibrant.bench.hub.columns import Column, Row
from calibrant.dsl.text import plural

SPLIT = "test"  # of the data sets of lm-evaluation-harness too


class Rows(Protocol):
    """Rows that can be gone through again and again."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Row]: ...


@dataclass(frozen=True)
class Described:
    """One part of an export.

    file: name of its Parquet file; sha256 and size: of that file; license: an identifier, or empty
    drawn_from_seeds: every pool states a seed; audits: lines on what audits counted; split: its name
    """

    name: str
    file: str
    sha256: str
    size: int
    rows: Rows
    columns: Sequence[Column]
    license: str = ""
    drawn_from_seeds: bool = False
    audits: Sequence[str] = ()
    split: str = SPLIT

    @property
    def with_gold(self) -> bool:
        return any(column.sealed for column in self.columns)

    @property
    def benchmarks(self) -> list[str]:
        return [benchmark(name).title for name in dict.fromkeys(row["benchmark"] for row in self.rows)]

    @property
    def groups(self) -> list[tuple[str, int]]:
        """Names of pools, in the public part of benchmarks, and how many items each has here."""
        counts: dict[str, int] = {}
        column = "pool" if self.with_gold else "benchmark"
        for row in self.rows:
            counts[row[column]] = counts.get(row[column], 0) + 1
        return list(counts.items())

    @property
    def summary(self) -> str:
        part = "with their sealed parts and right answers" if self.with_gold else "as a model is shown them"
        return (
            f"{plural(len(self.rows), 'items')} of {' and '.join(self.benchmarks)}, {part}. A causal mechanism is to be"
            " identified from finite evidence; answers are executed and checked, not compared with a reference text."
        )

    @property
    def responsible_ai(self) -> Mapping[str, str]:
        """Return the statements of pools on their making, and those that hold for every pool."""
        return (_DRAWN if self.drawn_from_seeds else _NOT_STATED) | _ALWAYS


_DRAWN = {
    "dataCollection": "Drawn by programs from seeds. No part of it was collected from people or observed in the world.",
    "dataCollectionType": "Synthetic",
    "dataBiases": (
        "Items follow the generator's distribution over graphs, formulas and interventions, and names that it invents."
    ),
    "personalSensitiveInformation": "None.",
}
_NOT_STATED = {
    "dataCollection": "The pools do not state how their items were made.",
    "dataBiases": "Items follow the distribution of whatever made them, which the pools do not state.",
    "personalSensitiveInformation": "The pools do not state any.",
}
_ALWAYS = {
    "dataUseCases": (
        "Evaluation and training of systems that identify causal mechanisms from interventional evidence."
        " Not evidence about any real causal system."
    ),
    "dataLimitations": (
        "Mechanisms are small and of few classes. The evidence of an item may leave several mechanisms open;"
        " `calibrant audit` counts them. Training on the part with gold makes an evaluation on these items void."
    ),
    "dataSocialImpact": "None is expected of the data; scores on it say nothing of causal reasoning in general.",
    "annotationsPerItem": "None by people; labels are computed.",
}
