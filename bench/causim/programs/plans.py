"""Options of questions about programs, read into a plan."""

from __future__ import annotations

from calibrant.bench.causim.options import QuestionOptions as StatedOptions
from calibrant.bench.pools.item_options import refused_plan
from calibrant.dsl.causim.generation import QuestionOptions
from calibrant.dsl.causim.question import FORMS, TYPES, QuestionType
from calibrant.dsl.errors import short_repr
from calibrant.solvers.causim.generation import Caps, QuestionPlan

MAX_NODES = 20
ALL_VERSIONS = tuple(range(1, 11))  # of the paper


def versions_of(text: str | None) -> tuple[int, ...]:
    """Read `1-10` or `1,3,5`, ascending; none without a text. `OptionError` for what is no version."""
    if text is None:
        return ()
    numbers: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        numbers |= set(range(int(first), int(last or first) + 1)) or {0}
    if not min(numbers) >= 1 or max(numbers) > MAX_NODES:
        raise refused_plan(ValueError(f"versions={text}: ascending numbers from 1 to {MAX_NODES} are expected"))
    return tuple(sorted(numbers))


def question_plan(options: StatedOptions) -> QuestionPlan:
    """Return the plan of questions; `OptionError` for options that do not go together."""
    types: list[QuestionType] = []
    for kind in (options.types or ",".join(TYPES)).split(","):
        if kind not in TYPES:
            raise refused_plan(ValueError(f"unknown type {short_repr(kind)}; known: {', '.join(TYPES)}"))
        if kind not in types:
            types.append(kind)
    if options.prose is not None and options.view != "prose":
        raise refused_plan(ValueError("prose is the style of view=prose; give both"))
    forms = [FORMS[kind] for kind in types]
    needs = {
        "effect": (options.effect, any(form.has_do for form in forms)),
        "intervened": (options.intervened, any(form.has_do for form in forms)),
        "missing": (options.missing, not all(form.has_evidence for form in forms)),
        "evidence": (options.evidence, any(form.evidence == "chosen" for form in forms)),
        "with_noise": (options.with_noise, any(form.may_ask_noise for form in forms)),
    }
    for name, (value, is_used) in needs.items():
        if value is not None and not is_used:
            raise refused_plan(ValueError(f"{name} has no effect on questions of type {', '.join(types)}"))
    default = QuestionOptions()
    sampling = QuestionOptions(
        default.missing if options.missing is None else options.missing,
        default.intervened if options.intervened is None else options.intervened,
        options.evidence or default.evidence,
        bool(options.with_noise),
    )
    return QuestionPlan(
        options.per_type or 1,
        tuple(types),
        options.scenario,
        sampling,
        options.view or "code",
        options.prose or "sentences",
        options.effect or "any",
        _caps(options),
    )


def _caps(options: StatedOptions) -> Caps | None:
    if options.domain_samples is options.max_combinations is options.max_support is None:
        return None
    usual = Caps()
    return Caps(
        options.domain_samples,
        options.max_combinations or usual.max_combinations,
        options.max_support or usual.max_support,
    )
