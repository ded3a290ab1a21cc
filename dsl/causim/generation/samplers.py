"""Bodies of U_*: even and weighted choices, thresholds, and choices with an optional suffix; two to six values."""

from __future__ import annotations

from calibrant.dsl.causim.generation.draws import Draws
from calibrant.dsl.causim.generation.words import NOISE_WORDS, Vocabulary


def sampler(draws: Draws, vocabulary: Vocabulary) -> str:
    """Return the body of a sampler."""
    words = list(draws.sample(NOISE_WORDS[vocabulary], 6))
    kind = draws.below(5)
    if kind == 0:
        return f"return random.choice({words[: 2 + draws.below(5)]!r})"
    if kind == 1:
        chosen = words[: 2 + draws.below(4)]
        weights = [1 + draws.below(5) for _ in chosen]
        return f"return random.choices({chosen!r}, weights={weights!r})[0]"
    if kind == 2:
        pool, suffix = words[: 2 + draws.below(2)], draws.choice(["x", "k", "v"])
        share = (1 + draws.below(9)) / 10
        lines = [f"pick = random.choice({pool!r})", f"if random.random() < {share}:", "    return pick"]
        return "\n".join([*lines, f"return pick + {suffix!r}"])
    if kind == 3:
        low = 1 + draws.below(5)
        lines = ["r = random.random()", f"if r < {low / 10}:", f"    return {words[0]!r}"]
        lines += [f"elif r < {(low + 1 + draws.below(9 - low)) / 10}:", f"    return {words[1]!r}"]
        return "\n".join([*lines, f"return {words[2]!r}"])
    return f"if random.choice([True, False]):\n    return {words[0]!r}\nreturn random.choice({words[1:4]!r})"
