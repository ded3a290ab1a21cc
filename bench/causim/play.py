"""Play of CauSim: typed moves, and the answers that are consistent with the evidence."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from calibrant.bench.core.typed_moves import Act, Draft, Edit, Position, Reader, Verb, Words, WordsError, match_name
from calibrant.bench.report.capabilities import Hypothesis, Remaining, first_entries
from calibrant.dsl.causim.item import CausimItem
from calibrant.dsl.causim.model import ModelError, Symbol, plain, shown_value, symbol, value_of
from calibrant.dsl.causim.score import answer_of, odd_value_message
from calibrant.dsl.episode import Step
from calibrant.dsl.errors import short_repr
from calibrant.solvers.causim.space import WorldSpace
from calibrant.solvers.outcome import BudgetSpent

# --- Typed moves of a question about a program: Fisi = COD, submit ----------------------------------------------------
MAX_CHOICES = 200  # values of a variable that a page lists


class CausimWords(Words[CausimItem]):
    """Implements Words (bench.core.typed_moves).

    A draft maps keys to JSON values; `answer` adds the variables that `do` sets.
    """

    kind = ("program", "programs")

    def opening(self, item: CausimItem) -> str:
        keys = ", ".join(required_keys(item))
        return "\n\n".join([*_plain_facts(item), f"Give a value for each of {keys}."])

    def verbs(self, item: CausimItem) -> Sequence[Verb]:
        keys = [key for key in required_keys(item) if key not in item.task.question.do] or required_keys(item)
        example = _example(item, keys[0]) if keys else "X = 1"
        return (
            Verb(example, "write a value down; `values` lists those that there are"),
            Verb(f"values {keys[0]}" if keys else "values X", "list the values that a variable can have"),
            Verb("submit", "send the values that are written; it ends the item"),
        )

    def readers(self, item: CausimItem) -> Mapping[str, Reader]:
        return {"submit": _read_submit, "values": _read_values}

    def read_form(self, item: CausimItem, position: Position, line: str) -> Act | Edit | None:
        name, sign, text = line.partition("=")
        if not sign:
            return None
        key = match_name(name.strip(), required_keys(item), "variable that is asked for")
        return Edit({**position.draft, key: _read_value(item, key, text.strip())})

    def read_json(self, item: CausimItem, line: str) -> Act:
        """Return the answer in a line of JSON: {"submit": {...}}, or its object of values alone."""
        act = super().read_json(item, line)
        return act if act.action.keys() == {"submit"} else Act({"submit": dict(act.action)})

    def answer(self, item: CausimItem, draft: Draft) -> dict[str, Any]:
        values = {**plain(item.task.question.do), **draft}
        missing = [key for key in required_keys(item) if key not in values]
        if missing:
            message = f"no value for {', '.join(missing)}; type for example {_example(item, missing[0])}"
            raise WordsError(message, page=f"choose a value for {', '.join(missing)} first")
        return {key: values[key] for key in required_keys(item)}

    def check_answer(self, item: CausimItem, answer: Mapping[str, Any]) -> None:
        keys = required_keys(item)
        values = answer_of(answer, keys)
        if values is None:
            raise WordsError(f"the answer has exactly the keys {', '.join(keys)}")
        if problem := odd_value_message(values):
            raise WordsError(problem)

    def draft_lines(self, item: CausimItem, draft: Draft) -> Sequence[str]:
        return [f"{key} = {_plain_value(value)}" for key, value in draft.items()]

    def check_draft(self, item: CausimItem, draft: object) -> Draft:
        keys = required_keys(item)
        if not isinstance(draft, Mapping) or not draft.keys() <= set(keys):
            raise WordsError(f"a draft has keys among {', '.join(keys)}")
        try:
            return {key: json.loads(symbol(value_of(json.dumps(draft[key])))) for key in keys if key in draft}
        except (ModelError, ValueError) as error:
            raise WordsError(str(error)) from None

    def view(self, item: CausimItem) -> dict[str, Any]:
        task = item.task
        introduction, shown_model, *rest = _plain_facts(item)
        fields = []
        for key in required_keys(item):
            choices = _choices(item, key)
            listed = [{"text": text, "value": json.loads(value)} for text, value in choices.items()]
            field: dict[str, Any] = {"name": key, "choices": listed if len(listed) <= MAX_CHOICES else []}
            if key in task.question.do:
                field["given"] = json.loads(task.question.do[key])
            fields.append(field)
        return {
            "view": "program",
            "introduction": introduction,
            "model": shown_model.removeprefix("```python\n").removesuffix("\n```"),
            "is_code": task.view == "code",
            "parts": rest,
            "fields": fields,
        }


def _plain_facts(item: CausimItem) -> list[str]:
    """Return the paragraphs of a question; assignments are written `U_Ruba = qua`, not as JSON, but in the program."""
    introduction, shown_model, *rest = item.task.facts
    return [introduction, shown_model, *("\n".join(map(_plain_line, part.splitlines())) for part in rest)]


def _plain_line(line: str) -> str:
    name, sign, text = line.partition(": ")
    if not sign or text[:1] not in ("{", "["):
        return line
    try:
        parsed = json.loads(text)
    except ValueError:
        return line
    pairs = [f"{key} = {_plain_value(value)}" for key, value in parsed.items()] if isinstance(parsed, dict) else parsed
    return f"{name}: {', '.join(pairs) or 'none'}" if all(isinstance(pair, str) for pair in pairs) else line


def _plain_value(value: Any) -> str:
    """Return a value as text; a string is quoted only if it would otherwise be read as JSON, such as 1 or true."""
    if isinstance(value, str):
        try:
            json.loads(value)
        except ValueError:
            return value
    return json.dumps(value)


def required_keys(item: CausimItem) -> tuple[str, ...]:
    """Return the keys of an answer."""
    return item.task.question.required_keys(item.task.model)


def _choices(item: CausimItem, key: str) -> dict[str, Symbol]:
    """Return the values that a key can have, by their shown texts; an ambiguous text is replaced by its JSON."""
    model = item.task.model
    try:
        if key in model.of_noise:
            domain: Sequence[Symbol] = model.nodes[model.of_noise[key]].support
        else:
            domain = model.under(item.task.question.do)[model.position[key]].domain
    except ModelError:
        return {}
    texts = [shown_value(value) for value in domain]
    return {text if texts.count(text) == 1 else value: value for text, value in zip(texts, domain, strict=True)}


def _read_value(item: CausimItem, key: str, text: str) -> Any:
    choices = _choices(item, key)
    unquoted = text.strip("'\"")
    value = choices.get(text) or choices.get(unquoted)
    if value is None:
        matches = [value for name, value in choices.items() if name.casefold() == unquoted.casefold()]
        value = matches[0] if len(matches) == 1 else None
    if value is not None:
        return json.loads(value)
    if choices:
        raise WordsError(f"{key} has no value {short_repr(text)}; it has {_values_text(choices)}")
    try:
        return json.loads(symbol(json.loads(text)))
    except (ValueError, ModelError):
        return text


def _values_text(choices: Mapping[str, Symbol]) -> str:
    names = list(choices)
    return ", ".join(names[:MAX_CHOICES]) + (", ..." if len(names) > MAX_CHOICES else "")


def _example(item: CausimItem, key: str) -> str:
    return f"{key} = {next(iter(_choices(item, key)), '1')}"


def _read_values(item: CausimItem, position: Position, rest: str) -> Act | Edit:
    """Raise `WordsError` with the list of values as its message; `values` is no move."""
    keys = required_keys(item) if not rest else (match_name(rest, required_keys(item), "variable that is asked for"),)
    raise WordsError("\n".join(f"{key}: {_values_text(_choices(item, key)) or 'any value'}" for key in keys))


def _read_submit(item: CausimItem, position: Position, rest: str) -> Act:
    return Act({"submit": WORDS.answer(item, position.draft)})


WORDS = CausimWords()


# --- Answers consistent with the evidence of a question, in words -----------------------------------------------------
BY_ANSWER = "by the answer that they give"


def list_remaining(item: CausimItem, steps: Sequence[Step[Any]], limit: int) -> Remaining | None:
    """List the answers of the worlds consistent with the evidence, each with its number of worlds; None over budget."""
    space = WorldSpace(item.task.model, item.task.question)
    try:
        hypotheses = first_entries(_answers(item, space), limit)
    except BudgetSpent:
        return None
    return Remaining(("world", "worlds"), space.count, hypotheses, BY_ANSWER)


def _answers(item: CausimItem, space: WorldSpace) -> Iterator[Hypothesis]:
    fixed = item.task.question.do
    keys = [key for key in required_keys(item) if key not in fixed] or list(required_keys(item))
    for answer, num_worlds in space.answers():
        yield Hypothesis(", ".join(f"{key} = {shown_value(answer[key])}" for key in keys), num_worlds)
