"""Play of logic models: typed moves, and the models that are consistent with the data."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.bench.core.typed_moves import (
    Act,
    Draft,
    Edit,
    Position,
    Reader,
    Verb,
    Words,
    WordsError,
    match_name,
    read_number,
)
from calibrant.bench.logic.report import NONE
from calibrant.bench.report.capabilities import Hypothesis, Remaining, first_entries
from calibrant.dsl.episode import Step
from calibrant.dsl.errors import CalibrantError, short_repr
from calibrant.dsl.logic.item import Clause, LogicItem, Model, model_texts, parse_clause
from calibrant.dsl.logic.prompt import facts
from calibrant.dsl.logic.score import answer_json, parse_answer
from calibrant.dsl.logic.trajectories import is_trajectory_item
from calibrant.solvers.logic.elimination.lattice import LatticeLimitError
from calibrant.solvers.logic.family import solve_family
from calibrant.solvers.outcome import Found

# --- Typed moves of a network: n2 <- s1 and not s2, chance 1 n1 = 0.5, submit -----------------------------------------
MAX_CLAUSES = 1_000  # of a draft
_CHANCE = re.compile(r"(?:(\d{1,4})\s+)?([^\s=]{1,200})\s*=\s*(\S{1,30})")


class LogicWords(Words[LogicItem]):
    """Implements Words (bench.core.typed_moves).

    A draft has `model`, a list of clauses as text, and `probabilities` by "experiment.readout", experiments numbered
    from 1. If it has both, the probabilities are the answer.
    """

    kind = ("network", "networks")

    def opening(self, item: LogicItem) -> str:
        _refuse_trajectories(item)
        return "\n\n".join(facts(item.task))

    def verbs(self, item: LogicItem) -> Sequence[Verb]:
        _refuse_trajectories(item)
        example = _example(item)
        verbs = [
            Verb(example, "write down a clause of the model; several sources are joined by and, as in: and not ..."),
            Verb(f"drop {example}", "take a clause back"),
        ]
        if item.task.questions:
            readout = item.task.setup.readouts[0]
            verbs.append(Verb(f"chance 1 {readout} = 0.7", "in place of a model: probability of a 1 in experiment 1"))
            verbs.append(Verb("chance nothing", "take all probabilities back; clauses count then"))
        return (*verbs, Verb("submit", "send the answer that is written; it ends the item"))

    def readers(self, item: LogicItem) -> Mapping[str, Reader]:
        readers: dict[str, Reader] = {"submit": _read_submit, "drop": _read_drop}
        return readers | ({"chance": _read_chance} if item.task.questions else {})

    def read_form(self, item: LogicItem, position: Position, line: str) -> Act | Edit | None:
        """Add the clause of a line `target <- sources` to the draft; None for other lines."""
        if "<-" not in line or line.partition(" ")[0].lower() in ("drop", "chance"):
            return None
        clauses = list(position.draft.get("model", []))
        text = str(_read_clause(item, line))
        return Edit({**position.draft, "model": clauses if text in clauses else [*clauses, text]})

    def read_json(self, item: LogicItem, line: str) -> Act:
        """Return the answer in a line of JSON: {"submit": {...}}, or its object alone."""
        act = super().read_json(item, line)
        return act if act.action.keys() == {"submit"} else Act({"submit": dict(act.action)})

    def answer(self, item: LogicItem, draft: Draft) -> dict[str, Any]:
        probabilities = draft.get("probabilities")
        if not probabilities:
            if not draft.get("model"):
                message = f"no clause is written; type for example {_example(item)}"
                raise WordsError(message, page="add a clause first")
            answer: dict[str, Any] = {"model": list(draft["model"])}
        else:
            rows, readouts = range(1, len(item.task.questions) + 1), item.task.setup.readouts
            missing = [(row, name) for row in rows for name in readouts if f"{row}.{name}" not in probabilities]
            if missing:
                row, name = missing[0]
                hint = f"type for example chance {row} {name} = 0.5, or `chance nothing` to send clauses"
                message = f"{len(missing)} probabilities are missing; {hint}"
                raise WordsError(message, page=f"write all probabilities first: {len(missing)} are missing")
            answer = {"probabilities": [[probabilities[f"{row}.{name}"] for name in readouts] for row in rows]}
        try:
            return answer_json(parse_answer(answer, item.task))  # clauses in the canonical order
        except CalibrantError as error:
            raise WordsError(str(error)) from None

    def check_answer(self, item: LogicItem, answer: Mapping[str, Any]) -> None:
        try:
            parse_answer(answer, item.task)
        except CalibrantError as error:
            raise WordsError(str(error)) from None

    def draft_lines(self, item: LogicItem, draft: Draft) -> Sequence[str]:
        probabilities = draft.get("probabilities", {})
        cells = (key.partition(".") for key in probabilities)
        lines = [f"chance {row} {name} = {probabilities[f'{row}.{name}']}" for row, _, name in cells]
        return [*draft.get("model", ()), *lines]

    def check_draft(self, item: LogicItem, draft: object) -> Draft:
        if not isinstance(draft, Mapping) or not draft.keys() <= {"model", "probabilities"}:
            raise WordsError('a draft has the keys "model" and "probabilities"')
        texts, probabilities = draft.get("model", []), draft.get("probabilities", {})
        if not isinstance(texts, list) or len(texts) > MAX_CLAUSES or not all(isinstance(text, str) for text in texts):
            raise WordsError(f"model is a list of at most {MAX_CLAUSES:,} clauses")
        clauses = list(dict.fromkeys(str(_read_clause(item, text)) for text in texts))
        keys = [f"{row}.{name}" for row in range(1, len(item.task.questions) + 1) for name in item.task.setup.readouts]
        if not isinstance(probabilities, Mapping) or not probabilities.keys() <= set(keys):
            raise WordsError("probabilities is an object by experiment.readout")
        if not all(type(number) in (int, float) and 0 <= number <= 1 for number in probabilities.values()):
            raise WordsError("a probability is a number from 0 to 1")
        checked = {"model": clauses, "probabilities": {key: probabilities[key] for key in keys if key in probabilities}}
        return {key: value for key, value in checked.items() if value}

    def graph(self, item: LogicItem, draft: Draft) -> Mapping[str, Sequence[str]] | None:
        clauses = [parse_clause(text) for text in draft.get("model", ())]
        parents: dict[str, list[str]] = {}
        for clause in clauses:
            for source in clause.sources:
                parents.setdefault(source, [])
                sources = parents.setdefault(clause.target, [])
                sources += [] if source in sources else [source]
        return parents or None

    def view(self, item: LogicItem) -> dict[str, Any]:
        _refuse_trajectories(item)
        task = item.task
        sources: dict[str, list[list[Any]]] = {}
        for edge in task.edges:
            sources.setdefault(edge.target, []).append([edge.source, edge.sign])
        return {
            "view": "network",
            "rules": list(facts(task)),
            "brief": ["Choose what switches each node on, so that the readouts come out as they were measured."],
            "measured": [
                [experiment.text(task.setup), ["-" if value is None else f"{value:g}" for value in row]]
                for experiment, row in zip(task.experiments, task.values, strict=True)
            ],
            "sources": sources,
            "readouts": list(task.setup.readouts),
            "questions": [question.text(task.setup) for question in task.questions],
        }


def _refuse_trajectories(item: LogicItem) -> None:
    if is_trajectory_item(item):
        raise WordsError(f"{item.id} asks about trajectories, which are not played; `calibrant prompts` shows it")


def _example(item: LogicItem) -> str:
    edge = item.task.edges[0]
    return f"{edge.target} <- {'' if edge.sign > 0 else 'not '}{edge.source}"


def _read_clause(item: LogicItem, text: str) -> Clause:
    """Return a clause over the network's edges; `WordsError` lists the edges into its node."""
    shorthand = re.sub(
        r"\bnot\s+", "!", re.sub(r"\s+and\s+", "+", text.strip(), flags=re.IGNORECASE), flags=re.IGNORECASE
    )
    try:
        clause = parse_clause(re.sub(r"\s+", "", shorthand))
    except CalibrantError:
        raise WordsError(f"{short_repr(text)} is no clause; type for example {_example(item)}") from None
    allowed = {edge for edge in item.task.edges if edge.target == clause.target}
    if not set(clause.edges) <= allowed:
        listed = ", ".join(("" if edge.sign > 0 else "not ") + edge.source for edge in sorted(allowed)) or "nothing"
        raise WordsError(
            f"{clause.target} can be switched on by {listed}, in this form; type for example {_example(item)}"
        )
    return clause


