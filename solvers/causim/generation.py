"""Items with exact labels: from a seed, by a plan, and by the paper's pipeline, which has limits.

The answer sets of the pipeline are subsets of the complete ones. It serves to measure how much they lack, and to write
query files of the same kind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count, islice, product, zip_longest
from math import prod
from typing import Literal, TypeAlias

from calibrant.dsl.causim import networks
from calibrant.dsl.causim.bundle import bundle_of, module_text
from calibrant.dsl.causim.generated_functions import Draws, Vocabulary
from calibrant.dsl.causim.generation import QuestionOptions, Tally, Version, draw_question, draw_world, grow
from calibrant.dsl.causim.item import CausimItem, Labels, Sealed, Task, load_model
from calibrant.dsl.causim.item import Vocabulary as ItemVocabulary
from calibrant.dsl.causim.model import Model, Symbol, assignment_text, run
from calibrant.dsl.causim.networks import NETWORKS, network
from calibrant.dsl.causim.prompt import ProseStyle, View
from calibrant.dsl.causim.question import FORMS, TYPES, Answer, Question, QuestionType, Scenario, project, scenario_of
from calibrant.solvers.causim.exact import AnswerSet
from calibrant.solvers.outcome import Budget, Found, Outcome, OutOfBudget

# --- Questions about a model with exact labels: sampled until one has the requested scenario --------------------------
Effect: TypeAlias = Literal["any", "some", "all"]
Acceptance: TypeAlias = Callable[[Model, Question], bool]
ATTEMPTS = 10  # questions that are sampled for one seed
SEEDS = 200  # seeds that are tried for one model and type


@dataclass(frozen=True)
class LabelledQuestion:
    """A question with its labels.

    world: the world from which it was sampled
    size: number of answers; trivial: whether `do` covers every required key
    effect: whether something outside `do` changes in all, and in some, fitting worlds; see `AnswerSet.effect`
    copy: whether the evidence, overwritten by `do`, is right; see `AnswerSet.copy`
    """

    question: Question
    seed: int
    world: dict[str, Symbol]
    scenario: Scenario
    size: int
    trivial: bool
    effect: tuple[bool, bool] | None
    copy: bool | None


def sample_question(
    model: Model,
    kind: QuestionType,
    seed: int,
    *,
    key: str = "",
    scenario: Scenario | None = None,
    options: QuestionOptions | None = None,
    effect: Effect = "any",
    accepts: Acceptance | None = None,
) -> Outcome[LabelledQuestion]:
    """Return the first of at most ATTEMPTS sampled questions that has the scenario and the effect, and is accepted.

    key: what else the random stream depends on, such as the program's id
    scenario: None for any; for deterministic questions less noise is open from attempt to attempt, and none at the last
    effect: in which fitting worlds something outside `do` has to change; without `do` every question is accepted
    """
    options = options or QuestionOptions()
    for attempt in range(ATTEMPTS):
        attempt_options = options
        if scenario == "deterministic":
            # `missing` falls linearly to 0 at the last attempt, where the program determines the answer
            attempt_options = _with_missing(options, options.missing * (ATTEMPTS - 1 - attempt) / (ATTEMPTS - 1))
        sampled = draw_question(Draws("question", key, kind, seed, attempt), model, kind, attempt_options)
        members = AnswerSet(model, sampled.question)
        # a tenth of exact.MAX_STATES: a question with very many answers is replaced by another sample, not counted
        size = members.size(Budget(20_000))
        if not isinstance(size, Found) or (scenario is not None and scenario_of(size.value) != scenario):
            continue
        changes = members.effect
        if changes is not None and effect != "any" and not changes[effect == "some"]:
            continue
        if accepts is not None and not accepts(model, sampled.question):
            continue
        label = scenario_of(size.value)
        trivial = sampled.question.is_trivial(model)
        return Found(
            LabelledQuestion(sampled.question, seed, sampled.world, label, size.value, trivial, changes, members.copy)
        )
    return OutOfBudget(f"no such question in {ATTEMPTS} attempts")


def _with_missing(options: QuestionOptions, missing: float) -> QuestionOptions:
    """Return the options with another share of open noise."""
    return QuestionOptions(missing, options.intervened, options.evidence, options.with_noise)


def questions(
    model: Model,
    kind: QuestionType,
    number: int,
    *,
    key: str = "",
    scenario: Scenario | None = None,
    options: QuestionOptions | None = None,
    effect: Effect = "any",
    accepts: Acceptance | None = None,
) -> Iterator[LabelledQuestion]:
    """Yield up to `number` different questions, from seeds 0, 1, ... below SEEDS; fewer if these give no more."""

    def iterate_distinct() -> Iterator[LabelledQuestion]:
        previous: list[Question] = []
        for seed in range(SEEDS):
            labelled = sample_question(
                model, kind, seed, key=key, scenario=scenario, options=options, effect=effect, accepts=accepts
            )
            if isinstance(labelled, Found) and labelled.value.question not in previous:
                previous.append(labelled.value.question)
                yield labelled.value

    return islice(iterate_distinct(), number)


def stored_answers(model: Model, question: Question, limit: int) -> list[Answer]:
    """Return the first `limit` answers of the complete set, or all if there are fewer."""
    return list(islice(AnswerSet(model, question).answers(), limit))


# --- Items with exact labels: questions about programs grown from a seed, without limit, and about built-in models ----
SIZES = (2, 4, 6, 8, 10)  # numbers of nodes of generated programs
NIHSS = "nihss"
NIHSS_SIZES = (4, 5, 6, 7, 8, 9)  # numbers of nodes, from Table 33 of the paper
BUILT_IN = (*NETWORKS, NIHSS)


def items_of_version(
    version: Version,
    scm_id: str,
    *,
    num_questions: int,
    types: Sequence[QuestionType] = TYPES,
    options: QuestionOptions | None = None,
    view: View = "code",
    seed: int | None = None,
) -> Iterator[CausimItem]:
    """Yield up to `num_questions` questions of every type about a version of a program.

    seed: seed of the program; questions depend on it, and their ids contain it
    """
    key, suffix = ("", "") if seed is None else (str(seed), f"-s{seed}")
    source = module_text(version.bundle, comments=False)
    v, topology = version.bundle.v, version.bundle.topology
    for kind in types:
        for question in questions(version.model, kind, num_questions, key=f"{key}/{scm_id}/{v}", options=options):
            name = f"{scm_id}{suffix}-v{v:02d}-{kind}-{question.seed:03d}"
            yield item_of(question, name, source, scm_id=scm_id, version=v, topology=topology, view=view)


def item_of(
    labelled: LabelledQuestion, name: str, source: str, *, scm_id: str, version: int, topology: str, view: View = "code"
) -> CausimItem:
    """Create an item from a labelled question about a program."""
    all_change, some_change = labelled.effect or (None, None)
    return CausimItem(
        name,
        Task(source, labelled.question, labelled.scenario, view),
        Labels(labelled.size, labelled.trivial, all_change, some_change, labelled.copy),
        Sealed(labelled.world),
        scm_id,
        version,
        topology,
    )


def generated_items(
    seed: int,
    topology: str,
    programs: int,
    *,
    nodes: int = 10,
    num_questions: int = 5,
    types: Sequence[QuestionType] = TYPES,
    options: QuestionOptions | None = None,
    vocabulary: Vocabulary = "nonsense",
    view: View = "code",
    tally: Tally | None = None,
) -> Iterator[CausimItem]:
    """Yield questions about every version of each program; a program depends on its number, not on `programs`."""
    for number in range(programs):
        scm_id = f"{topology}-{number:04d}"
        for version in grow(seed, scm_id, topology, nodes, vocabulary=vocabulary, tally=tally):
            yield from items_of_version(
                version, scm_id, num_questions=num_questions, types=types, options=options, view=view, seed=seed
            )


# --- The paper's pipeline: it samples the values of noise, and runs worlds up to a limit ------------------------------


@dataclass(frozen=True)
class Caps:
    """Limits of the pipeline.

    domain_samples: forward samples from which the values of noise are taken; None for the exact supports
    max_combinations: limit on worlds; max_support: limit on answers
    """

    domain_samples: int | None = 2_000
    max_combinations: int = 200_000
    max_support: int = 10_000


@dataclass(frozen=True)
class Stored:
    """Answers that the pipeline stores.

    answers: text -> answer, in the order of the worlds
    exhausted: whether every world of the sampled noise values was run, and every answer stored
    """

    answers: dict[str, Answer]
    exhausted: bool


def sampled_supports(model: Model, samples: int, seed: int) -> dict[str, tuple[Symbol, ...]]:
    """Return noise variable -> its values in sampled worlds, sorted."""
    draws = Draws("domain", seed)
    values_of: dict[str, set[Symbol]] = {noise: set() for noise in model.noises}
    for _ in range(samples):
        for noise, value in draw_world(draws, model).items():
            values_of[noise].add(value)
    return {noise: tuple(sorted(values)) for noise, values in values_of.items()}


def store_answers(model: Model, question: Question, caps: Caps, seed: int = 0) -> Stored:
    """Run the pipeline and return the answers that it stores."""
    supports = {node.noise: node.support for node in model.nodes}
    if caps.domain_samples is not None:
        # 2,000 samples miss a value of probability 0.001 in 0.999**2000 = 13.5 % of cases
        supports = sampled_supports(model, caps.domain_samples, seed)
    fixed = {noise: (value,) for noise, value in question.fixed.items() if value in supports[noise]}
    if len(fixed) < len(question.fixed):
        # a fixed value was not sampled, so no world of the sampled values has it
        return Stored({}, True)
    choices = [fixed.get(noise, supports[noise]) for noise in model.noises]
    answers: dict[str, Answer] = {}
    for values in islice(product(*choices), caps.max_combinations):
        noise = dict(zip(model.noises, values, strict=True))
        factual = run(model, noise, {})
        if any(factual[name] != value for name, value in question.observed.items()):
            continue
        answer = project(question, model, noise, run(model, noise, question.do))
        text = assignment_text(answer)
        if text not in answers and len(answers) == caps.max_support:
            return Stored(answers, False)
        answers[text] = answer
    return Stored(answers, prod(map(len, choices)) <= caps.max_combinations)


# --- Items by a plan: which questions about which versions of a program, and how they are shown -----------------------
MAX_EMPTY = 20  # programs in a row without a question after which a cell gets no more
Cell: TypeAlias = tuple[int, QuestionType]
"""Number of nodes and type of questions."""


@dataclass(frozen=True)
class QuestionPlan:
    """Which questions are asked about a program, and how they are shown.

    per_type: number of questions of every type; style: the style of prose
    scenario, options, effect: see `sample_question`
    caps: limits of the paper's pipeline; only questions whose worlds and answers stay within them are kept, see
        `accepts`; None keeps every question
    """

    per_type: int = 1
    types: tuple[QuestionType, ...] = TYPES
    scenario: Scenario | None = None
    options: QuestionOptions | None = None
    view: View = "code"
    style: ProseStyle = "sentences"
    effect: Effect = "any"
    caps: Caps | None = None

    def accepts(self, model: Model, question: Question) -> bool:
        """Return whether the paper's pipeline stores all answers over the noise values it samples, and at least one."""
        if self.caps is None:
            return True
        stored = store_answers(model, question, self.caps)
        return stored.exhausted and bool(stored.answers)


