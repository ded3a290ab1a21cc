"""Replay kernel: many compiled candidates on one packed panel, 64 rows a word.

Dimension letters: c = candidates, v = variables, w = words, p = panels, d = worlds, i = instructions. An instruction is
`argument << 4 | opcode`; opcodes up to `if` are the codes of dsl.formulas.operators and their argument is the arity.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dsl._jit import inlined, kernel

U64 = npt.NDArray[np.uint64]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]

# Opcodes 0 to 5 are not, and, or, xor, iff, if; numba compiles these numbers into the kernels of this file.
NOT, AND, OR, XOR, IFF, IF, LOAD, CONSTANT, STORE = 0, 1, 2, 3, 4, 5, 6, 7, 8


@inlined
def _popcount(word: np.uint64) -> np.int64:
    """Number of ones: the parallel bit count of Warren, Hacker's Delight, section 5-1."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@kernel
def _count_worlds(
    world_words: I64, world_masks: U64, world_panel: I64, scored_rows: U64, wrong_rows: U64, counts: I64
) -> None:
    """Adds one candidate's scored and exact worlds to its counts [p, 4]."""
    for d in range(world_words.shape[0]):
        has_cells = np.uint64(0)
        has_errors = np.uint64(0)
        for w in range(world_words[d, 0], world_words[d, 1]):
            has_cells |= scored_rows[w] & world_masks[d, w]
            has_errors |= wrong_rows[w] & world_masks[d, w]
        if has_cells:
            counts[world_panel[d], 2] += 1
            if not has_errors:
                counts[world_panel[d], 3] += 1


@inlined
def _combine(stack: U64, base: int, arity: int, opcode: int) -> None:
    """Apply an operator to the `arity` values from `base` on; the result replaces the first."""
    num_words = stack.shape[1]
    if opcode == NOT:
        for w in range(num_words):
            stack[base, w] = ~stack[base, w]
    elif opcode == AND:
        for a in range(base + 1, base + arity):
            for w in range(num_words):
                stack[base, w] &= stack[a, w]
    elif opcode == OR:
        for a in range(base + 1, base + arity):
            for w in range(num_words):
                stack[base, w] |= stack[a, w]
    elif opcode == XOR:
        for a in range(base + 1, base + arity):
            for w in range(num_words):
                stack[base, w] ^= stack[a, w]
    elif opcode == IFF:
        for w in range(num_words):
            every = stack[base, w]
            some = stack[base, w]
            for a in range(base + 1, base + arity):
                every &= stack[a, w]
                some |= stack[a, w]
            stack[base, w] = every | ~some
    else:
        for w in range(num_words):
            condition = stack[base, w]
            stack[base, w] = (condition & stack[base + 1, w]) | (~condition & stack[base + 2, w])


@kernel
def replay_candidates(
    code: I32,  # [i] programs of all candidates, one after another
    starts: I64,  # [c + 1] where each program begins
    observed: U64,  # [v, w]
    scored: U64,  # [v, w] rows in which the variable is not clamped
    scored_cells: I64,  # [v, p] how many those are
    world_words: I64,  # [d, 2] first word of a world and one past its last
    world_masks: U64,  # [d, w] rows of each world
    world_panel: I64,  # [d] which panel a world belongs to
    panel_masks: U64,  # [p, w] rows of each panel
    stack: U64,  # [depth, w] scratch
    values: U64,  # [v, w] scratch
    counts: I64,  # [c, p, 4] out: scored cells, wrong cells, scored worlds, exact worlds
) -> None:
    num_vars, num_words = observed.shape
    num_panels = panel_masks.shape[0]
    wrong_rows = np.zeros(num_words, np.uint64)
    scored_rows = np.zeros(num_words, np.uint64)
    ones = np.uint64(0xFFFFFFFFFFFFFFFF)
    for c in range(starts.shape[0] - 1):
        for v in range(num_vars):
            for w in range(num_words):
                values[v, w] = observed[v, w]
        for w in range(num_words):
            wrong_rows[w] = 0
            scored_rows[w] = 0
        top = 0
        for i in range(starts[c], starts[c + 1]):
            opcode = code[i] & 15
            argument = code[i] >> 4
            if opcode == LOAD:
                for w in range(num_words):
                    stack[top, w] = values[argument, w]
                top += 1
            elif opcode == STORE:
                top -= 1
                for w in range(num_words):
                    error = (stack[top, w] ^ observed[argument, w]) & scored[argument, w]
                    values[argument, w] ^= error
                    wrong_rows[w] |= error
                    scored_rows[w] |= scored[argument, w]
                    if error:
                        for p in range(num_panels):
                            counts[c, p, 1] += _popcount(error & panel_masks[p, w])
                for p in range(num_panels):
                    counts[c, p, 0] += scored_cells[argument, p]
            elif opcode == CONSTANT:
                for w in range(num_words):
                    stack[top, w] = ones if argument else np.uint64(0)
                top += 1
            else:
                top -= argument - 1
                _combine(stack, top - 1, argument, opcode)
        _count_worlds(world_words, world_masks, world_panel, scored_rows, wrong_rows, counts[c])
