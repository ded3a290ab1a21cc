"""Replay kernel: many compiled candidates on one packed panel, 64 rows a word.

Dimension letters: c = candidates, v = variables, w = words, p = panels, d = worlds, i = instructions. An instruction is
`argument << 4 | opcode`; opcodes up to `if` are the codes of dsl.formulas.operators and their argument is the arity.

A program runs on four words at a time: operands are loaded before anything is stored, so that four words are one
instruction of the processor, and positions are unsigned, so that none is taken for a negative one.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from calibrant.dsl._jit import inline_kernel, kernel

U64 = npt.NDArray[np.uint64]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
Four: TypeAlias = "tuple[np.uint64, np.uint64, np.uint64, np.uint64]"

# Opcodes 0 to 5 are not, and, or, xor, iff, if; numba compiles these numbers into the kernels of this file.
NOT, AND, OR, XOR, IFF, IF, LOAD, CONSTANT, STORE = 0, 1, 2, 3, 4, 5, 6, 7, 8
LANES = np.uint64(4)
ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
U0, U1, U2, U3 = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(3)


@inline_kernel
def _popcount(word: np.uint64) -> np.int64:
    """Count the ones by the parallel bit count of Warren, Hacker's Delight, section 5-1."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@inline_kernel
def _count_worlds(
    world_words: I64, world_masks: U64, world_panel: I64, scored_rows: U64, wrong_rows: U64, counts: I64
) -> None:
    """Add one candidate's scored and exact worlds to its counts [p, 4]."""
    for d in range(world_words.shape[0]):
        has_cells = np.uint64(0)
        has_errors = np.uint64(0)
        for w in range(np.uint64(world_words[d, 0]), np.uint64(world_words[d, 1])):  # mostly one word
            has_cells |= scored_rows[w] & world_masks[d, w]
            has_errors |= wrong_rows[w] & world_masks[d, w]
        counts[world_panel[d], 2] += has_cells != 0
        counts[world_panel[d], 3] += (has_cells != 0) & (has_errors == 0)


@inline_kernel
def _four(words: U64, at: np.uint64) -> Four:
    return words[at], words[at + U1], words[at + U2], words[at + U3]


@inline_kernel
def _store_lanes(words: U64, at: np.uint64, four: Four) -> None:
    words[at], words[at + U1], words[at + U2], words[at + U3] = four


@inline_kernel
def _and(a: Four, b: Four) -> Four:
    return a[0] & b[0], a[1] & b[1], a[2] & b[2], a[3] & b[3]


@inline_kernel
def _or(a: Four, b: Four) -> Four:
    return a[0] | b[0], a[1] | b[1], a[2] | b[2], a[3] | b[3]


@inline_kernel
def _xor(a: Four, b: Four) -> Four:
    return a[0] ^ b[0], a[1] ^ b[1], a[2] ^ b[2], a[3] ^ b[3]


@inline_kernel
def _not(a: Four) -> Four:
    return ~a[0], ~a[1], ~a[2], ~a[3]


@inline_kernel
def _combine(stack: U64, base: np.uint64, end: np.uint64, opcode: int) -> Four:
    """Apply an operator to the values from `base` to `end` on the stack."""
    first = _four(stack, base)
    at = base + LANES
    if opcode == NOT:
        first = _not(first)
    elif opcode == AND:
        while at < end:
            first = _and(first, _four(stack, at))
            at += LANES
    elif opcode == OR:
        while at < end:
            first = _or(first, _four(stack, at))
            at += LANES
    elif opcode == XOR:
        while at < end:
            first = _xor(first, _four(stack, at))
            at += LANES
    elif opcode == IFF:
        disjunction = first
        while at < end:
            argument = _four(stack, at)
            first, disjunction = _and(first, argument), _or(disjunction, argument)
            at += LANES
        first = _or(first, _not(disjunction))
    else:
        otherwise = _and(_not(first), _four(stack, at + LANES))
        first = _or(_and(first, _four(stack, at)), otherwise)
    return first


@inline_kernel
def _pad_rows(words: U64, lanes: int) -> U64:
    """Rows of words [r, w] one after another, each with zeros up to `lanes` words."""
    out = np.zeros(words.shape[0] * lanes, np.uint64)
    for r in range(words.shape[0]):
        for w in range(words.shape[1]):
            out[r * lanes + w] = words[r, w]
    return out


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
    max_stack: int,  # the deepest stack of any program
    counts: I64,  # [c, p, 4] out, zeros before: scored cells, wrong cells, scored worlds, exact worlds
) -> None:
    num_vars, num_words = observed.shape
    num_panels = panel_masks.shape[0]
    lanes = (num_words + 3) // 4 * 4
    row = np.uint64(lanes)
    observed_rows, judged, masks = _pad_rows(observed, lanes), _pad_rows(scored, lanes), _pad_rows(panel_masks, lanes)
    stack = np.empty(4 * max_stack, np.uint64)
    values = np.empty(4 * num_vars, np.uint64)
    wrong_rows = np.empty(lanes, np.uint64)
    scored_rows = np.empty(lanes, np.uint64)
    for c in range(starts.shape[0] - 1):
        for block in range(0, lanes, 4):
            offset = np.uint64(block)
            for v in range(num_vars):
                _store_lanes(values, np.uint64(v) * LANES, _four(observed_rows, np.uint64(v) * row + offset))
            wrong = zeros = (U0, U0, U0, U0)
            covered = zeros
            top = U0
            for i in range(np.uint64(starts[c]), np.uint64(starts[c + 1])):
                opcode = code[i] & 15
                argument = np.uint64(code[i] >> 4)
                if opcode == LOAD:
                    _store_lanes(stack, top, _four(values, argument * LANES))
                    top += LANES
                elif opcode == STORE:
                    top -= LANES
                    at = argument * row + offset
                    truth, cells = _four(observed_rows, at), _four(judged, at)
                    error = _and(_xor(_four(stack, top), truth), cells)
                    _store_lanes(values, argument * LANES, _xor(truth, error))
                    wrong, covered = _or(wrong, error), _or(covered, cells)
                    for p in range(num_panels):
                        of_panel = _and(error, _four(masks, np.uint64(p) * row + offset))
                        number = _popcount(of_panel[0]) + _popcount(of_panel[1])
                        counts[c, p, 1] += number + _popcount(of_panel[2]) + _popcount(of_panel[3])
                        if block == 0:
                            counts[c, p, 0] += scored_cells[argument, p]
                elif opcode == CONSTANT:
                    fill = ALL if argument else U0
                    _store_lanes(stack, top, (fill, fill, fill, fill))
                    top += LANES
                else:
                    base = top - argument * LANES
                    _store_lanes(stack, base, _combine(stack, base, top, opcode))
                    top = base + LANES
            _store_lanes(wrong_rows, offset, wrong)
            _store_lanes(scored_rows, offset, covered)
        _count_worlds(world_words, world_masks, world_panel, scored_rows, wrong_rows, counts[c])
