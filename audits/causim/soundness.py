"""Whether a causal question is what its record says, and has an answer."""

from __future__ import annotations

import msgspec

from audits.soundness import Soundness
from dsl.causim.item import CausimItem
from dsl.causim.question import scenario_of
from solvers.causim.answers import AnswerSet
from solvers.causim.space import WorldSpace
from solvers.outcome import Found


def world_fits(item: CausimItem) -> str | None:
    """The world that the question was drawn from agrees with all that it gives."""
    if not item.sealed.world:
        return None
    fits = WorldSpace(item.task.model, item.task.question).fits(item.sealed.world)
    return "" if fits else "the fixed noise or the evidence is of another world"


def labels_hold(item: CausimItem) -> str | None:
    """Size and flags from the answer set; the size only where all answers are counted."""
    labels, members = item.labels, AnswerSet(item.task.model, item.task.question)
    size, effect = members.size(), members.effect or (None, None)
    stated = [labels.size, labels.trivial, labels.effect_all, labels.effect_some, labels.copy]
    counted = size.value if isinstance(size, Found) else labels.size
    found = [counted, item.task.question.is_trivial(item.task.model), *effect, members.copy]
    names = ("size", "trivial", "effect_all", "effect_some", "copy")
    wrong = [(name, s, f) for name, s, f in zip(names, stated, found, strict=True) if s is not None and s != f]
    return "; ".join(f"{name} {said}, found {true}" for name, said, true in wrong)


def scenario_holds(item: CausimItem) -> str | None:
    """Deterministic, stochastic or impossible, by the number of answers."""
    size = AnswerSet(item.task.model, item.task.question).size()
    if not isinstance(size, Found):
        return None
    found = scenario_of(size.value)
    return "" if found == item.task.scenario else f"said to be {item.task.scenario}, with {size.value} answers {found}"


def undecided(item: CausimItem) -> str | None:
    """No answer is right, or none could be counted; any member counts, so several are no obstacle."""
    size = AnswerSet(item.task.model, item.task.question).size()
    if not isinstance(size, Found):
        return "its answers could not all be counted"
    return "" if size.value else "no answer is right"


def same(item: CausimItem) -> bytes | None:
    """Program, question and what is said of it."""
    return msgspec.json.encode((item.task.source, item.task.question, item.task.scenario, item.task.view))


SOUNDNESS = Soundness(
    {
        "the sealed world fits the question": world_fits,
        "stated labels are those of the question": labels_hold,
        "the scenario is that of its answers": scenario_holds,
    },
    undecided,
    same,
)
