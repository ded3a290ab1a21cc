"""The evaluator of candidate SCMs: every replay of a candidate on worlds, and every simulation, is done here.

Layout. Rows of worlds lie one after another. Row r of a variable is bit r of its column, a Python integer, or bit
r % 64 of word r // 64. Row p of a truth table has parent i at bit i of p, parents ascending. A clamped cell shows its
given value, everything else is computed from the values computed so far, so errors propagate (docs/semantics.md).
`dsl.replayscm.reference` defines the semantics; property tests compare every entry with it.

Entries, with candidates a second on one core (10 variables, 80 rows):

- `simulate`, `mismatches`: one candidate on Python integers, without compilation; 30,000. One call does any number of
  rows at nearly the same cost, so worlds to compare are laid side by side (`lay_out`).
- `compile_formulas`, `compile_texts` -> `Programs`: many candidates on packed panels; 2,600,000 once compiled.
- `compile_tables` -> `TablePrograms`: functions of at most six parents, with flips of noise; 840,000. The first cells
  of a process (`PlainWork`) are computed by numpy.
- `dsl.replayscm.replay.evaluate`: the public entry, of SCMs or their texts, by the programs above (docs/evaluator.md).
- `Judge`: one answer from its texts, when many are scored (dsl.replayscm.submission): it reads, orders and replays
  in one call, 1.8 times as fast as the parser and `mismatches`.

Two kernels stay in solvers.replayscm.experiments: `reading_keys`, in greedy steps 5.9 times as fast as `replay` and a
hash (577 worlds, 256 members), and `count_mismatches`, which judges noisy cells on observed parents.
The kernels compile on first use; importing this module imports none of them.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from calibrant.dsl.formulas.formula import BY_CODE, OPERATORS, Apply, Formula, Node
from calibrant.dsl.formulas.table import WORD_BITS, look_up, pack_bits, projection, unpack_bits
from calibrant.dsl.formulas.text import MAX_TEXT, STANDARD, Grammar, parse
from calibrant.dsl.kernel_cache import PlainWork
from calibrant.dsl.replayscm.world import Column, PackedPanels, Panel, Rows, World, pack_panels

U8 = npt.NDArray[np.uint8]
I32 = npt.NDArray[np.int32]
U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]

# copies of constants of dsl.replayscm._kernels_evaluator, which is imported on use; a test compares them
LOAD, CONSTANT, STORE, OPERATOR = 6, 7, 8, 15
NUM_FACTS, MAX_HEIGHT, RIGHT, OTHER, HASH_FACTOR = 7, 128, 0, 3, 0x9E3779B97F4A7C15
MAX_CANDIDATE_CHARS = 8_000  # longer answers are rare; they are left to the parser
MAX_LAID_ROWS = 1 << 16  # rows side by side: a column of 8 kB stays in the processor's cache
MAX_WORD_VARS = 6  # variables of a truth table that fits a word
_PROJECTIONS = np.array([projection(index, MAX_WORD_VARS).bits for index in range(MAX_WORD_VARS)], np.uint64)


class Mechanisms(Protocol):
    """Interface of a candidate, such as an `Scm`; order: the endogenous variables, parents first."""

    @property
    def mechanisms(self) -> Mapping[str, Formula]: ...

    @property
    def order(self) -> tuple[str, ...]: ...


class Candidate(NamedTuple):
    """A legal map with an evaluation order, parents first."""

    mechanisms: Mapping[str, Formula]
    order: tuple[str, ...]


def compute(mechanism: Formula, columns: Mapping[str, Column], rows: Column) -> Column:
    """Return a mechanism's bits in `rows`: `Formula.evaluate` without its calls, for hot loops."""
    stack: list[Column] = []
    for node in mechanism.nodes:
        if isinstance(node, str):
            stack.append(columns[node])
        elif isinstance(node, Apply):
            arity = node.arity
            arguments = stack[-arity:]
            del stack[-arity:]
            stack.append(OPERATORS[node.operator].bits(arguments, rows))
        else:
            stack.append(rows if node else 0)
    return stack.pop()


