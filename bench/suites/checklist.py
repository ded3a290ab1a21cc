"""Checklist and datasheet of a release.

ABC is the Agentic Benchmark Checklist, numbered as in docs/checklist.md of its repository (I, II, III; the paper,
arXiv:2507.02825, numbers O, T, R). BetterBench is arXiv:2411.12990. The questions are paraphrased. Statements are taken
from the table `statements` of suite.toml by the question's key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from calibrant.bench.core.registry import benchmark
from calibrant.bench.suites.manifest import SuiteSpec, sha256_of
from calibrant.bench.suites.pools import PoolMeasures
from calibrant.bench.terminal import printable
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.text import plural

# --- Questions of checklists for benchmarks, and the kind of answer to each -------------------------------------------
Kind: TypeAlias = Literal["proof", "measured", "statement", "not applicable"]
NOT_STATED = "not stated"


class Question(NamedTuple):
    """A question. source: checklist and number; key: key of its answer in `_ANSWERS`, or of the authors' statement."""

    source: str
    text: str
    kind: Kind
    key: str


QUESTIONS = (
    Question("ABC I.a.1, I.a.2 (O.a.1, O.a.2)", "Are equivalent answers accepted?", "measured", "parsing"),
    Question("ABC I.b.1 (O.b.1)", "Is negation in free text handled?", "not applicable", "structured"),
    Question("ABC I.b.2 (O.b.2)", "Does listing several answers pay?", "measured", "listing"),
    Question("ABC I.b.3, I.h.2 (O.b.3, O.h.2)", "What does guessing get?", "measured", "guessing"),
    Question("ABC I.c.1, I.c.2 (O.c.1, O.c.2)", "Is a judge used, and how good is it?", "statement", "judge"),
    Question("ABC I.e.2 (O.e.2)", "Do the tests cover the inputs?", "statement", "input_coverage"),
    Question("ABC I.f.3 (O.f.3)", "Are results the same when scored again?", "measured", "repeatable"),
    Question("ABC I.g.1 (O.g.1)", "Is the ground truth right, and is every right answer accepted?", "proof", "truth"),
    Question("ABC I.h.1 (O.h.1)", "Is the form of answers stated, and does it parse?", "measured", "parsing"),
    Question("ABC I.i.1 (O.i.1)", "Can the metric be gamed without solving?", "measured", "gaming"),
    Question("ABC II.1, II.6 (T.1, T.6)", "Are versions pinned and the environment static?", "proof", "lock"),
    Question("ABC II.2, II.3 (T.2, T.3)", "Are failures of services detected?", "statement", "services"),
    Question("ABC II.4 (T.4)", "Is state cleared between items?", "measured", "repeatable"),
    Question("ABC II.5 (T.5)", "Is gold out of the agent's reach?", "proof", "isolation"),
    Question("ABC II.5 (T.5)", "Is gold out of reach on a submitter's machine?", "statement", "submitter_machine"),
    Question("ABC II.7 (T.7)", "Is each ground truth verified?", "proof", "truth"),
    Question("ABC II.8 (T.8)", "Is each item solvable?", "proof", "solvable"),
    Question("ABC II.9 (T.9)", "Does an oracle solve the items?", "measured", "oracle"),
    Question("ABC II.10 (T.10)", "Are forged submissions refused?", "measured", "forgeries"),
    Question(
        "ABC III.1, III.2 (R.1, R.2)", "Is the benchmark open, with what it needs to run?", "statement", "openness"
    ),
    Question("ABC III.3 (R.3)", "Is contamination guarded against?", "proof", "commitment"),
    Question("ABC III.4 (R.4)", "Is there a plan for updates?", "statement", "updates"),
    Question(
        "ABC III.5, III.6 (R.5, R.6)", "Which ability is measured, and does success show it?", "statement", "construct"
    ),
    Question("ABC III.7, III.8 (R.7, R.8)", "What are known flaws?", "statement", "flaws"),
    Question(
        "ABC III.9 (R.9)", "How large is the effect of flaws: items that the evidence leaves open?", "proof", "open"
    ),
    Question("ABC III.10 (R.10)", "Do results have intervals?", "measured", "intervals"),
    Question("ABC III.11 (R.11)", "How should results be read?", "statement", "reading"),
    Question("ABC III.12 (R.12)", "What do methods without a language model get?", "measured", "rows"),
    Question("ABC III.12 (R.12), BetterBench", "What do people get?", "statement", "human_level"),
    Question("ABC III.13 (R.13)", "What do trivial agents get?", "measured", "gaming"),
    Question("BetterBench", "Were domain experts consulted?", "statement", "experts"),
    Question("BetterBench", "Who can be asked?", "statement", "contact"),
    Question("BetterBench", "When is the benchmark retired?", "statement", "retirement"),
)
STATEMENT_KEYS = tuple(question.key for question in QUESTIONS if question.kind == "statement")
DATASHEET_KEYS = {
    "motivation": "Why was it made?",
    "funding": "Who paid for it?",
    "collection": "How were the items obtained?",
    "preprocessing": "Was anything cleaned or relabelled?",
    "biases": "Which biases are known?",
    "limitations": "What is it not good for?",
    "uses": "What should it be used for?",
    "social_impact": "Which effects on society are expected?",
    "personal_information": "Does it hold personal or sensitive information?",
    "maintenance": "Who maintains it, and how are errors reported?",
}
"""Keys of further statements: datasheets (Gebru et al., arXiv:1803.09010) and Croissant's RAI fields."""
KEYS = (*dict.fromkeys((*STATEMENT_KEYS, *DATASHEET_KEYS)),)


