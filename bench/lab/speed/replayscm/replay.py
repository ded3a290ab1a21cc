"""Replay of one candidate and of 10,000 candidates, per setting, on the problem of median formula size.

Targets for a batch: 2,000 times the published scorer, and the speed of the C loop on the same words. The
published rate includes parsing and legality, which a batch of compiled programs does not. Two ways from formulas to
counts are compared with each other besides: from their texts in compiled code, from parsed formulas node by node.
"""

from __future__ import annotations

from collections.abc import Iterator

from calibrant.bench.lab.speed.comparison import Comparison, Options, Rival, Row, by_setting, measure
from calibrant.bench.lab.speed.replayscm import candidates
from calibrant.bench.lab.speed.replayscm.c_loop import CLoop, NoCompilerError, compiled_loop
from calibrant.bench.lab.speed.replayscm.candidates import random_candidates, typical
from calibrant.bench.lab.speed.replayscm.rowwise import RowwisePanels
from calibrant.dsl.formulas.text import render
from calibrant.dsl.replayscm.evaluator import Candidate, compile_formulas, compile_texts
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.reference import replay_world
from calibrant.dsl.replayscm.replay import replay_splits
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.world import Panel, pack_panels

TOPIC = "replay"
BATCH = 10_000
TIMES_PUBLISHED = 2_000
OF_C_LOOP = 1.0
OF_FORMULAS = 4.0  # from texts, with all checks of the parser, over from formulas that are parsed
SEED = 2
SAMPLE = 50  # of a batch; slow rivals need not do all of it


def rows(options: Options) -> Iterator[Row]:
    try:
        with compiled_loop() as c_loop:
            yield from _rows(options, c_loop)
    except NoCompilerError as error:
        yield Row(TOPIC, "all cases", "C loop", note=f"left out: {error}")
        yield from _rows(options, None)


def _rows(options: Options, c_loop: CLoop | None) -> Iterator[Row]:
    for setting, problems in by_setting(options.problems).items():
        case = Case(setting, typical(problems), max(20, round(BATCH * options.scale)))
        yield from measure(case.as_single(), options.discipline)
        yield from measure(case.many(c_loop), options.discipline)
        yield from measure(case.from_formulas(), options.discipline)


class Case:
    """One problem, random candidates for it, and what the rivals need prepared."""

    def __init__(self, setting: str, problem: Problem, batch: int) -> None:
        self.setting = setting
        self.problem = problem
        self.panels = (problem.task.training, problem.sealed.heldout)
        self.whole = Panel(problem.task.variables, problem.worlds)
        self.candidates = random_candidates(problem, batch, SEED)
        self.packed = pack_panels(self.panels)
        self.rowwise = RowwisePanels(self.panels)
        self.programs = compile_formulas(self.candidates, problem.task.variables)

    def as_single(self) -> Comparison:
        """Ways to replay a single candidate; a kernel call has its overhead for itself."""
        candidate = self.candidates[0]
        program = compile_formulas([candidate], self.problem.task.variables)
        rivals = [
            Rival("packed ints", lambda: self.packed_ints(candidate)),
            Rival("kernel, compiled before", lambda: program.compare(self.packed)),
            Rival("kernel", lambda: self.kernel([candidate])),
            Rival("NumPy, a byte a row", lambda: self.rowwise.replay(candidate)),
            Rival("reference", lambda: self.reference(candidate)),
        ]
        counts = {"rows": self.whole.num_rows, "instructions": len(program.code)}
        return Comparison(TOPIC, f"{self.setting}, one candidate", "candidate", rivals, counts=counts)

    def many(self, c_loop: CLoop | None) -> Comparison:
        """Ways to replay the batch; items are candidates, so that slow rivals may do a sample."""
        batch = len(self.candidates)
        sample = self.candidates[:SAMPLE]
        rivals = [
            Rival(
                "kernel, compiled before",
                lambda: self.programs.compare(self.packed),
                batch,
                least_times_published=TIMES_PUBLISHED,
            ),
            Rival("kernel", lambda: self.kernel(self.candidates), batch),
            Rival("packed ints", lambda: list(map(self.packed_ints, sample)), len(sample)),
            Rival("NumPy, a byte a row", lambda: list(map(self.rowwise.replay, sample)), len(sample)),
            Rival("reference", lambda: list(map(self.reference, sample)), len(sample)),
        ]
        if c_loop:
            run = c_loop.replay
            rivals.insert(1, Rival("C loop", lambda: run(self.programs, self.packed), batch, least_ratio=OF_C_LOOP))
        counts = {
            "rows": self.whole.num_rows,
            "words": self.packed.observed.shape[1],
            "instructions": len(self.programs.code),
        }
        case = f"{self.setting}, {batch:,} candidates"
        return Comparison(TOPIC, case, "candidate", rivals, candidates.submissions(self.setting), counts)

    def from_formulas(self) -> Comparison:
        """From the formulas of the batch to its counts."""
        batch, order = len(self.candidates), self.candidates[0].order
        disclosure = self.problem.task.disclosure
        parents = {variable: disclosure.admissible_parents(variable) for variable in order}
        texts = [render(candidate.mechanisms[variable]) for candidate in self.candidates for variable in order]
        arguments = self.problem.task.variables, order, self.problem.task.grammar, parents
        rivals = [
            Rival("kernels, from texts", lambda: compile_texts(texts, *arguments).compare(self.packed), batch),
            Rival("from parsed formulas", lambda: self.kernel(self.candidates), batch, least_ratio=OF_FORMULAS),
        ]
        counts = {"mechanisms": len(texts), "characters": sum(map(len, texts))}
        return Comparison(TOPIC, f"{self.setting}, programs from formulas", "candidate", rivals, counts=counts)

    def kernel(self, candidates: list[Candidate]) -> object:
        return compile_formulas(candidates, self.problem.task.variables).compare(self.packed)

    def packed_ints(self, candidate: Candidate) -> object:
        return replay_splits(candidate, self.whole, *self.panels)

    def reference(self, candidate: Candidate) -> object:
        model = Scm(self.problem.sealed.gold.roots if self.problem.sealed.gold else (), candidate.mechanisms)
        return [list(replay_world(model, world, candidate.order)) for world in self.problem.worlds]
