"""The datasheet of a release: what its files show, and statements of its authors; nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from calibrant.bench.core.registry import benchmark
from calibrant.bench.suites.release.checklist import Answer
from calibrant.bench.suites.release.measures import PoolMeasures
from calibrant.bench.suites.release.questions import DATASHEET_KEYS, NOT_STATED
from calibrant.bench.suites.specification import SuiteSpec
from calibrant.bench.terminal import printable


def datasheet(spec: SuiteSpec, measures: Mapping[str, PoolMeasures], answers: Sequence[Answer]) -> str:
    """Return the datasheet as Markdown."""
    return printable("\n".join(_lines(spec, measures, answers)) + "\n")


def _lines(spec: SuiteSpec, measures: Mapping[str, PoolMeasures], answers: Sequence[Answer]) -> Iterator[str]:
    yield f"<!-- {spec.canary_text} -->"
    yield f"# Datasheet of {_cell(spec.title)} {spec.version}"
    yield ""
    yield "Composition and checklists follow from the files of this release; statements are those of its specification."
    yield ""
    yield "## Composition"
    yield "| pool | benchmark | items | played in episodes | what the shown evidence leaves | certificates |"
    yield "|---|---|--:|--:|---|--:|"
    for name, pool in measures.items():
        states = ", ".join(f"{number} {state}" for state, number in pool.states.items())
        title = benchmark(pool.benchmark).title
        cells = (name, title, pool.num_items, pool.num_interactive, states, pool.num_certificates)
        yield f"| {' | '.join(map(str, cells))} |"
    yield ""
    yield "Open: several hypotheses fit what an item shows. What is asked may be decided all the same, so that a draw"
    yield "from what fits can score 1.000."
    yield ""
    yield "## Statements of the authors"
    for field, text in _stated_fields(spec).items():
        yield f"- **{field}** {_cell(text)}"
    for key, question in DATASHEET_KEYS.items():
        yield f"- **{question}** {_cell(spec.statements.get(key, NOT_STATED))}"
    yield ""
    yield "## Checklists"
    yield "| question | source | kind | answer |"
    yield "|---|---|---|---|"
    for answer in answers:
        yield f"| {answer.question} | {answer.source} | {answer.kind} | {_cell(answer.answer)} |"


def _stated_fields(spec: SuiteSpec) -> Mapping[str, str]:
    return {
        "Summary": spec.summary,
        "Published": spec.date.isoformat(),
        "License": spec.license,
        "Address": spec.url or NOT_STATED,
        "Creators": ", ".join(spec.creators),
        "Gold": spec.gold,
    }


def _cell(text: str) -> str:
    """Return a text on one line, without what ends a cell of a table or begins markup."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