def simulate(
    candidate: Mechanisms, columns: Mapping[str, Column], clamped: Mapping[str, Column], rows: Column
) -> dict[str, Column]:
    """Return all columns: given values where a variable is clamped or has no mechanism, else computed ones.

    clamped: variable -> rows in which it keeps its given value
    """
    values = dict(columns)
    for variable in candidate.order:
        fixed = clamped.get(variable, 0)
        if fixed == rows:
            continue
        computed = compute(candidate.mechanisms[variable], values, rows)
        values[variable] = computed & ~fixed | columns[variable] & fixed if fixed else computed
    return values


def mismatches(candidate: Mechanisms, panel: Panel) -> dict[str, Column]:
    """Return endogenous variable -> rows in which its simulated value is wrong; never a row in which it is set."""
    observed = panel.columns
    simulated = simulate(candidate, observed, panel.clamped, panel.all_rows)
    return {variable: simulated[variable] ^ observed[variable] for variable in candidate.order}


def replays(candidate: Mechanisms, panel: Panel) -> bool:
    """Return whether every scored cell is right, as `reference.replays_exactly` on the panel's worlds."""
    columns, clamped, rows = panel.columns, panel.clamped, panel.all_rows
    # observed columns suffice: as long as no cell is wrong, computed values equal them
    return not any(
        (compute(candidate.mechanisms[v], columns, rows) ^ columns[v]) & ~clamped[v] for v in candidate.order
    )


def fits(candidate: Mechanisms, worlds: Sequence[World]) -> bool:
    """Return `replays` on these worlds; True without worlds."""
    return not worlds or replays(candidate, Panel(worlds[0].variables, tuple(worlds)))


class KnownMechanism(Protocol):
    """Interface of a mechanism whose mismatches are cached.

    bit: of its variable; mentions: bits of the variables that it mentions
    error: rows in which it is wrong although all mentioned values are right; None if not computed yet
    """

    bit: int
    mentions: int
    error: Column | None

    @property
    def formula(self) -> Formula: ...


def known_mismatches(mechanisms: Mapping[str, KnownMechanism], order: Sequence[str], panel: Panel) -> dict[str, Column]:
    """Return `mismatches`; those of a mechanism with right parents are taken from, or cached in, its `error`."""
    observed, clamped = panel.columns, panel.clamped
    simulated: dict[str, Column] = {}
    wrong: dict[str, Column] = {}
    wrong_bits = 0  # variables with a wrong cell
    for variable in order:
        mechanism = mechanisms[variable]
        if mechanism.mentions & wrong_bits:
            computed = compute(mechanism.formula, simulated, panel.all_rows)
            error = (computed ^ observed[variable]) & ~clamped[variable]
        elif mechanism.error is None:
            computed = compute(mechanism.formula, observed, panel.all_rows)
            error = mechanism.error = (computed ^ observed[variable]) & ~clamped[variable]
        else:
            error = mechanism.error
        wrong[variable] = error
        if error:
            if not wrong_bits:
                simulated = dict(observed)
            wrong_bits |= mechanism.bit
            simulated[variable] = observed[variable] ^ error
    return wrong


class Layout(NamedTuple):
    """Interventions side by side, each over every assignment of some roots: block after block of 2**roots rows.

    Row a of a block gives root i the bit a >> i & 1. Other roots are 0; a variable that is set has its constant.
    """

    columns: Mapping[str, Column]
    clamped: Mapping[str, Column]
    rows: Column
    num_blocks: int
    block_rows: int

    def simulate(self, candidate: Mechanisms) -> dict[str, Column]:
        """Return the columns of all variables."""
        return simulate(candidate, self.columns, self.clamped, self.rows)

    def block(self, column: Column, index: int) -> Column:
        """Return the rows of one block."""
        return column >> index * self.block_rows & ((1 << self.block_rows) - 1)

    def counts(self, column: Column) -> list[int]:
        """Count the ones of each block."""
        num_rows = self.num_blocks * self.block_rows
        bits = unpack_bits(column, num_rows).reshape(self.num_blocks, self.block_rows)
        counts: list[int] = bits.sum(1, dtype=np.int64).tolist()
        return counts