STANDARD_PLAN = QuestionPlan()  # immutable, so it can be a default argument


@dataclass(frozen=True)
class Program:
    """A version of a program that questions are asked about.

    text: the module without comments; scm_id, version, topology, vocabulary: as in CausimItem
    """

    text: str
    scm_id: str
    version: int
    topology: str = ""
    vocabulary: ItemVocabulary = "nonsense"


def items_about(program: Program, plan: QuestionPlan, *, key: str, name: str) -> Iterator[CausimItem]:
    """Yield the questions of a plan about a program, the types in their order.

    key: what the random stream depends on; name: the beginning of ids
    """
    for kind in plan.types:
        yield from _items_of_kind(program, plan, kind, key=key, name=name)


def _items_of_kind(
    program: Program, plan: QuestionPlan, kind: QuestionType, *, key: str, name: str, is_scenario_named: bool = False
) -> Iterator[CausimItem]:
    model = load_model(program.text)
    for question in questions(
        model,
        kind,
        plan.per_type,
        key=key,
        scenario=plan.scenario,
        options=plan.options,
        effect=plan.effect,
        accepts=None if plan.caps is None else plan.accepts,
    ):
        scenario = f"-{question.scenario}" if is_scenario_named else ""
        item = item_of(
            question,
            f"{name}-{kind}{scenario}-{question.seed:03d}",
            program.text,
            scm_id=program.scm_id,
            version=program.version,
            topology=program.topology,
            view=plan.view,
        )
        yield replace(item, task=replace(item.task, style=plan.style), vocabulary=program.vocabulary)


