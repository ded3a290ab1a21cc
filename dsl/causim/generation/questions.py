"""Questions drawn about a model: a world from a seed, which noise is missing, what is set, what is seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from calibrant.dsl.causim.generation.draws import Draws
from calibrant.dsl.causim.model import Model, run
from calibrant.dsl.causim.question import FORMS, Question, QuestionType
from calibrant.dsl.causim.values import Symbol

Evidence: TypeAlias = Literal["full", "minimal"]


@dataclass(frozen=True)
class QuestionOptions:
    """Options of drawing a question.

    missing: share of the noise that a deduction or intervention leaves open
    intervened: share of the nodes that `do` sets; at least one is set
    evidence: of counterfactuals: all nodes seen and all noise missing, or one noise missing and its node and the
        children of that node seen
    with_noise: counterfactuals ask for the missing noise too
    """

    missing: float = 0.5
    intervened: float = 0.3
    evidence: Evidence = "full"
    with_noise: bool = False


@dataclass(frozen=True)
class Drawn:
    """A question and the world that it was drawn from, which fits it."""

    question: Question
    world: dict[str, Symbol]


def draw_world(draws: Draws, model: Model) -> dict[str, Symbol]:
    """Draw a world, each noise variable with its probabilities."""
    world = {}
    for node in model.nodes:
        point, total = draws.below(1 << 40), 0
        for value, weight in zip(node.support, node.weights, strict=True):
            total += int(weight * (1 << 40))
            world[node.noise] = value
            if point < total:
                break
    return world


def draw_question(draws: Draws, model: Model, kind: QuestionType, options: QuestionOptions) -> Drawn:
    """Values in `do` differ from those of the drawn world where a node has another value."""
    world = draw_world(draws, model)
    factual = run(model, world, {})
    form = FORMS[kind]
    do = _interventions(draws, model, factual, options) if form.has_do else {}
    if not form.has_evidence:
        unknown = [noise for noise in model.noises if draws.chance(options.missing)]
        if not unknown and options.missing:
            unknown = [draws.choice(model.noises)]
        observed: dict[str, Symbol] = {}
    elif form.evidence == "chosen" and options.evidence == "minimal":
        i = draws.below(len(model))
        unknown = [model.noises[i]]
        observed = {model.names[k]: factual[model.names[k]] for k in sorted((i, *model.children[i]))}
    else:
        unknown, observed = list(model.noises), factual
    fixed = {noise: value for noise, value in world.items() if noise not in unknown}
    with_noise = options.with_noise and form.may_ask_noise
    return Drawn(Question(kind, fixed, tuple(sorted(unknown)), do, observed, with_noise), world)


def _interventions(
    draws: Draws, model: Model, factual: dict[str, Symbol], options: QuestionOptions
) -> dict[str, Symbol]:
    chosen = [i for i in range(len(model)) if draws.chance(options.intervened)] or [draws.below(len(model))]
    do = {}
    for i in chosen:
        name, domain = model.names[i], model.system[i].domain
        do[name] = draws.choice([value for value in domain if value != factual[name]] or list(domain))
    return do
