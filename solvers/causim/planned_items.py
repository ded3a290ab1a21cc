"""Items by a plan: which questions about which versions of a program, and how they are shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, product, zip_longest
from typing import TypeAlias

from calibrant.dsl.causim import networks
from calibrant.dsl.causim.bundle import bundle_of, module_text
from calibrant.dsl.causim.generated_functions import Draws
from calibrant.dsl.causim.generated_functions import Vocabulary as GeneratedVocabulary
from calibrant.dsl.causim.generation import QuestionOptions, Tally, Version, grow
from calibrant.dsl.causim.item import CausimItem, Vocabulary, load_model
from calibrant.dsl.causim.model import Model, ModelError
from calibrant.dsl.causim.networks import network
from calibrant.dsl.causim.prompt import ProseStyle, View
from calibrant.dsl.causim.question import FORMS, TYPES, Question, QuestionType, Scenario
from calibrant.solvers.causim.items import NIHSS, NIHSS_SIZES, SIZES, item_of
from calibrant.solvers.causim.pipeline import Caps, store_answers
from calibrant.solvers.causim.question_sampling import SEEDS, Effect, questions

MAX_EMPTY = 20
Cell: TypeAlias = tuple[int, QuestionType]
"""Number of nodes and type of questions."""


@dataclass(frozen=True)
class QuestionPlan:
    """Questions about a program, and how they are shown.

    per_type: number of questions of every type; style: of the prose
    effect: as of `question_sampling.sample_question`
    caps: of the paper's pipeline, which then has to give all that it stores; None keeps every question
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
        """Return whether the paper's pipeline would store all that it knows of the answers."""
        if self.caps is None:
            return True
        stored = store_answers(model, question, self.caps)
        return stored.exhausted and bool(stored.answers)


@dataclass(frozen=True)
class Program:
    """A version of a program, ready to be asked about.

    text: the module without comments; scm_id, version, topology, vocabulary: as of CausimItem
    """

    text: str
    scm_id: str
    version: int
    topology: str = ""
    vocabulary: Vocabulary = "nonsense"


def items_about(program: Program, plan: QuestionPlan, *, key: str, name: str) -> Iterator[CausimItem]:
    """Yield the questions of a plan about a program, the types in their order.

    key: of the random stream; name: how ids begin
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
    vocabulary: GeneratedVocabulary,
    tally: Tally | None = None,
) -> Iterator[CausimItem]:
    """Yield the questions about versions of the program of that number; they depend on the arguments alone."""
    scm_id = program_id(topology, number)
    grown = grow(seed, scm_id, topology, max(versions), vocabulary=vocabulary, tally=tally)
    for v in versions:
        yield from version_items(seed, scm_id, grown[v - 1], plan, vocabulary)


def version_items(
    seed: int, scm_id: str, version: Version, plan: QuestionPlan, vocabulary: GeneratedVocabulary
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
    vocabulary: GeneratedVocabulary,
    tally: Tally | None = None,
) -> Iterator[CausimItem]:
    """Yield questions about the programs of these numbers, in order, until each cell has its number.

    missing: questions that a cell needs, of which a program gives at most `plan.per_type`. A cell of which MAX_EMPTY
    programs in a row have no question gets no more.
    """
    remaining = {cell: number for cell, number in missing.items() if number}
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
    """Draw the numbers of the programs that are held out."""
    return frozenset(Draws("heldout", seed, topology).sample(range(programs), heldout))


def items_in_turns(
    seed: int, topology: str, versions: Sequence[int], plan: QuestionPlan, vocabulary: GeneratedVocabulary
) -> Iterator[CausimItem]:
    """Yield items without end: a program of each number of nodes in turns, the questions of the plan about each.

    `ModelError` after MAX_EMPTY programs in a row without any such question.
    """
    num_empty = 0
    for number in count():
        version = (versions or SIZES)[number % len(versions or SIZES)]
        num_empty += 1
        for item in program_items(seed, topology, number, (version,), plan, vocabulary):
            num_empty = 0
            yield item
        if num_empty == MAX_EMPTY:
            raise ModelError(f"{topology}: no question of this kind about {MAX_EMPTY} programs in a row")


def built_in_items(
    seed: int, name: str, versions: Sequence[int] = (), plan: QuestionPlan | None = None
) -> Iterator[CausimItem]:
    """Yield different questions about a built-in model, of each type in turns, as many as the model has.

    Deductions and interventions have one answer and several in turns, unless the plan has a scenario; for other types
    the evidence decides.
    name: one of BUILT_IN, which is also the topology; versions: of NIHSS, by default 3 to 8 items and their total
    """
    plan = plan or QuestionPlan()
    if name == NIHSS:
        texts = [networks.program(v) for v in versions or NIHSS_SIZES]
    else:
        texts = [module_text(bundle_of(network(name)), comments=False)]
    # one of each kind in turns: a short pool covers all types, and exhausted kinds drop out
    sequences = []
    for text, (kind, scenario) in product(texts, _kinds(plan)):
        v = len(load_model(text))
        program = Program(text, name, v, name)
        of_kind = replace(plan, scenario=scenario, per_type=SEEDS)
        key, prefix = f"{seed}/{name}/{v}", f"{name}-s{seed}-v{v:02d}"
        # one seed has a question of each scenario
        sequences.append(_items_of_kind(program, of_kind, kind, key=key, name=prefix, is_scenario_named=True))
    for turn in zip_longest(*sequences):
        yield from (item for item in turn if item is not None)


def _kinds(plan: QuestionPlan) -> Iterator[tuple[QuestionType, Scenario | None]]:
    """Yield types with the scenario that is sampled; where there is evidence, it decides."""
    for kind in plan.types:
        if plan.scenario is not None or FORMS[kind].has_evidence:
            yield kind, plan.scenario
        else:
            yield from ((kind, "deterministic"), (kind, "stochastic"))