def program_items(
    seed: int,
    topology: str,
    number: int,
    versions: Sequence[int],
    plan: QuestionPlan,
    vocabulary: Vocabulary,
    tally: Tally | None = None,
) -> Iterator[CausimItem]:
    """Yield the questions about versions of the program with a number; they depend only on the arguments.

    versions: numbers of nodes
    """
    scm_id = program_id(topology, number)
    grown = grow(seed, scm_id, topology, max(versions), vocabulary=vocabulary, tally=tally)
    for v in versions:
        yield from version_items(seed, scm_id, grown[v - 1], plan, vocabulary)


def version_items(
    seed: int, scm_id: str, version: Version, plan: QuestionPlan, vocabulary: Vocabulary
) -> Iterator[CausimItem]:
    """Yield the questions about a version of a generated program."""
    v, topology = version.bundle.v, version.bundle.topology
    program = Program(module_text(version.bundle, comments=False), scm_id, v, topology, vocabulary)
    yield from items_about(program, plan, key=f"{seed}/{scm_id}/{v}", name=f"{scm_id}-s{seed}-v{v:02d}")


def further_items(
    seed: int,
    topology: str,
    numbers: Iterable[int],
    missing: Mapping[Cell, int],
    plan: QuestionPlan,
    vocabulary: Vocabulary,
    tally: Tally | None = None,
) -> Iterator[CausimItem]:
    """Yield questions about the programs with these numbers, in order, until no cell misses any.

    missing: cell -> number of questions that it needs; a program gives at most `plan.per_type` of them
    A cell gets no more questions once MAX_EMPTY programs in a row gave it none.
    """
    remaining = {cell: num_missing for cell, num_missing in missing.items() if num_missing}
    num_empty: Counter[Cell] = Counter()
    for program_number in numbers:
        if not remaining:
            return
        scm_id = program_id(topology, program_number)
        grown = grow(seed, scm_id, topology, max(v for v, _ in remaining), vocabulary=vocabulary, tally=tally)
        for v, kind in list(remaining):
            limit = min(plan.per_type, remaining[v, kind])
            cell_plan = replace(plan, types=(kind,), per_type=limit)
            num_items = 0
            for item in version_items(seed, scm_id, grown[v - 1], cell_plan, vocabulary):
                num_items += 1
                yield item
            remaining[v, kind] -= num_items
            num_empty[v, kind] = 0 if num_items else num_empty[v, kind] + 1
            if not remaining[v, kind] or num_empty[v, kind] == MAX_EMPTY:
                del remaining[v, kind]