def lay_out(variables: Sequence[str], roots: Sequence[str], interventions: Sequence[Mapping[str, int]]) -> Layout:
    """Lay interventions side by side; variables: of the candidates; roots: those that take every assignment."""
    num_blocks, block_rows = len(interventions), 1 << len(roots)
    rows = (1 << num_blocks * block_rows) - 1
    first_rows = rows // ((1 << block_rows) - 1)  # the first row of each block
    columns, clamped = dict.fromkeys(variables, 0), dict.fromkeys(variables, 0)
    for i, root in enumerate(roots):
        columns[root] = projection(i, len(roots)).bits * first_rows
    for variable in {v for constants in interventions for v in constants}:
        values = [constants.get(variable) for constants in interventions]
        clamped[variable] = pack_bits(np.repeat([value is not None for value in values], block_rows))
        ones = pack_bits(np.repeat([value == 1 for value in values], block_rows))
        columns[variable] = columns[variable] & ~clamped[variable] | ones
    return Layout(columns, clamped, rows, num_blocks, block_rows)


@dataclass(frozen=True)
class TablePrograms:
    """Candidates as truth tables of at most MAX_WORD_VARS parents: d candidates of m mechanisms.

    order: [d, m] variables with mechanisms, parents first; masks: [d, m] their parent sets
    tables: [d, m] their functions over these
    """

    order: I64
    masks: I64
    tables: U64

    def __len__(self) -> int:
        return len(self.order)

    def select(self, chosen: slice | npt.NDArray[np.bool_]) -> TablePrograms:
        """Return some of the candidates."""
        return TablePrograms(self.order[chosen], self.masks[chosen], self.tables[chosen])

    def replay(self, rows: Rows, flips: U64 | None = None) -> U64:
        """Return the rows that each candidate computes, [d, r] words of variable bits; flips: [d, r], of noise."""
        if PlainWork.take(self.order.size * len(rows.words)):
            return self._replay_plainly(rows, flips)
        from calibrant.dsl.replayscm._kernels_evaluator import replay_tables

        results = np.empty((len(self), len(rows.words)), np.uint64)
        if flips is None:
            flips = np.empty((0, len(rows.words)), np.uint64)
        replay_tables(self.order, self.masks, self.tables, rows.words, rows.targets, flips, results)
        return results

    def _replay_plainly(self, rows: Rows, flips: U64 | None) -> U64:
        """Compute `replay` in numpy, one mechanism at a time, without compilation."""
        values = np.repeat(rows.words[None], len(self), axis=0)
        for i in range(self.order.shape[1]):
            v = self.order[:, i, None].astype(np.uint64)
            computed = look_up(self.tables[:, i, None], self.masks[:, i, None].astype(np.uint64), values)
            if flips is not None:
                computed ^= flips >> v
            values ^= ((computed ^ values >> v) & ~rows.targets >> v & np.uint64(1)) << v
        return values


def compile_tables(candidates: Sequence[Sequence[tuple[int, int, int]]], num_mechanisms: int) -> TablePrograms:
    """Compile candidates of num_mechanisms each, given as (variable, parent mask, table bits), parents first."""
    arrays = np.array(candidates, np.uint64).reshape(len(candidates), num_mechanisms, 3)
    order, masks, tables = (np.ascontiguousarray(arrays[:, :, i]) for i in range(3))
    return TablePrograms(order.astype(np.int64), masks.astype(np.int64), tables)


