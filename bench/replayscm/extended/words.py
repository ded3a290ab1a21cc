"""Extensions of an item as `show` prints them."""

from __future__ import annotations

from collections.abc import Iterator

from calibrant.dsl.replayscm.extensions.extension import Extension, NoiseKind


def extension_lines(extension: Extension) -> Iterator[str]:
    """Yield the lines of class, noise, hidden variables, allowance and question."""
    yield f"class       at most {extension.max_parents} functional parents, prior {extension.prior.value}"
    noise = extension.noise
    if not noise.is_silent:
        listed = ", ".join(f"{rate} ({prior})" for rate, prior in noise.grid)
        unknown = "one unknown rate of" if noise.kind is NoiseKind.SHARED else "a rate for each variable of"
        yield f"noise       {noise.grid[0][0] if noise.kind is NoiseKind.RATE else f'{unknown} {listed}'}"
    for name, parents in extension.hidden.items():
        yield f"hidden      {name} of {'any observed variables' if parents is None else ' '.join(parents)}"
    allowance = extension.allowance
    if allowance is not None:
        rows = f"{allowance.rows} rows, contexts {allowance.contexts.value}"
        yield f"allowance   {allowance.worlds} worlds of {rows}, up to {allowance.max_targets} targets"
    if extension.forecast_worlds:
        yield f"forecast    {len(extension.forecast_worlds)} worlds"
        for world in extension.forecast_worlds:
            setting = " ".join(f"{v}={bit}" for v, bit in world.constants.items()) or "none"
            yield f"  do({setting}) contexts {' '.join(world.contexts)}"
