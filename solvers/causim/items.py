"""Items with exact labels: questions about programs grown from a seed, without limit, and about built-in models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

from calibrant.dsl.causim.bundle import module_text
from calibrant.dsl.causim.generated_functions import Vocabulary
from calibrant.dsl.causim.generation import QuestionOptions, Tally, Version, grow
from calibrant.dsl.causim.item import CausimItem, Labels, Sealed, Task
from calibrant.dsl.causim.networks import NETWORKS
from calibrant.dsl.causim.prompt import View
from calibrant.dsl.causim.question import TYPES, QuestionType
from calibrant.solvers.causim.question_sampling import LabelledQuestion, questions

SIZES = (2, 4, 6, 8, 10)
NIHSS = "nihss"
NIHSS_SIZES = (4, 5, 6, 7, 8, 9)  # of Table 33
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
    """Yield up to `num_questions` questions of every type about one version.

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
    """Yield questions about every version of the programs; each program depends on the seed and its number alone."""
    for number in range(programs):
        scm_id = f"{topology}-{number:04d}"
        for version in grow(seed, scm_id, topology, nodes, vocabulary=vocabulary, tally=tally):
            yield from items_of_version(
                version, scm_id, num_questions=num_questions, types=types, options=options, view=view, seed=seed
            )


def sampled_items(seed: int, topology: str) -> Iterator[CausimItem]:
    """Yield items without end: programs of SIZES nodes in turns, a question of each type about each program."""
    for number in count():
        nodes, scm_id = SIZES[number % len(SIZES)], f"{topology}-{number:04d}"
        yield from items_of_version(grow(seed, scm_id, topology, nodes)[-1], scm_id, num_questions=1, seed=seed)