class Evaluation(NamedTuple):
    """Counts of replayed SCMs as numpy arrays: [candidates], or [candidates, panels] of `Programs.compare`.

    Worlds without a scored cell are in no count.

    num_cells: scored cells, those of endogenous variables that no intervention sets; num_wrong: wrong ones
    num_worlds: worlds with a scored cell; num_exact_worlds: worlds without a wrong one
    """

    num_cells: I64
    num_wrong: I64
    num_worlds: I64
    num_exact_worlds: I64

    def __repr__(self) -> str:
        return f"<Evaluation: {int(self.all_exact.sum())} of {len(self.num_cells)} SCMs exact>"

    @property
    def all_exact(self) -> npt.NDArray[np.bool_]:
        """Whether every scored cell is right and there is one, by candidate."""
        exact: npt.NDArray[np.bool_] = (self.num_wrong == 0) & (self.num_cells > 0)
        return exact


@dataclass(frozen=True)
class Programs:
    """Compiled candidates over one set of variables, as postfix programs of load, operator and store instructions.

    code: instructions of all programs; starts: [candidates + 1] offset of each program
    max_stack: greatest stack depth of any program
    """

    variables: tuple[str, ...]
    code: I32
    starts: I64
    max_stack: int

    def __len__(self) -> int:
        return len(self.starts) - 1

    def compare(self, packed: PackedPanels) -> Evaluation:
        """Count the mistakes of every candidate on all worlds of the panels."""
        return self._run(packed, with_values=False)[0]

    def replay(self, packed: PackedPanels) -> U64:
        """Return the values that every candidate computes, [candidates, variables, words]; rows as in panels."""
        return self._run(packed, with_values=True)[1]

    def _run(self, packed: PackedPanels, *, with_values: bool) -> tuple[Evaluation, U64]:
        from calibrant.dsl.replayscm import _kernels_evaluator

        if self.variables != packed.variables:
            raise ValueError("programs and panels over different variables")
        counts = np.zeros((len(self), len(packed.panel_masks), 4), np.int64)
        values = np.empty((len(self) if with_values else 0, *packed.observed.shape), np.uint64)
        arrays = packed[1:]
        _kernels_evaluator.replay_candidates(self.code, self.starts, *arrays, self.max_stack, counts, values)
        return Evaluation(*(counts[:, :, i] for i in range(4))), values


class _Instructions(dict[Node, int]):
    """Node -> instruction; operators and constants are added on demand."""

    def __missing__(self, node: Node) -> int:
        if isinstance(node, Apply):
            instruction = node.arity << 4 | OPERATORS[node.operator].code
        elif isinstance(node, bool):
            instruction = int(node) << 4 | CONSTANT
        else:
            raise KeyError(node)
        self[node] = instruction
        return instruction


def _load_instructions(variables: Sequence[str]) -> _Instructions:
    return _Instructions({variable: i << 4 | LOAD for i, variable in enumerate(variables)})


def compile_formulas(candidates: Sequence[Mechanisms], variables: Sequence[str]) -> Programs:
    """Compile parsed candidates, each in its own evaluation order."""
    instruction = _load_instructions(variables).__getitem__
    store = {variable: i << 4 | STORE for i, variable in enumerate(variables)}
    code = array("i")
    starts = [0]
    for candidate in candidates:
        for variable in candidate.order:
            code.extend(map(instruction, candidate.mechanisms[variable].nodes))
            code.append(store[variable])
        starts.append(len(code))
    program = np.array(code, np.int32)
    return Programs(tuple(variables), program, np.array(starts, np.int64), _max_stack(program))


