"""Replay of one and of 10,000 candidates beside NumPy and a loop in C; parsing of gold mechanisms.

Taken with the released code on 2 vCPU of an AMD EPYC (family 25, model 17) under KVM, CPython 3.12.1, one process,
medians of 5 to 7 runs; the n6 row spread by about 30 % between runs. It was another machine than yours: a ratio to
these numbers compares machines too, unlike the ratios to rivals, which are measured side by side.

Targets for a batch: 2,000 times the published scorer, and the speed of the C loop on the same words. The
published rate includes parsing and legality, which a batch of compiled programs does not. Two ways from formulas to
counts are compared with each other besides: from their texts in compiled code, from parsed formulas node by node.
"""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from calibrant.bench.lab.speed.report import Comparison, Options, Rival, Row, by_setting, measure
from calibrant.bench.replayscm.rows.rates import Counts, RowwisePanels, gold_of, median_problem, random_candidates
from calibrant.dsl.formulas.text import parse, render
from calibrant.dsl.replayscm.evaluator import Candidate, Programs, compile_formulas, compile_texts
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.reference import replay_world
from calibrant.dsl.replayscm.replay import replay_splits
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.world import PackedPanels, Panel, pack_panels

# --- Measured rates of the benchmark's published scorer, for comparison -----------------------------------------------
SETTINGS = ("Ordered", "Block", "Hidden-order", "Hidden-roots")

# Full submissions a second: parse, legality, replay of 8 training and 8 held-out worlds, gold map, no extraction from
# text. First development problem of each stratum, in the order of SETTINGS.
SUBMISSIONS_PER_STRATUM: Mapping[str, tuple[int, int, int, int]] = {
    "hs_n6_easy_calibration": (691, 653, 1087, 634),
    "hs_n7_anchor_plus": (543, 501, 500, 371),
    "hs_n8_bridge": (410, 435, 436, 306),
    "vhs_n8_dense": (363, 346, 397, 259),
    "vhs_n9_anchor": (327, 333, 352, 267),
    "vhs_n9_dense_strict": (339, 347, 336, 270),
    "vhs_n10_anchor_m10": (231, 254, 232, 220),
    "vhs_n10_extreme_near_impossible": (260, 239, 257, 197),
}
EXPRESSIONS = 43_309  # parse_mechanism on 430 gold mechanisms, 28.7 characters on average


def submissions(setting: str, stratum: str | None = None) -> float | None:
    """Return the published scorer's submissions a second; without a stratum the median over strata. None if unknown."""
    if setting not in SETTINGS:
        return None
    column = SETTINGS.index(setting)
    if stratum is None:
        return median(rates[column] for rates in SUBMISSIONS_PER_STRATUM.values())
    rates = SUBMISSIONS_PER_STRATUM.get(stratum)
    return rates[column] if rates else None


# --- Rival: the replay loop in C, compiled on the spot and called through ctypes on the kernel's own arrays -----------
SOURCE = Path(__file__).with_name("replay_loop.c")
FLAGS = ("-std=c99", "-O3", "-march=native", "-shared", "-fPIC")


class NoCompilerError(Exception):
    """There is no C compiler, or it cannot make a shared library here; the text says why."""


class CLoop:
    """The compiled loop; `replay` has the contract of `Programs.compare` and gives its counts as one array."""

    def __init__(self, library: Path) -> None:
        self._function = ctypes.CDLL(str(library)).replay_candidates
        self._function.restype = None

    def replay(self, programs: Programs, packed: PackedPanels) -> Counts:
        """Return scored cells, wrong cells, scored worlds and exact worlds, as an array [candidates, panels, 4]."""
        num_vars, num_words = packed.observed.shape
        num_panels = len(packed.panel_masks)
        counts = np.empty((len(programs), num_panels, 4), np.int64)
        scratch = [np.empty((rows, num_words), np.uint64) for rows in (programs.max_stack, num_vars, 1, 1)]
        self._function(
            _pointer(programs.code),
            _pointer(programs.starts),
            ctypes.c_int64(len(programs)),
            _pointer(packed.observed),
            _pointer(packed.scored),
            _pointer(packed.scored_cells),
            ctypes.c_int64(num_vars),
            ctypes.c_int64(num_words),
            _pointer(packed.world_words),
            _pointer(packed.world_masks),
            _pointer(packed.world_panel),
            ctypes.c_int64(len(packed.world_panel)),
            _pointer(packed.panel_masks),
            ctypes.c_int64(num_panels),
            *map(_pointer, scratch),
            _pointer(counts),
        )
        return counts


