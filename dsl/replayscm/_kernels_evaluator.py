"""Kernels of dsl.replayscm.evaluator: programs from texts, programs on packed panels, truth tables on rows.

Dimension letters: c = candidates, v = variables, w = words, p = panels, d = worlds or members, i = instructions,
m = mechanisms, r = rows. An instruction is `argument << 4 | opcode`; opcodes up to `if` are the codes of
dsl.formulas.formula and their argument is the arity.

Programs run on four words at a time: operands are loaded before anything is stored, so that four words become one
vector instruction. Indices are unsigned, which spares numba's check for negative ones.

Only plain texts are read: blanks between items and none behind '(', names of the table, operators behind '(' with an
admissible number of arguments, at most MAX_OPEN of them open. All other texts are left to the parser of
dsl.formulas.text. A name is a little-endian number of up to eight bytes, so distinct names have distinct numbers.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from calibrant.dsl._jit import inline_kernel, kernel

U8 = npt.NDArray[np.uint8]
U64 = npt.NDArray[np.uint64]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
Four: TypeAlias = "tuple[np.uint64, np.uint64, np.uint64, np.uint64]"

# Opcodes 0 to 5 are not, and, or, xor, iff, if; numba compiles these numbers into the kernels of this file.
NOT, AND, OR, XOR, IFF, IF, LOAD, CONSTANT, STORE = 0, 1, 2, 3, 4, 5, 6, 7, 8
LANES = np.uint64(4)
ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
U0, U1, U2, U3 = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(3)
OPERATOR = 15  # opcode of an operator's name in the table; its argument is the operator's code
LINE_BREAK, BLANK, OPENING, CLOSING = 10, 32, 40, 41
MAX_OPEN = 64
MAX_HEIGHT = 128  # stack depth of a judged text
COUNT_BITS = 10
MAX_COUNTED_NODES = 1 << COUNT_BITS  # nodes of a judged text, so that an operator's count fits its bits
FACTS = 7
AS_OBSERVED, WRONG = 1, 2  # flags of a mechanism: its mentioned values are as observed; it is wrong in some row
RIGHT, REFUSED, CIRCLE, OTHER = 0, 1, 2, 3  # outcome of a candidate
SPREAD = np.uint64(0x9E3779B97F4A7C15)  # Fibonacci hashing: Knuth, The Art of Computer Programming 3, section 6.4
BYTE, LAST, WORD = np.uint64(8), np.uint64(63), np.uint64(64)


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
    """Apply an operator to the stack entries from `base` to `end`, four words each."""
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
    """Return the rows of words [r, w] one after another, each padded with zeros to `lanes` words."""
    out = np.zeros(words.shape[0] * lanes, np.uint64)
    for r in range(words.shape[0]):
        for w in range(words.shape[1]):
            out[r * lanes + w] = words[r, w]
    return out


@kernel
def replay_candidates(
    code: I32,  # [i] programs of all candidates, one after another
    starts: I64,  # [c + 1] offset of each program in code
    observed: U64,  # [v, w]
    scored: U64,  # [v, w] rows in which the variable is not clamped
    scored_cells: I64,  # [v, p] number of these rows in each panel
    world_words: I64,  # [d, 2] first word of a world and one past its last
    world_masks: U64,  # [d, w] rows of each world
    world_panel: I64,  # [d] index of the panel of each world
    panel_masks: U64,  # [p, w] rows of each panel
    max_stack: int,  # greatest stack depth of any program
    counts: I64,  # [c, p, 4] out, zeros before: scored cells, wrong cells, scored worlds, exact worlds
    simulated: U64,  # [c, v, w] out: the values of all variables; shape [0, v, w]: they are not returned
) -> None:
    """Replay every candidate: clamped cells and variables without a program as observed, all else computed."""
    num_vars, num_words = observed.shape
    num_panels = panel_masks.shape[0]
    lanes = (num_words + 3) // 4 * 4
    row = np.uint64(lanes)
    observed_rows, scored_words, masks = (
        _pad_rows(observed, lanes),
        _pad_rows(scored, lanes),
        _pad_rows(panel_masks, lanes),
    )
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
            scored_lanes = zeros
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
                    truth, cells = _four(observed_rows, at), _four(scored_words, at)
                    error = _and(_xor(_four(stack, top), truth), cells)
                    _store_lanes(values, argument * LANES, _xor(truth, error))
                    wrong, scored_lanes = _or(wrong, error), _or(scored_lanes, cells)
                    for p in range(num_panels):
                        panel_error = _and(error, _four(masks, np.uint64(p) * row + offset))
                        num_wrong = _popcount(panel_error[0]) + _popcount(panel_error[1])
                        counts[c, p, 1] += num_wrong + _popcount(panel_error[2]) + _popcount(panel_error[3])
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
            _store_lanes(scored_rows, offset, scored_lanes)
            for v in range(num_vars if c < simulated.shape[0] else 0):
                for w in range(block, min(block + 4, num_words)):
                    simulated[c, v, w] = values[4 * v + w - block]
        _count_worlds(world_words, world_masks, world_panel, scored_rows, wrong_rows, counts[c])


@inline_kernel
def _transpose(words: U64, size: int) -> None:
    """Exchange rows and columns of the first `size` words, a power of two (Warren, Hacker's Delight, section 7-3)."""
    half = size >> 1
    low = (U1 << np.uint64(half)) - U1
    while half:
        shift = np.uint64(half)
        for begin in range(0, size, 2 * half):
            for k in range(begin, begin + half):
                swapped = ((words[k] >> shift) ^ words[k + half]) & low
                words[k + half] ^= swapped
                words[k] ^= swapped << shift
        half >>= 1
        low ^= low << np.uint64(half)


@inline_kernel
def _table_word(mask: int, table: np.uint64, columns: U64, leaves: U64) -> np.uint64:
    """Evaluate a truth table in 64 rows: each parent, lowest first, halves the table (Shannon expansion)."""
    if mask == 0:
        return U0 - (table & U1)
    parent = 0
    while not mask >> parent & 1:
        parent += 1
    mask >>= parent + 1
    num_leaves = 1
    bits = mask
    while bits:
        bits &= bits - 1
        num_leaves *= 2
    column = columns[parent]
    for leaf in range(num_leaves):
        low = U0 - (table >> np.uint64(2 * leaf) & U1)
        high = U0 - (table >> np.uint64(2 * leaf + 1) & U1)
        leaves[leaf] = low ^ (low ^ high) & column
    while mask:
        parent += 1
        if mask & 1:
            column = columns[parent]
            num_leaves >>= 1
            for leaf in range(num_leaves):
                low = leaves[2 * leaf]
                leaves[leaf] = low ^ (low ^ leaves[2 * leaf + 1]) & column
        mask >>= 1
    value: np.uint64 = leaves[0]
    return value


@kernel
def _load_columns(words: U64, begin: int, end: int, size: int, columns: U64) -> None:
    for r in range(size):
        columns[r] = words[begin + r] if begin + r < end else U0
    _transpose(columns, size)


@kernel
def replay_tables(
    order: I64,  # [d, m] variables with mechanisms of each candidate, parents first
    masks: I64,  # [d, m] their parent sets, as bits
    tables: U64,  # [d, m] their truth tables; the lowest parent is bit 0 of a row's index
    words: U64,  # [r] values of targets and roots, bit v for variable v; other bits are not read
    targets: U64,  # [r] intervention targets, as bits
    flips: U64,  # [d, r] cells that noise flips; [0, r] for none
    results: U64,  # [d, r] out
) -> None:
    """Replay each candidate in each row, 64 rows at a time: targets and roots as given, everything else computed."""
    num_rows = words.shape[0]
    used_variables = U0
    for r in range(num_rows):
        used_variables |= words[r] | targets[r]
    for d in range(order.shape[0]):
        for i in range(order.shape[1]):
            used_variables |= U1 << np.uint64(order[d, i]) | np.uint64(masks[d, i])  # a parent may be 0 in all rows
    inputs, clamped, flipped = np.empty(64, np.uint64), np.empty(64, np.uint64), np.zeros(64, np.uint64)
    columns, leaves = np.empty(64, np.uint64), np.empty(32, np.uint64)
    for begin in range(0, num_rows, 64):
        end = min(begin + 64, num_rows)
        # no larger than rows and variables need: the work of a transposition grows with size * log(size)
        size = 1
        while size < end - begin or (size < 64 and used_variables >> np.uint64(size)):
            size *= 2
        valid_rows = ALL >> np.uint64(64 - size)  # bits beyond have no row
        _load_columns(words, begin, end, size, inputs)
        _load_columns(targets, begin, end, size, clamped)
        for d in range(order.shape[0]):
            for row in range(size):
                columns[row] = inputs[row]
            if d < flips.shape[0]:
                _load_columns(flips[d], begin, end, size, flipped)
            for i in range(order.shape[1]):
                v = np.uint64(order[d, i])
                value = _table_word(masks[d, i], tables[d, i], columns, leaves) ^ flipped[v]
                columns[v] = value ^ (value ^ inputs[v]) & clamped[v]
            _transpose(columns, size)
            for r in range(end - begin):
                results[d, begin + r] = columns[r] & valid_rows


@inline_kernel
def _look_up(name: np.uint64, names: U64, meanings: I32, shift: np.uint64) -> int:
    """Return the entry of a name in the hash table, or -1."""
    last = np.uint64(names.shape[0] - 1)
    at = (name * SPREAD) >> shift
    while names[at] != 0:
        if names[at] == name:
            return int(meanings[at])
        at = (at + U1) & last
    return -1


@inline_kernel
def _scan_name(text: U8, i: int) -> tuple[np.uint64, int, int]:
    """Scan the name that begins at byte i; return its number, its length and the index of the byte after it."""
    name = shift = np.uint64(0)
    begin = i
    byte = text[np.uint64(i)]
    while byte > CLOSING:  # ends: a line break follows the last name
        name |= np.uint64(byte) << (shift & LAST)
        shift += BYTE
        i += 1
        byte = text[np.uint64(i)]
    return name, i - begin, i


@kernel
def read_texts(
    text: U8,  # [bytes] the mechanisms of all candidates, a line break behind each
    names: U64,  # [2 ** bits] hash table of names, 0 for an empty slot; more than half of it is empty
    meanings: I32,  # [2 ** bits] for a variable its load instruction, for an operator code << 4 | OPERATOR
    bits: int,
    arities: I64,  # [operators, 2] least and greatest number of arguments
    targets: I64,  # [k] the variable of each of a candidate's k mechanisms
    allowed: U64,  # [k] the variables that each mechanism may mention, as bits
    code: I32,  # [bytes // 2 + k * c + 1] out; that suffices: every instruction but STORE takes two bytes of text
    ends: I64,  # [k * c] out: end of each mechanism's program, which begins at the end of the previous one
    was_read: U8,  # [k * c] out: 0 if the text was not read and has an empty program
) -> int:  # greatest stack depth
    allowed_mask = allowed[0]
    shift = WORD - np.uint64(bits)
    open_operator, height_below = np.empty(MAX_OPEN, np.int64), np.empty(MAX_OPEN, np.int64)
    size = text.shape[0]
    i = at = text_index = mechanism_index = depth = height = deepest = 0
    is_read = True
    while i < size:
        byte = text[np.uint64(i)]
        if byte == BLANK:
            i += 1
        elif byte == LINE_BREAK:
            was_read[text_index] = is_read and depth == 0 and height == 1
            if was_read[text_index]:
                code[np.uint64(at)] = targets[mechanism_index] << 4 | STORE
                at += 1
            else:
                at = ends[text_index - 1] if text_index else 0
            ends[text_index] = at
            text_index += 1
            mechanism_index = mechanism_index + 1 if mechanism_index + 1 < targets.shape[0] else 0
            allowed_mask = allowed[mechanism_index]
            depth = height = 0
            is_read = True
            i += 1
        elif byte == CLOSING:
            is_read &= depth > 0
            if is_read:
                depth -= 1
                arity = height - height_below[depth]
                is_read = arities[open_operator[depth], 0] <= arity <= arities[open_operator[depth], 1]
                code[np.uint64(at)] = arity << 4 | open_operator[depth]
                at += 1
                height = height_below[np.uint64(depth)] + 1
            i += 1
        else:
            opens = byte == OPENING
            i += opens
            name, length, end = _scan_name(text, i)
            meaning = _look_up(name, names, meanings, shift) if 1 <= length <= 8 else -1
            is_read &= meaning >= 0 and (meaning & 15 == OPERATOR) == opens
            i = end
            # the byte after a name is handled next; one that begins no item makes the text unreadable
            if length == 0 and not opens:
                is_read = False
                i += 1
            if is_read and opens:
                is_read = depth < MAX_OPEN
                if is_read:
                    open_operator[depth], height_below[depth] = meaning >> 4, height
                    depth += 1
            elif is_read:
                is_read = (allowed_mask >> np.uint64(meaning >> 4)) & U1 != 0
                code[np.uint64(at)] = meaning
                at += 1
                height += 1
                deepest = max(deepest, height)
    return deepest


@kernel
def _run(code: I32, begin: int, end: int, columns: U64, width: int, stack: U64) -> None:
    """Run a program without its STORE on columns [v * width]; the result is entry 0 of the stack [height * width]."""
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
    """Write facts 0 to 4: nodes, depth, variables as bits, counts of operators, operators by first occurrence."""
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
    for position in range(targets.shape[0]):
        chosen = -1
        for j in range(targets.shape[0]):
            if chosen < 0 and (waiting >> targets[j]) & 1 and facts[j, 2] & waiting == 0:
                chosen = j
        if chosen < 0:
            return False
        order[position] = chosen
        waiting ^= 1 << targets[chosen]
    return True


@kernel
def judge_texts(
    text: U8,  # as in read_texts, of one candidate, mechanisms in the preferred evaluation order
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
    projections: U64,  # [6] truth tables of the arguments of a function of six
    was_read: U8,  # [k] out
    ends: I64,  # [k] out: ends of the programs
    facts: I64,  # [k, FACTS] out: those of _describe; AS_OBSERVED and WRONG flags; truth table
    order: I64,  # [k] out: mechanisms in evaluation order
    wrong: U64,  # [k, w] out: wrong rows of each mechanism
) -> int:  # RIGHT: no row is wrong, in the preferred order; REFUSED: a text was not read; CIRCLE: no order; else OTHER
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
    wrong_variables, verdict = 0, RIGHT
    for position in range(num):
        j = order[position]
        if j != position:
            verdict = OTHER
        begin, end, at = ends[j - 1] if j else 0, ends[j] - 1, targets[j] * width
        mentions, num_projections = facts[j, 2], 0
        facts[j, 5] = AS_OBSERVED if mentions & wrong_variables == 0 else 0
        _run(code, begin, end, simulated, width, stack)
        for w in range(width):
            wrong[j, w] = (stack[w] ^ observed[at + w]) & scored[at + w]
            simulated[at + w] ^= wrong[j, w]
            if wrong[j, w]:
                facts[j, 5] |= WRONG
                wrong_variables |= 1 << targets[j]
                verdict = OTHER
        for v in range(64):
            if (mentions >> v) & 1 and num_projections < 6:
                tables[v] = projections[num_projections]
                num_projections += 1
        _run(code, begin, end, tables, 1, stack)
        facts[j, 6] = np.int64(stack[0])
    return verdict