def compile_texts(
    texts: Sequence[str],
    variables: Sequence[str],
    order: Sequence[str],
    grammar: Grammar = STANDARD,
    parents: Mapping[str, frozenset[str]] | None = None,
) -> Programs:
    """Compile mechanism texts: those of the first candidate in `order`, of the second, and so on.

    Plain texts are read in compiled code, others by the parser. `ParseError` for the first text that is no mechanism,
    ValueError if one candidate is not whole. parents: what each mechanism may mention; None admits all variables
    """
    num = max(1, len(order))
    if len(texts) % num:
        raise ValueError(f"{len(texts)} texts; each candidate has {len(order)}")
    admitted = parents or dict.fromkeys(order, frozenset(variables))
    code, ends, was_read, deepest = _read_texts(texts, text_tables(variables, order, grammar, admitted))
    if not was_read.all():
        instruction, pieces, begin = _load_instructions(variables), [], 0
        for index, (text, end) in enumerate(zip(texts, ends.tolist(), strict=True)):
            piece, variable = code[begin:end], order[index % num]
            if not was_read[index]:
                nodes = parse(text, grammar, admitted[variable]).nodes
                stored = variables.index(variable) << 4 | STORE
                piece = np.array([*map(instruction.__getitem__, nodes), stored], np.int32)
            pieces.append(piece)
            begin = end
        code, ends = np.concatenate(pieces), np.cumsum([len(piece) for piece in pieces])
        deepest = _max_stack(code)
    starts = np.zeros(len(texts) // num + 1, np.int64)
    starts[1:] = ends[num - 1 :: num]
    return Programs(tuple(variables), code, starts, max(1, deepest))


def _read_texts(texts: Sequence[str], tables: TextTables | None) -> tuple[I32, I64, U8, int]:
    """Return code, end offset of each text, which texts were read, and stack depth; only single lines are read."""
    from calibrant.dsl.replayscm import _kernels_evaluator

    ends, was_read = np.zeros(len(texts), np.int64), np.zeros(len(texts), np.uint8)
    if tables is None or not texts:
        return np.empty(0, np.int32), ends, was_read, 0
    joined = "\n".join([*texts, ""])
    is_long = len(joined) > MAX_TEXT and max(map(len, texts)) > MAX_TEXT
    if is_long or not joined.isascii() or joined.count("\n") != len(texts):
        joined = "".join(f"{text}\n" if _is_line(text) else "\n" for text in texts)
    lines = np.frombuffer(joined.encode("ascii"), np.uint8)
    code = np.empty(len(lines) // 2 + len(texts) + 1, np.int32)
    deepest = _kernels_evaluator.read_texts(lines, *tables, code, ends, was_read)
    return code[: ends[-1]], ends, was_read, int(deepest)


def _is_line(text: str) -> bool:
    return text.isascii() and "\n" not in text and len(text) <= MAX_TEXT


def _max_stack(code: I32) -> int:
    """Return the greatest stack depth; every program leaves the stack empty, so all of them count as one."""
    opcode, argument = code & 15, code >> 4
    pushes = (opcode == LOAD) | (opcode == CONSTANT)
    growth = np.where(pushes, 1, np.where(opcode == STORE, -1, 1 - argument))
    return int(np.cumsum(growth).max(initial=1))


class TextTables(NamedTuple):
    """Arguments of the kernels `read_texts` and `judge_texts`, which describe them."""

    names: U64
    meanings: I32
    bits: int
    arities: I64
    targets: I64
    allowed: U64


def text_tables(
    variables: Sequence[str], order: Sequence[str], grammar: Grammar, parents: Mapping[str, frozenset[str]]
) -> TextTables | None:
    """Return the tables, variables numbered in this order; None for over 64 variables or one named as an operator."""
    index = {variable: i for i, variable in enumerate(variables)}
    if len(index) > WORD_BITS or index.keys() & OPERATORS.keys():
        return None
    meanings = {name: index[name] << 4 | LOAD for name in variables}
    operators = [name for name in grammar.operators if name in OPERATORS]
    meanings |= {name: OPERATORS[name].code << 4 | OPERATOR for name in operators}
    bits, names, name_meanings = _name_table(meanings)
    arities = np.array([(operator.min_arity, operator.max_arity or MAX_TEXT) for operator in BY_CODE], np.int64)
    targets = np.array([index[variable] for variable in order], np.int64)
    masks = [sum(1 << index[name] for name in parents[variable]) for variable in order]
    return TextTables(names, name_meanings, bits, arities, targets, np.array(masks, np.uint64))


def _name_table(meanings: Mapping[str, int]) -> tuple[int, U64, npt.NDArray[np.int32]]:
    """Return log2 of the size, names and meanings of an open-addressing hash table; names over 8 bytes are left out."""
    bits = (2 * len(meanings)).bit_length()
    names, name_meanings = np.zeros(1 << bits, np.uint64), np.full(1 << bits, -1, np.int32)
    for name, meaning in meanings.items():
        name_bytes = name.encode("ascii")
        if len(name_bytes) > 8:
            continue
        key = int.from_bytes(name_bytes, "little")
        slot = (key * HASH_FACTOR & (1 << 64) - 1) >> (64 - bits)
        while names[slot]:
            slot = (slot + 1) % (1 << bits)
        names[slot], name_meanings[slot] = key, meaning
    return bits, names, name_meanings


class Verdict(NamedTuple):
    """Outcome of one judged answer.

    wrong: column of wrong rows of each mechanism; None if no row is wrong
    order: indices of the mechanisms in evaluation order; None if it is the given order
    """

    wrong: list[Column] | None
    order: list[int] | None


_RIGHT = Verdict(None, None)


class Judge:
    """Replays answers with the same endogenous variables on one panel, from their texts, in one call of a kernel.

    variables: in natural order, which numbers their bits
    order: the endogenous variables; ties of the evaluation order are broken by it
    """

    def __init__(
        self,
        variables: Sequence[str],
        order: Sequence[str],
        grammar: Grammar,
        parents: Mapping[str, frozenset[str]],
        panel: Panel,
    ) -> None:
        from calibrant.dsl.replayscm import _kernels_evaluator  # takes 0.3 s and 120 MB

        self._judge_texts, self._num = _kernels_evaluator.judge_texts, len(order)
        packed = pack_panels([panel])
        columns = [packed.variables.index(variable) for variable in variables]
        observed, scored = packed.observed[columns].ravel(), packed.scored[columns].ravel()
        self._width = len(observed) // len(variables)
        self._wrong = np.zeros((self._num, self._width), np.uint64)
        self._facts = np.zeros((self._num, NUM_FACTS), np.int64)
        self._order, self._in_order = np.zeros(self._num, np.int64), [*range(self._num)]
        tables = text_tables(variables, order, grammar, parents)
        self._arguments = None
        if tables is not None and 0 < self._num < WORD_BITS - 1:
            code = np.empty(MAX_CANDIDATE_CHARS // 2 + 2 * self._num + 1, np.int32)
            stack = np.empty(MAX_HEIGHT * max(1, self._width), np.uint64)
            was_read, ends = np.zeros(self._num, np.uint8), np.zeros(self._num, np.int64)
            self._arguments = (*tables, code, observed, scored, stack, _PROJECTIONS, was_read, ends)

    def judge(self, texts: Sequence[str]) -> Verdict | None:
        """Replay the mechanisms with these texts; None, for the parser to decide, if one is not plain or on a cycle."""
        joined = "\n".join(texts) + "\n"
        if (
            self._arguments is None
            or len(joined) > MAX_CANDIDATE_CHARS
            or not joined.isascii()
            or joined.count("\n") != self._num
        ):
            return None
        lines = np.frombuffer(joined.encode("ascii"), np.uint8)
        outcome = self._judge_texts(lines, *self._arguments, self._facts, self._order, self._wrong)
        if outcome == RIGHT:
            return _RIGHT
        return self._verdict() if outcome == OTHER else None

    def facts(self) -> list[list[int]]:
        """Return the facts of each mechanism of the last judged answer, NUM_FACTS numbers.

        Number of nodes; depth; variables as bits; two words of operators; AS_OBSERVED and WRONG flags; the truth table
        over the mentioned variables, if they are at most MAX_WORD_VARS, whose bits beyond its rows are undefined.
        """
        facts: list[list[int]] = self._facts.tolist()
        return facts

    def _verdict(self) -> Verdict:
        packed, size = self._wrong.tobytes(), 8 * self._width
        wrong = [int.from_bytes(packed[at : at + size], "little") for at in range(0, size * self._num, size or 1)]
        order = self._order.tolist()
        return Verdict(wrong or [0] * self._num, None if order == self._in_order else order)