def _pointer(array: npt.NDArray[Any]) -> ctypes.c_void_p:
    assert array.flags.c_contiguous
    return ctypes.c_void_p(array.ctypes.data)


@contextmanager
def compiled_loop(compiler: str = "cc") -> Iterator[CLoop]:
    """Compile the loop for this processor; `NoCompilerError` if that is not possible."""
    compiler_path = shutil.which(compiler)
    if compiler_path is None:
        raise NoCompilerError(f"no C compiler '{compiler}' on the path")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        library = Path(folder) / "replay_loop.so"
        done = subprocess.run(
            [compiler_path, *FLAGS, "-o", library, SOURCE], capture_output=True, text=True, check=False
        )
        if done.returncode:
            reason = " ".join(done.stderr.split())[:200]
            raise NoCompilerError(f"'{compiler} {' '.join(FLAGS)}' failed: {reason}")
        yield CLoop(library)


# --- Replay of one candidate and of 10,000 candidates, per setting, on the problem of median formula size -------------
TOPIC = "replay"
BATCH = 10_000
TIMES_PUBLISHED = 2_000
OF_C_LOOP = 1.0
OF_FORMULAS = 4.0  # time of formulas from texts, with all checks of the parser, over from formulas that are parsed
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
        case = Case(setting, median_problem(problems), max(20, round(BATCH * options.scale)))
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
        """Compare ways to replay a single candidate, where the overhead of a kernel call is not shared."""
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
        """Compare ways to replay the batch, per candidate, so that slow rivals may replay a sample."""
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
        return Comparison(TOPIC, case, "candidate", rivals, submissions(self.setting), counts)

    def from_formulas(self) -> Comparison:
        """Compare ways to get from the formulas of the batch to its counts."""
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


# --- Parsing of gold mechanisms: texts to formulas, with all checks and the legality of the variables -----------------
PARSING_TOPIC = "parse"
Tree: TypeAlias = "str | list[Tree]"

_TOKEN = re.compile(r"[()]|[^\s()]+")


def parsing_rows(options: Options) -> Iterator[Row]:
    for setting, problems in by_setting(options.problems).items():
        yield from measure(_parsing_comparison(setting, problems), options.discipline)


def _parsing_comparison(setting: str, problems: list[Problem]) -> Comparison:
    work = [
        (render(mechanism), problem.task.grammar, frozenset(problem.task.variables) - {variable})
        for problem in problems
        for variable, mechanism in gold_of(problem).mechanisms.items()
    ]
    texts = [text for text, _, _ in work]
    rivals = [
        Rival("parse", lambda: [parse(*arguments) for arguments in work], len(work)),
        Rival("parse, any variable", lambda: [parse(text, grammar) for text, grammar, _ in work], len(work)),
        Rival("recursive descent, unchecked", lambda: [parse_nested(text) for text in texts], len(work)),
    ]
    counts = {"mechanisms": len(work), "mean characters": sum(map(len, texts)) / len(work)}
    return Comparison(PARSING_TOPIC, setting, "mechanism", rivals, EXPRESSIONS, counts)


def parse_nested(text: str) -> Tree:
    """Parse an s-expression by a regular expression and recursion, without checks: a rival from textbooks."""
    tree, _ = _read_tokens(_TOKEN.findall(text), 0)
    return tree


def _read_tokens(tokens: list[str], index: int) -> tuple[Tree, int]:
    if tokens[index] != "(":
        return tokens[index], index + 1
    items: list[Tree] = []
    index += 1
    while tokens[index] != ")":
        item, index = _read_tokens(tokens, index)
        items.append(item)
    return items, index + 1