def program_id(topology: str, number: int) -> str:
    """Return the id of a generated program."""
    return f"{topology}-{number:04d}"


def heldout_numbers(seed: int, topology: str, programs: int, heldout: int) -> frozenset[int]:
    """Return the numbers of `heldout` programs, drawn from those below `programs`."""
    return frozenset(Draws("heldout", seed, topology).sample(range(programs), heldout))


def items_of_turn(
    seed: int,
    topology: str,
    number: int,
    versions: Sequence[int] = (),
    plan: QuestionPlan = STANDARD_PLAN,
    vocabulary: Vocabulary = "nonsense",
) -> Iterator[CausimItem]:
    """Yield the questions of the plan about one version of the program with a number.

    versions: numbers of nodes, by default SIZES; successive programs take them in turns
    """
    version = (versions or SIZES)[number % len(versions or SIZES)]
    return program_items(seed, topology, number, (version,), plan, vocabulary)


def sampled_items(seed: int, topology: str) -> Iterator[CausimItem]:
    """Yield items without end: one question of each type about each program; numbers of nodes take turns."""
    return chain.from_iterable(items_of_turn(seed, topology, number) for number in count())


def built_in_items(
    seed: int, name: str, versions: Sequence[int] = (), plan: QuestionPlan | None = None
) -> Iterator[CausimItem]:
    """Yield different questions about a built-in model, the types in turns, as many as SEEDS seeds give.

    Questions without evidence have one answer and several answers in turns, unless the plan has a scenario; for other
    types the evidence decides.
    name: one of BUILT_IN, which is also the topology; versions: numbers of nodes of NIHSS, by default NIHSS_SIZES
    """
    plan = plan or QuestionPlan()
    if name == NIHSS:
        texts = [networks.program(v) for v in versions or NIHSS_SIZES]
    else:
        texts = [module_text(bundle_of(network(name)), comments=False)]
    # types take turns, so that the first items cover all types; a type without further questions drops out
    sequences = []
    for text, (kind, scenario) in product(texts, _kinds(plan)):
        v = len(load_model(text))
        program = Program(text, name, v, name)
        of_kind = replace(plan, scenario=scenario, per_type=SEEDS)
        key, prefix = f"{seed}/{name}/{v}", f"{name}-s{seed}-v{v:02d}"
        # the scenario is in the id, as a seed may give a question of each scenario
        sequences.append(_items_of_kind(program, of_kind, kind, key=key, name=prefix, is_scenario_named=True))
    for turn in zip_longest(*sequences):
        yield from (item for item in turn if item is not None)


def _kinds(plan: QuestionPlan) -> Iterator[tuple[QuestionType, Scenario | None]]:
    """Yield each type of a plan with each scenario to sample; None leaves it open, as evidence then decides."""
    for kind in plan.types:
        if plan.scenario is not None or FORMS[kind].has_evidence:
            yield kind, plan.scenario
        else:
            yield from ((kind, "deterministic"), (kind, "stochastic"))
