"""From the bytes of mechanism texts to the programs that dsl.replayscm._kernels_replay runs, and to what they come to.

Only texts of which the meaning is plain are read: blanks between items and none behind '(', names of the table,
operators behind '(' with as many arguments as they take, at most MAX_OPEN of them open. Whatever else a text has, the
parser of dsl.formulas.text decides what it means, or says why it means nothing.

Positions are unsigned where they are used, so that none is taken for a negative one.
A name is the number that its bytes spell, the first one lowest, so that no two names of up to eight bytes are one.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from calibrant.dsl._jit import inline_kernel, kernel

U8 = npt.NDArray[np.uint8]
U64 = npt.NDArray[np.uint64]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]

NOT, AND, OR, XOR, IFF, IF, LOAD, STORE = 0, 1, 2, 3, 4, 5, 6, 8  # as in _kernels_replay
OPERATOR = 15  # opcode of what the table says of an operator: its argument is the operator's code
LINE_BREAK, BLANK, OPENING, CLOSING = 10, 32, 40, 41
MAX_OPEN = 64
MAX_HEIGHT = 128  # of the stack of a text that is judged
COUNT_BITS = 10
MAX_COUNTED_NODES = 1 << COUNT_BITS  # of such a text, so that a count has room in its bits
FACTS = 7
AS_OBSERVED, WRONG = 1, 2  # of a mechanism: all that it mentions is simulated as observed; it is wrong in some row
RIGHT, REFUSED, CIRCLE, OTHER = 0, 1, 2, 3  # what becomes of a candidate
SPREAD = np.uint64(0x9E3779B97F4A7C15)  # Fibonacci hashing: Knuth, The Art of Computer Programming 3, section 6.4
U1, BYTE, LAST, WORD = np.uint64(1), np.uint64(8), np.uint64(63), np.uint64(64)


@inline_kernel
def _meaning(name: np.uint64, names: U64, meanings: I32, shift: np.uint64) -> int:
    """Return the entry of a name in the table, or -1."""
    last = np.uint64(names.shape[0] - 1)
    at = (name * SPREAD) >> shift
    while names[at] != 0:
        if names[at] == name:
            return int(meanings[at])
        at = (at + U1) & last
    return -1


@inline_kernel
def _word(text: U8, i: int) -> tuple[np.uint64, int, int]:
    """Return the token up to the next blank, parenthesis or line break: as a name, its length and its end."""
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


@kernel
def _run(code: I32, begin: int, end: int, columns: U64, width: int, stack: U64) -> None:
    """One program without its STORE on columns [v * width]; the result is the first on the stack [height * width]."""
    top = 0
    for i in range(np.uint64(begin), np.uint64(end)):
        opcode, argument = int(code[i] & 15), int(code[i] >> 4)
        if opcode == LOAD:
            for w in range(width):
                stack[np.uint64(top + w)] = columns[np.uint64(argument * width + w)]
            top += width
            continue
        base = top - argument * width
        for w in range(width):
            first = disjunction = stack[np.uint64(base + w)]
            if opcode == NOT:
                first = ~first
            elif opcode == IF:
                first = (first & stack[np.uint64(base + width + w)]) | (~first & stack[np.uint64(base + 2 * width + w)])
            else:
                for at in range(base + width + w, top, width):
                    operand = stack[np.uint64(at)]
                    disjunction |= operand
                    if opcode == XOR:
                        first ^= operand
                    elif opcode != OR:
                        first &= operand
                first = disjunction if opcode == OR else first | ~disjunction if opcode == IFF else first
            stack[np.uint64(base + w)] = first
        top = base + width


@inline_kernel
def _describe(code: I32, begin: int, end: int, depths: I64, facts: I64) -> None:
    """Nodes, longest path, variables as bits, and of the operators how often each occurs and in which order first."""
    height = counts = order = num_operators = 0
    mentions = np.uint64(0)
    for i in range(np.uint64(begin), np.uint64(end)):
        opcode, argument = int(code[i] & 15), int(code[i] >> 4)
        if opcode == LOAD:
            mentions |= U1 << np.uint64(argument)
            depths[height] = 1
            height += 1
            continue
        if (counts >> (COUNT_BITS * opcode)) & (MAX_COUNTED_NODES - 1) == 0:
            order |= (opcode + 1) << (4 * num_operators)
            num_operators += 1
        counts += 1 << (COUNT_BITS * opcode)
        height -= argument
        deepest = depths[height]
        for at in range(height + 1, height + argument):
            deepest = max(deepest, depths[at])
        depths[height] = deepest + 1
        height += 1
    facts[0], facts[1], facts[2], facts[3], facts[4] = end - begin, depths[0], np.int64(mentions), counts, order


@inline_kernel
def _sort_topologically(facts: I64, targets: I64, order: I64) -> bool:
    """Find the first topological order of the mention graph; return False for a cycle."""
    waiting = np.int64(0)
    for j in range(targets.shape[0]):
        waiting |= 1 << targets[j]
    for place in range(targets.shape[0]):
        chosen = -1
        for j in range(targets.shape[0]):
            if chosen < 0 and (waiting >> targets[j]) & 1 and facts[j, 2] & waiting == 0:
                chosen = j
        if chosen < 0:
            return False
        order[place] = chosen
        waiting ^= 1 << targets[chosen]
    return True


@kernel
def judge_texts(
    text: U8,  # as in read_texts, of one candidate, in an order in which it may be evaluated
    names: U64,
    meanings: I32,
    bits: int,
    arities: I64,
    targets: I64,  # [k]
    allowed: U64,  # [k]
    code: I32,
    observed: U64,  # [v * w]
    scored: U64,  # [v * w] rows in which the variable is not clamped
    stack: U64,  # [MAX_HEIGHT * max(w, 1)] scratch
    projections: U64,  # [6] tables of the variables of a function of six
    was_read: U8,  # [k] out
    ends: I64,  # [k] out: of the programs
    facts: I64,  # [k, FACTS] out: as _describe says; AS_OBSERVED and WRONG, as it is; its truth table
    order: I64,  # [k] out: in which they are evaluated
    wrong: U64,  # [k, w] out: rows in which it is wrong
) -> (
    int
):  # RIGHT if it is nowhere wrong, in the order of places; REFUSED if a text was not read, CIRCLE without an order
    num, width = wrong.shape
    deepest = read_texts(text, names, meanings, bits, arities, targets, allowed, code, ends, was_read)
    if deepest > MAX_HEIGHT:
        return REFUSED
    depths = np.empty(MAX_HEIGHT, np.int64)
    begin = 0
    for j in range(num):
        if not was_read[j] or ends[j] - begin > MAX_COUNTED_NODES:
            return REFUSED
        _describe(code, begin, ends[j] - 1, depths, facts[j])
        begin = ends[j]
    if not _sort_topologically(facts, targets, order):
        return CIRCLE
    simulated = observed.copy()
    tables = np.zeros(64, np.uint64)
    off, verdict = 0, RIGHT
    for place in range(num):
        j = order[place]
        if j != place:
            verdict = OTHER
        begin, end, at = ends[j - 1] if j else 0, ends[j] - 1, targets[j] * width
        mentions, num_projections = facts[j, 2], 0
        facts[j, 5] = AS_OBSERVED if mentions & off == 0 else 0
        _run(code, begin, end, simulated, width, stack)
        for w in range(width):
            wrong[j, w] = (stack[w] ^ observed[at + w]) & scored[at + w]
            simulated[at + w] ^= wrong[j, w]
            if wrong[j, w]:
                facts[j, 5] |= WRONG
                off |= 1 << targets[j]
                verdict = OTHER
        for v in range(64):
            if (mentions >> v) & 1 and num_projections < 6:
                tables[v] = projections[num_projections]
                num_projections += 1
        _run(code, begin, end, tables, 1, stack)
        facts[j, 6] = np.int64(stack[0])
    return verdict
