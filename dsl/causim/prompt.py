"""The prompt of a question: the model as a program or in sentences, the rules, the givens, the task."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from calibrant.dsl.causim.model import Model, assignment_text, compact
from calibrant.dsl.causim.prose import prose, uniform_prose
from calibrant.dsl.causim.question import Question, Scenario

View: TypeAlias = Literal["code", "prose"]
ProseStyle: TypeAlias = Literal["sentences", "rules"]

_RULES: Final = """\
How the system works:
- Each noise variable (its name starts with U_) is drawn once for a world, on its own, and keeps that value.
- Each variable is then computed by its equation, from its parents and its noise.
- Setting a variable by do(...) replaces its equation by the given value; everything else stays as it is.
- Noise is never drawn again: the same world has the same noise before and after do(...).
- Noise that is not given may be any value that its sampler can produce."""

_SCENARIOS: Final[dict[Scenario, str]] = {
    "deterministic": "Exactly one answer is right.",
    "stochastic": "Several answers are right; give any one of them.",
    "impossible": "Any answer that agrees with what is given is right.",
}


def prompt(
    model: Model,
    question: Question,
    scenario: Scenario,
    *,
    source: str,
    view: View = "code",
    style: ProseStyle = "sentences",
) -> str:
    """Return the text of a question. `source` is the program without comments; in prose it is not shown."""
    keys = list(question.required_keys(model))
    parts = [
        *facts(model, question, scenario, source=source, view=view, style=style),
        f'Required keys: {compact(keys)}. Values keep their JSON type: true, 1, 1.0 and "1" are different.\n'
        "You may reason first. The last thing in your reply is one JSON object with exactly these keys.",
    ]
    return "\n\n".join(parts) + "\n"


def facts(
    model: Model,
    question: Question,
    scenario: Scenario,
    *,
    source: str,
    view: View = "code",
    style: ProseStyle = "sentences",
) -> tuple[str, ...]:
    """Return the parts of a question's text before the form of replies: model, rules, type, givens, task."""
    if view == "code":
        shown_model = f"```python\n{source.rstrip()}\n```"
    else:
        shown_model = (prose(model) if style == "sentences" else uniform_prose(model)).rstrip()
    givens = [
        ("Given noise", assignment_text(question.fixed)),
        ("Unknown noise", compact(list(question.unknown))),
    ]
    if question.form.has_do:
        givens.append(("Intervention do", assignment_text(question.do)))
    if question.form.has_evidence:
        givens.append(("Observed before any intervention", assignment_text(question.observed)))
    task = question.form.task
    if question.with_noise:
        task += " Give the unknown noise of that world too."
    return (
        "A system of variables is described below.",
        shown_model,
        _RULES,
        f"Question type: {question.type}. {_SCENARIOS[scenario]}",
        "\n".join(f"{name}: {text}" for name, text in givens),
        task,
    )
