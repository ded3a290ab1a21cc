"""Replay of many candidates at once by the Numba kernel, 64 rows a word: programs and panels as arrays, counts out.

Importing this module imports the kernels, which compile on first use. dsl.replayscm.replay replays one candidate and
never imports them; its `Candidate` is what is compiled here.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dsl.formulas.formula import Apply, Node
from dsl.formulas.operators import OPERATORS
from dsl.formulas.table import WORD_BITS
from dsl.replayscm import _kernels_replay as _kernels
from dsl.replayscm.replay import Candidate
from dsl.replayscm.world import Column, Panel

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
    """What a batch got right; every array has shape [candidates, panels].

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
    """The deepest stack; every program leaves it as empty as it found it, so all of them count as one."""
    opcode, argument = code & 15, code >> 4
    pushes = (opcode == _kernels.LOAD) | (opcode == _kernels.CONSTANT)
    growth = np.where(pushes, 1, np.where(opcode == _kernels.STORE, -1, 1 - argument))
    return int(np.cumsum(growth).max(initial=1))


def pack_panels(panels: Sequence[Panel]) -> PackedPanels:
    """The panels as words; all must have the same variables."""
    variables = panels[0].variables
    if any(panel.variables != variables for panel in panels):
        raise ValueError("panels over different variables")
    offsets = np.cumsum([0, *(panel.num_rows for panel in panels)]).tolist()
    num_words = max(1, -(-offsets[-1] // WORD_BITS))
    observed = [_joined([p.columns[v] for p in panels], offsets) for v in variables]
    scored = [_joined([p.scored_rows(v) for p in panels], offsets) for v in variables]
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


def _joined(columns: Sequence[Column], offsets: Sequence[int]) -> Column:
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
