"""From the bytes of mechanism texts to the programs that dsl.replayscm._kernels_replay runs.

Only texts of which the meaning is plain are read: blanks between items and none behind '(', names of the table,
operators behind '(' with as many arguments as they take, at most MAX_OPEN of them open. Whatever else a text has, the
parser of dsl.formulas.text decides what it means, or says why it means nothing.

Positions are unsigned where they are used, so that none is taken for a negative one.
A name is the number that its bytes spell, the first one lowest, so that no two names of up to eight bytes are one.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dsl._jit import inlined, kernel

U8 = npt.NDArray[np.uint8]
U64 = npt.NDArray[np.uint64]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]

LOAD, STORE = 6, 8  # as in _kernels_replay
OPERATOR = 15  # opcode of what the table says of an operator: its argument is the operator's code
LINE_BREAK, BLANK, OPENING, CLOSING = 10, 32, 40, 41
MAX_OPEN = 64
SPREAD = np.uint64(0x9E3779B97F4A7C15)  # Fibonacci hashing: Knuth, The Art of Computer Programming 3, section 6.4
U1, BYTE, LAST, WORD = np.uint64(1), np.uint64(8), np.uint64(63), np.uint64(64)


@inlined
def _meaning(name: np.uint64, names: U64, meanings: I32, shift: np.uint64) -> int:
    """What the table says of a name, or -1."""
    last = np.uint64(names.shape[0] - 1)
    at = (name * SPREAD) >> shift
    while names[at] != 0:
        if names[at] == name:
            return int(meanings[at])
        at = (at + U1) & last
    return -1


@inlined
def _word(text: U8, i: int) -> tuple[np.uint64, int, int]:
    """What stands from there to the next blank, parenthesis or line break: as a name, its length, and where it ends."""
    name = place = np.uint64(0)
    begin = i
    byte = text[np.uint64(i)]
    while byte > CLOSING:  # a line break is behind the last
        name |= np.uint64(byte) << (place & LAST)
        place += BYTE
        i += 1
        byte = text[np.uint64(i)]
    return name, i - begin, i


@kernel
def read_texts(
    text: U8,  # [bytes] the mechanisms of all candidates, a line break behind each
    names: U64,  # [2 ** bits] the table of names, 0 where there is none; more than half of it is empty
    meanings: I32,  # [2 ** bits] of a variable the instruction that loads it, of an operator code << 4 | OPERATOR
    bits: int,
    arities: I64,  # [operators, 2] least and greatest number of arguments
    targets: I64,  # [k] the variable of the first mechanism of each candidate, of the second, and so on
    allowed: U64,  # [k] the variables that may occur in it, as bits
    code: I32,  # [bytes // 2 + k * c + 1] out: no instruction but STORE has less than two bytes
    ends: I64,  # [k * c] out: where each mechanism's program ends, which begins where the one before ended
    was_read: U8,  # [k * c] out: 0 if the text was not read; it has no program then
) -> int:  # the deepest stack
    which_allowed = allowed[0]
    shift = WORD - np.uint64(bits)
    of, below = np.empty(MAX_OPEN, np.int64), np.empty(MAX_OPEN, np.int64)
    size = text.shape[0]
    i = at = number = which = depth = height = deepest = 0
    is_read = True
    while i < size:
        byte = text[np.uint64(i)]
        if byte == BLANK:
            i += 1
        elif byte == LINE_BREAK:
            was_read[number] = is_read and depth == 0 and height == 1
            if was_read[number]:
                code[np.uint64(at)] = targets[which] << 4 | STORE
                at += 1
            else:
                at = ends[number - 1] if number else 0
            ends[number] = at
            number += 1
            which = which + 1 if which + 1 < targets.shape[0] else 0
            which_allowed = allowed[which]
            depth = height = 0
            is_read = True
            i += 1
        elif byte == CLOSING:
            is_read &= depth > 0
            if is_read:
                depth -= 1
                arity = height - below[depth]
                is_read = arities[of[depth], 0] <= arity <= arities[of[depth], 1]
                code[np.uint64(at)] = arity << 4 | of[depth]
                at += 1
                height = below[np.uint64(depth)] + 1
            i += 1
        else:
            opens = byte == OPENING
            i += opens
            name, length, end = _word(text, i)
            meaning = _meaning(name, names, meanings, shift) if 1 <= length <= 8 else -1
            is_read &= meaning >= 0 and (meaning & 15 == OPERATOR) == opens
            i = end
            # whatever ends a name is looked at next; a byte that is no item at all must not be passed by in silence
            if length == 0 and not opens:
                is_read = False
                i += 1
            if is_read and opens:
                is_read = depth < MAX_OPEN
                if is_read:
                    of[depth], below[depth] = meaning >> 4, height
                    depth += 1
            elif is_read:
                is_read = (which_allowed >> np.uint64(meaning >> 4)) & U1 != 0
                code[np.uint64(at)] = meaning
                at += 1
                height += 1
                deepest = max(deepest, height)
    return deepest