# --- Checklist of a release: every question with its answer, and the file that proves or measures it ------------------


class Evidence(msgspec.Struct, frozen=True):
    """A file of the release. digest: SHA-256; salted: whether the digest is a commitment to a file below `gold`."""

    file: str
    digest: str
    salted: bool = False


class Answer(msgspec.Struct, frozen=True):
    """A question with its answer."""

    source: str
    question: str
    kind: Kind
    answer: str
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True)
class ReleaseFacts:
    """Facts of a release for the answers.

    folder: folder that holds `public` and `gold`; measures: pool -> its measurements
    num_certificates: number of certificates in the release, all verified
    items: files of the public items; statements: key -> the authors' statement
    digest: file of the release -> its evidence
    """

    folder: Path
    measures: Mapping[str, PoolMeasures]
    num_certificates: int
    items: Sequence[str]
    statements: Mapping[str, str]
    is_private: bool
    digest: Callable[[str], Evidence]


MEASURES, CERTIFICATES = "public/measures.json", "gold/certificates.json"
LOCK, COMMITMENTS = "gold/suite.lock", "public/commitments.json"


def answer_questions(facts: ReleaseFacts) -> list[Answer]:
    """Answer all questions; `CalibrantError` for a proof without a file that can be checked."""
    answers = [_answer(question, facts) for question in QUESTIONS]
    for answer in answers:
        require_checkable(answer, facts.folder)
    return answers


def require_checkable(answer: Answer, folder: Path) -> None:
    """Raise `CalibrantError` if the file of a proof or measurement is not stated, missing, or has another digest."""
    if answer.kind in ("statement", "not applicable"):
        return
    if not answer.evidence:
        raise CalibrantError(f"checklist: {answer.source}: a {answer.kind} answer without a file that shows it")
    for evidence in answer.evidence:
        path = folder / evidence.file
        if not path.is_file():
            raise CalibrantError(f"checklist: {answer.source}: {evidence.file} is not there")
        if not evidence.salted and sha256_of(path) != evidence.digest:
            raise CalibrantError(f"checklist: {answer.source}: {evidence.file} has another digest")


def _answer(question: Question, facts: ReleaseFacts) -> Answer:
    """Return the answer to a question; if its measurement is missing, the authors' statement."""
    source, text, kind, key = question
    if kind == "statement":
        return Answer(source, text, kind, facts.statements.get(key, NOT_STATED))
    if kind == "not applicable":
        return Answer(source, text, kind, "Answers are structured; no free text is judged.")
    text_of, files_of = _ANSWERS[key]
    answer_text = text_of(facts)
    if answer_text is None:
        return Answer(source, text, "statement", facts.statements.get(key, NOT_STATED))
    return Answer(source, text, kind, answer_text, tuple(map(facts.digest, files_of(facts))))


def _total(facts: ReleaseFacts, name: str) -> int:
    return sum(getattr(measures, name) for measures in facts.measures.values())


def _share(facts: ReleaseFacts, part: str, whole: str, noun: str = "items") -> str:
    """Return two sums over the pools as a text such as "3 of 4 items"."""
    return f"{_total(facts, part)} of {plural(_total(facts, whole), noun)}"


def _by_pool(facts: ReleaseFacts, text: Callable[[PoolMeasures], str]) -> str:
    return "; ".join(f"{name}: {text(measures)}" for name, measures in facts.measures.items())


