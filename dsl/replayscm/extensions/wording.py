"""Extensions in the words of prompts: noise, hidden variables, worlds to forecast."""

from __future__ import annotations

from collections.abc import Iterator

from calibrant.dsl.replayscm.disclosure import natural
from calibrant.dsl.replayscm.extensions.extension import Extension, NoiseKind


def noise_text(extension: Extension) -> str:
    """Return what is disclosed of noise; empty without any."""
    noise = extension.noise
    if noise.is_silent:
        return ""
    if noise.kind is NoiseKind.RATE:
        rate = f"with probability {noise.grid[0][0]}"
    else:
        listed = ", ".join(f"{rate} (probability {prior})" for rate, prior in noise.grid)
        owner = "the same for all variables" if noise.kind is NoiseKind.SHARED else "for each variable independently"
        rate = f"with an unknown probability, {owner}, one of {listed}"
    return (
        f"Mechanisms err: the value of each variable that is neither root nor set is flipped {rate}, independently in "
        "every row, and variables behind it see the flipped value. A repeated world shows new errors."
    )


def hidden_text(extension: Extension) -> str:
    """Return what is disclosed of hidden variables; empty without any."""
    parts = [
        f"{name} (a function of {', '.join(parents)})" if parents else f"{name} (a function of observed variables)"
        for name, parents in extension.hidden.items()
    ]
    if not parts:
        return ""
    return (
        f"Never shown and never set: {', '.join(parts)}. Mechanisms may use them; give a hidden variable a "
        "mechanism if you mention it."
    )


def forecast_worlds_text(extension: Extension) -> Iterator[str]:
    """Yield the lines that list the worlds to forecast."""
    yield "Forecast: of each world below, of each row, the probability that a variable that is not set is 1:"
    for world in extension.forecast_worlds:
        setting = ", ".join(f"{v}={world.constants[v]}" for v in natural(world.constants)) or "nothing is set"
        yield f"- {setting}; roots {', '.join(extension.roots)} in turn: {' '.join(world.contexts)}"
