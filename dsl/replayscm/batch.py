"""Replay of many candidates at once by the Numba kernel, 64 rows a word: programs and panels as arrays, counts out.

Importing this module imports the kernels, which compile on first use. dsl.replayscm.replay replays one candidate and
never imports them; its `Candidate` is what is compiled here.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from calibrant.dsl.formulas.formula import Apply, Node
from calibrant.dsl.formulas.operators import BY_CODE, OPERATORS
from calibrant.dsl.formulas.table import WORD_BITS
from calibrant.dsl.formulas.text import MAX_TEXT, STANDARD, Grammar, parse
from calibrant.dsl.replayscm import _kernels_replay as _kernels
from calibrant.dsl.replayscm import _kernels_texts
from calibrant.dsl.replayscm.replay import Candidate
from calibrant.dsl.replayscm.world import Column, Panel

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Programs:
    """Compiled candidates over one set of variables.

    code: all programs one after another, int32; starts: [candidates + 1] where each begins
    max_stack: deepest stack that any of them needs
    """

    variables: tuple[str, ...]
    code: npt.NDArray[np.int32]
    starts: I64
    max_stack: int

    def __len__(self) -> int:
        return len(self.starts) - 1


class TextTables(NamedTuple):
    """The tables of dsl.replayscm._kernels_texts, as `read_texts` describes them."""

    names: U64
    meanings: npt.NDArray[np.int32]
    bits: int
    arities: I64
    targets: I64
    allowed: U64


def text_tables(
    variables: Sequence[str], order: Sequence[str], grammar: Grammar, parents: Mapping[str, frozenset[str]]
) -> TextTables | None:
    """For variables numbered as they come; None if there are too many, or if one is called like an operator."""
    place = {variable: index for index, variable in enumerate(variables)}
    if len(place) > WORD_BITS or place.keys() & OPERATORS.keys():
        return None
    meanings = {name: place[name] << 4 | _kernels.LOAD for name in variables}
    operators = [name for name in grammar.operators if name in OPERATORS]
    meanings |= {name: OPERATORS[name].code << 4 | _kernels_texts.OPERATOR for name in operators}
    bits, names, name_meanings = _name_table(meanings)
    arities = np.array([(operator.min_arity, operator.max_arity or MAX_TEXT) for operator in BY_CODE], np.int64)
    targets = np.array([place[variable] for variable in order], np.int64)
    masks = [sum(1 << place[name] for name in parents[variable]) for variable in order]
    return TextTables(names, name_meanings, bits, arities, targets, np.array(masks, np.uint64))


class TextCompiler:
    """Programs from mechanism texts, in compiled code wherever a text is plain. Made once for a set of candidates.

    order: the endogenous variables as they are evaluated, one order for all candidates
    parents: the variables that may occur in the mechanism of each; None admits all of them
    """

    def __init__(
        self,
        variables: Sequence[str],
        order: Sequence[str],
        grammar: Grammar = STANDARD,
        parents: Mapping[str, frozenset[str]] | None = None,
    ) -> None:
        self._variables, self._order, self._grammar = tuple(variables), tuple(order), grammar
        self._parents = parents or dict.fromkeys(order, frozenset(variables))
        place = {variable: index for index, variable in enumerate(variables)}
        self._targets = [place[variable] for variable in order]
        self._tables = text_tables(self._variables, self._order, grammar, self._parents)

    def compile(self, texts: Sequence[str]) -> Programs:
        """Compile the mechanisms of candidates: those of the first in evaluation order, of the second, and so on.

        `ParseError` for the first text that is no mechanism, ValueError if one candidate is not whole.
        """
        if len(texts) % max(1, len(self._order)):
            raise ValueError(f"{len(texts)} texts; each candidate has {len(self._order)}")
        code, ends, was_read, deepest = self._read_texts(texts)
        if not was_read.all():
            code, ends = self._insert_unread(texts, code, ends, was_read)
            deepest = _max_stack(code)
        starts = np.zeros(len(texts) // max(1, len(self._order)) + 1, np.int64)
        starts[1:] = ends[len(self._order) - 1 :: len(self._order)]
        return Programs(self._variables, code, starts, max(1, deepest))

    def _read_texts(self, texts: Sequence[str]) -> tuple[npt.NDArray[np.int32], I64, npt.NDArray[np.uint8], int]:
        """Call `_kernels_texts.read_texts`; texts that are no single line count as not read."""
        ends, was_read = np.zeros(len(texts), np.int64), np.zeros(len(texts), np.uint8)
        if self._tables is None or not texts:
            return np.empty(0, np.int32), ends, was_read, 0
        joined = "\n".join([*texts, ""])
        is_long = len(joined) > MAX_TEXT and max(map(len, texts)) > MAX_TEXT
        if is_long or not joined.isascii() or joined.count("\n") != len(texts):
            joined = "".join(f"{text}\n" if _is_line(text) else "\n" for text in texts)
        lines = np.frombuffer(joined.encode("ascii"), np.uint8)
        code = np.empty(len(lines) // 2 + len(texts) + 1, np.int32)
        deepest = _kernels_texts.read_texts(
            lines,
            *self._tables,
            code,
            ends,
            was_read,
        )
        return code[: ends[-1]], ends, was_read, int(deepest)

    def _insert_unread(
        self, texts: Sequence[str], code: npt.NDArray[np.int32], ends: I64, was_read: npt.NDArray[np.uint8]
    ) -> tuple[npt.NDArray[np.int32], I64]:
        """Return the programs with those of the texts that were not read."""
        instruction = self._instructions()
        pieces: list[npt.NDArray[np.int32]] = []
        begin = 0
        for number, (text, end) in enumerate(zip(texts, ends.tolist(), strict=True)):
            piece = code[begin:end]
            if not was_read[number]:
                at = number % len(self._order)
                nodes = parse(text, self._grammar, self._parents[self._order[at]]).nodes
                stored = self._targets[at] << 4 | _kernels.STORE
                piece = np.array([*map(instruction.__getitem__, nodes), stored], np.int32)
            pieces.append(piece)
            begin = end
        return np.concatenate(pieces), np.cumsum([len(piece) for piece in pieces])

    def _instructions(self) -> _Instructions:
        return _Instructions({variable: i << 4 | _kernels.LOAD for i, variable in enumerate(self._variables)})


def _is_line(text: str) -> bool:
    return text.isascii() and "\n" not in text and len(text) <= MAX_TEXT


def _name_table(meanings: Mapping[str, int]) -> tuple[int, U64, npt.NDArray[np.int32]]:
    """Binary logarithm of its size, names and meanings; names that are longer than a word are left out."""
    bits = (2 * len(meanings)).bit_length()
    names, name_meanings = np.zeros(1 << bits, np.uint64), np.full(1 << bits, -1, np.int32)
    for name, meaning in meanings.items():
        spelled = name.encode("ascii")
        if len(spelled) > 8:
            continue
        number = int.from_bytes(spelled, "little")
        at = (number * int(_kernels_texts.SPREAD) & (1 << 64) - 1) >> (64 - bits)
        while names[at]:
            at = (at + 1) % (1 << bits)
        names[at], name_meanings[at] = number, meaning
    return bits, names, name_meanings


@dataclass(frozen=True)
class PackedPanels:
    """Several panels (training, held-out) as words: rows of all of them one after another, 64 a word.

    scored_cells: [variables, panels] how many rows are scored
    observed, scored: [variables, words]; unused rows of the last word are 0 in `scored` and in all masks
    """

    variables: tuple[str, ...]
    observed: U64
    scored: U64
    scored_cells: I64
    world_words: I64
    world_masks: U64
    world_panel: I64
    panel_masks: U64


@dataclass(frozen=True)
class BatchReplay:
    """The counts of a replayed batch; every array has shape [candidates, panels].

    Worlds without a scored cell are in no count.
    """

    num_cells: I64
    num_wrong: I64
    num_worlds: I64
    num_exact_worlds: I64

    @property
    def all_exact(self) -> npt.NDArray[np.bool_]:
        """Every scored cell right, and at least one exists."""
        exact: npt.NDArray[np.bool_] = (self.num_wrong == 0) & (self.num_cells > 0)
        return exact


class _Instructions(dict[Node, int]):
    """Node -> instruction; operators and constants are added when they are first met."""

    def __missing__(self, node: Node) -> int:
        if isinstance(node, Apply):
            instruction = node.arity << 4 | OPERATORS[node.operator].code
        elif isinstance(node, bool):
            instruction = int(node) << 4 | _kernels.CONSTANT
        else:
            raise KeyError(node)
        self[node] = instruction
        return instruction


def compile_candidates(candidates: Sequence[Candidate], variables: Sequence[str]) -> Programs:
    """Postfix programs: load, operate, store each variable in evaluation order."""
    instruction = _Instructions({variable: i << 4 | _kernels.LOAD for i, variable in enumerate(variables)}).__getitem__
    store = {variable: i << 4 | _kernels.STORE for i, variable in enumerate(variables)}
    code = array("i")
    starts = [0]
    for mechanisms, order in candidates:
        for variable in order:
            code.extend(map(instruction, mechanisms[variable].nodes))
            code.append(store[variable])
        starts.append(len(code))
    program = np.array(code, np.int32)
    return Programs(tuple(variables), program, np.array(starts, np.int64), _max_stack(program))


def _max_stack(code: npt.NDArray[np.int32]) -> int:
    """Return the deepest stack; every program leaves it as empty as it found it, so all of them count as one."""
    opcode, argument = code & 15, code >> 4
    pushes = (opcode == _kernels.LOAD) | (opcode == _kernels.CONSTANT)
    growth = np.where(pushes, 1, np.where(opcode == _kernels.STORE, -1, 1 - argument))
    return int(np.cumsum(growth).max(initial=1))


def pack_panels(panels: Sequence[Panel]) -> PackedPanels:
    """Return the panels as words; all must have the same variables."""
    variables = panels[0].variables
    if any(panel.variables != variables for panel in panels):
        raise ValueError("panels over different variables")
    offsets = np.cumsum([0, *(panel.num_rows for panel in panels)]).tolist()
    num_words = max(1, -(-offsets[-1] // WORD_BITS))
    observed = [_join_columns([p.columns[v] for p in panels], offsets) for v in variables]
    scored = [_join_columns([p.scored_rows(v) for p in panels], offsets) for v in variables]
    spans = [
        (index, offset + start, offset + end)
        for index, (panel, offset) in enumerate(zip(panels, offsets, strict=False))
        for start, end in zip(panel.starts, panel.starts[1:], strict=False)
    ]
    world_masks = [((1 << (end - start)) - 1) << start for _, start, end in spans]
    panel_masks = [p.all_rows << offset for p, offset in zip(panels, offsets, strict=False)]
    words = [(start // WORD_BITS, -(-end // WORD_BITS)) for _, start, end in spans]
    return PackedPanels(
        variables,
        _words(observed, num_words),
        _words(scored, num_words),
        np.array([[p.scored_rows(v).bit_count() for p in panels] for v in variables], np.int64),
        np.array(words, np.int64).reshape(-1, 2),
        _words(world_masks, num_words),
        np.array([index for index, _, _ in spans], np.int64),
        _words(panel_masks, num_words),
    )


def _join_columns(columns: Sequence[Column], offsets: Sequence[int]) -> Column:
    return sum(column << offset for column, offset in zip(columns, offsets, strict=False))


def _words(columns: Sequence[Column], num_words: int) -> U64:
    packed = b"".join(column.to_bytes(num_words * 8, "little") for column in columns)
    return np.frombuffer(packed, "<u8").astype(np.uint64).reshape(len(columns), num_words)


def replay_batch(programs: Programs, packed: PackedPanels) -> BatchReplay:
    """Replay every candidate on all worlds of the packed panels."""
    if programs.variables != packed.variables:
        raise ValueError("programs and panels over different variables")
    counts = np.zeros((len(programs), len(packed.panel_masks), 4), np.int64)
    _kernels.replay_candidates(
        programs.code,
        programs.starts,
        packed.observed,
        packed.scored,
        packed.scored_cells,
        packed.world_words,
        packed.world_masks,
        packed.world_panel,
        packed.panel_masks,
        programs.max_stack,
        counts,
    )
    return BatchReplay(counts[:, :, 0], counts[:, :, 1], counts[:, :, 2], counts[:, :, 3])