def _rows(measures: PoolMeasures) -> str:
    return ", ".join(f"{row} {values.rate:.3f}" for row, values in measures.rows.items()) or "no row"


def _levels(measures: PoolMeasures) -> str:
    parts = [
        f"{row} {values.rate:.3f} beside {values.chance:.3f} of a draw from what fits its evidence"
        for row, values in measures.rows.items()
        if values.chance is not None
    ]
    return ", ".join(parts) or "not computed"


def _guessing(facts: ReleaseFacts) -> str | None:
    has_levels = any(row.chance is not None for m in facts.measures.values() for row in m.rows.values())
    return _by_pool(facts, _levels) + "." if has_levels else None


def _states(measures: PoolMeasures) -> str:
    return ", ".join(f"{count} {state}" for state, count in measures.states.items())


def _repeatable(facts: ReleaseFacts) -> str | None:
    rows = [row for measures in facts.measures.values() for row in measures.rows.values()]
    num_equal = sum(row.scored_twice_equal for row in rows)
    text = f"{num_equal} of {plural(len(rows), 'rows')} scored the same again, episodes replayed afresh."
    return text if rows else None


def _if_any_rows(facts: ReleaseFacts, text: str) -> str | None:
    return text if any(measures.rows for measures in facts.measures.values()) else None


def _certificates(facts: ReleaseFacts) -> list[str]:
    return [CERTIFICATES]


def _truth(facts: ReleaseFacts) -> str | None:
    if not facts.num_certificates:
        return None
    return (
        f"Passed by `calibrant pool check`: {_share(facts, 'num_sound', 'num_items')}; "
        f"verified by plain counting: {plural(_total(facts, 'num_certificates'), 'certificates')}. "
        "Answers are executed: all that the benchmark's definition counts as right are accepted."
    )


def _open(facts: ReleaseFacts) -> str | None:
    return f"Items by what the shown evidence leaves: {_by_pool(facts, _states)}." if facts.num_certificates else None


def _measures(facts: ReleaseFacts) -> list[str]:
    return [MEASURES]


def _commitment(facts: ReleaseFacts) -> str:
    if facts.is_private:
        return (
            "Gold is private; a salted commitment to each item and their Merkle root are published. "
            "A canary marks items."
        )
    return "Gold is public; a canary marks items. Commitments bind it to this version, they hide nothing."


_ANSWERS: Mapping[str, tuple[Callable[[ReleaseFacts], str | None], Callable[[ReleaseFacts], list[str]]]] = {
    "parsing": (
        lambda facts: (
            "The same score inside a fenced block after a sentence: "
            f"{_share(facts, 'num_text_equal', 'num_gold', 'gold answers')}."
        ),
        _measures,
    ),
    "listing": (
        lambda facts: (
            "Several answers to an item count by their mean: gold beside an empty answer scores more than one half on "
            f"{_share(facts, 'num_listed_right', 'num_gold')}."
        ),
        _measures,
    ),
    "guessing": (_guessing, _measures),
    "repeatable": (_repeatable, _measures),
    "truth": (_truth, _certificates),
    "gaming": (
        lambda facts: f"An empty answer is right on {_share(facts, 'num_empty_right', 'num_items')}.",
        _measures,
    ),
    "lock": (lambda facts: "Specification and lock pin every input and version.", lambda facts: [LOCK]),
    "isolation": (
        lambda facts: "The public folder holds public columns alone: no record, no answer, no seed.",
        lambda facts: list(facts.items),
    ),
    "solvable": (
        lambda facts: f"Gold fits what is shown, on {_share(facts, 'num_sound', 'num_items')}.",
        _measures,
    ),
    "oracle": (
        lambda facts: f"Gold scores right on {_share(facts, 'num_gold_right', 'num_gold')}.",
        _measures,
    ),
    "forgeries": (
        lambda facts: (
            f"Refused: {_share(facts, 'num_forged_refused', 'num_forged', 'changed answers')} of rows."
            if _total(facts, "num_forged")
            else None
        ),
        _measures,
    ),
    "commitment": (_commitment, lambda facts: [COMMITMENTS]),
    "open": (_open, _certificates),
    "intervals": (lambda facts: _if_any_rows(facts, "Rates on boards have 95 % intervals over items."), _measures),
    "rows": (lambda facts: _if_any_rows(facts, _by_pool(facts, _rows) + "."), _measures),
}


# --- The datasheet of a release: facts from its files, and statements of its authors ----------------------------------


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
    """Return a text on one line, with pipes and markup escaped."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
