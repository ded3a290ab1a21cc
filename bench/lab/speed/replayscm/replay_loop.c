/* Rival of the replay kernel: the same programs and words, written the straightforward way in C.
 *
 * An instruction is argument << 4 | opcode, as in dsl/_kernels.py; c candidates, v variables, w words, p panels,
 * d worlds. scored_cells [v, p]; counts [c, p, 4]: scored cells, wrong cells, scored worlds, exact worlds.
 */
#include <stdint.h>
#include <string.h>

enum { NOT, AND, OR, XOR, IFF, IF, LOAD, CONSTANT, STORE };

void replay_candidates(const int32_t *code, const int64_t *starts, int64_t num_candidates, const uint64_t *observed,
                       const uint64_t *scored, const int64_t *scored_cells, int64_t num_vars, int64_t num_words,
                       const int64_t *world_words, const uint64_t *world_masks, const int64_t *world_panel,
                       int64_t num_worlds, const uint64_t *panel_masks, int64_t num_panels, uint64_t *stack,
                       uint64_t *values, uint64_t *wrong_rows, uint64_t *scored_rows, int64_t *counts)
{
    const int64_t n = num_words;
    for (int64_t c = 0; c < num_candidates; c++) {
        int64_t *count = counts + c * num_panels * 4;
        uint64_t *restrict top = stack; /* first free slot */
        memcpy(values, observed, sizeof(uint64_t) * num_vars * n);
        memset(wrong_rows, 0, sizeof(uint64_t) * n);
        memset(scored_rows, 0, sizeof(uint64_t) * n);
        memset(count, 0, sizeof(int64_t) * num_panels * 4);
        for (int64_t i = starts[c]; i < starts[c + 1]; i++) {
            const int32_t argument = code[i] >> 4;
            uint64_t *first;
            switch (code[i] & 15) {
            case LOAD:
                for (int64_t w = 0; w < n; w++) top[w] = values[argument * n + w];
                top += n;
                break;
            case CONSTANT:
                memset(top, argument ? 0xFF : 0, sizeof(uint64_t) * n);
                top += n;
                break;
            case NOT:
                for (int64_t w = 0; w < n; w++) top[w - n] = ~top[w - n];
                break;
            case AND:
                first = top - argument * n;
                for (int a = 1; a < argument; a++)
                    for (int64_t w = 0; w < n; w++) first[w] &= first[a * n + w];
                top = first + n;
                break;
            case OR:
                first = top - argument * n;
                for (int a = 1; a < argument; a++)
                    for (int64_t w = 0; w < n; w++) first[w] |= first[a * n + w];
                top = first + n;
                break;
            case XOR:
                first = top - argument * n;
                for (int a = 1; a < argument; a++)
                    for (int64_t w = 0; w < n; w++) first[w] ^= first[a * n + w];
                top = first + n;
                break;
            case IFF:
                first = top - argument * n;
                for (int64_t w = 0; w < n; w++) {
                    uint64_t every = first[w], some = first[w];
                    for (int a = 1; a < argument; a++) {
                        every &= first[a * n + w];
                        some |= first[a * n + w];
                    }
                    first[w] = every | ~some;
                }
                top = first + n;
                break;
            case IF:
                first = top - 3 * n;
                for (int64_t w = 0; w < n; w++)
                    first[w] = (first[w] & first[n + w]) | (~first[w] & first[2 * n + w]);
                top = first + n;
                break;
            default: { /* STORE */
                const uint64_t *seen = observed + argument * n, *judged = scored + argument * n;
                uint64_t *value = values + argument * n;
                top -= n;
                for (int64_t w = 0; w < n; w++) {
                    const uint64_t error = (top[w] ^ seen[w]) & judged[w];
                    value[w] = seen[w] ^ error;
                    wrong_rows[w] |= error;
                    scored_rows[w] |= judged[w];
                    if (error)
                        for (int64_t p = 0; p < num_panels; p++)
                            count[p * 4 + 1] += __builtin_popcountll(error & panel_masks[p * n + w]);
                }
                for (int64_t p = 0; p < num_panels; p++) count[p * 4] += scored_cells[argument * num_panels + p];
            }
            }
        }
        for (int64_t d = 0; d < num_worlds; d++) {
            uint64_t cells = 0, errors = 0;
            for (int64_t w = world_words[2 * d]; w < world_words[2 * d + 1]; w++) {
                cells |= scored_rows[w] & world_masks[d * n + w];
                errors |= wrong_rows[w] & world_masks[d * n + w];
            }
            count[world_panel[d] * 4 + 2] += cells != 0;
            count[world_panel[d] * 4 + 3] += cells != 0 && errors == 0;
        }
    }
}