def _read_drop(item: LogicItem, position: Position, argument: str) -> Edit:
    text = str(_read_clause(item, argument))
    clauses = list(position.draft.get("model", []))
    if text not in clauses:
        raise WordsError(f"{text} is not written; written are {', '.join(clauses) or 'no clauses'}")
    return Edit({**position.draft, "model": [clause for clause in clauses if clause != text]})


def _read_chance(item: LogicItem, position: Position, argument: str) -> Edit:
    """Read `EXPERIMENT READOUT = PROBABILITY`; without an experiment, set the readout's in all experiments."""
    readouts, num_rows = item.task.setup.readouts, len(item.task.questions)
    if argument.lower() == "nothing":
        return Edit({key: value for key, value in position.draft.items() if key != "probabilities"})
    example = f"chance 1 {readouts[0]} = 0.7"
    match = _CHANCE.fullmatch(argument)
    if match is None:
        raise WordsError(f"expected experiment, readout and probability, found {short_repr(argument)}; type {example}")
    name, probability = match_name(match[2], readouts, "readout"), read_number(match[3], example)
    rows = range(1, num_rows + 1) if match[1] is None else [int(match[1])]
    if not 0 <= probability <= 1 or not all(1 <= row <= num_rows for row in rows):
        raise WordsError(f"experiments are 1 to {num_rows}, probabilities 0 to 1; type for example {example}")
    probabilities = {**position.draft.get("probabilities", {}), **{f"{row}.{name}": probability for row in rows}}
    return Edit({**position.draft, "probabilities": probabilities})


def _read_submit(item: LogicItem, position: Position, argument: str) -> Act:
    return Act({"submit": WORDS.answer(item, position.draft)})


WORDS = LogicWords()


# --- Models consistent with the data of an item, in words -------------------------------------------------------------


def list_remaining(item: LogicItem, steps: Sequence[Step[Any]], limit: int) -> Remaining | None:
    """List the models within the tolerances by ascending misfit, then size; None if there are too many to count."""
    if is_trajectory_item(item):
        return None
    outcome = solve_family(item.task)
    if not isinstance(outcome, Found):
        return None
    family = outcome.value
    try:
        hypotheses = first_entries((Hypothesis(_text(model)) for model in family.models()), limit)
    except LatticeLimitError:
        return None
    return Remaining(("model", "models"), family.count, hypotheses)


def _text(model: Model) -> str:
    return "; ".join(model_texts(model)) or NONE
