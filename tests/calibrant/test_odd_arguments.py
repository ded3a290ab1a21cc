"""Whatever a public function is given: one line that says what is wrong, and nothing is started or written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import calibrant
from calibrant.bench.core.registry import bundled_pool, bundled_sample

POOL = bundled_pool("ordered")
ODD: Mapping[str, Any] = {
    "none": None,
    "list": [1, 2],
    "object": {"a": 1},
    "bytes": b"x",
    "nul": "a\0b",
    "set": {1},
    "thing": object(),
    "nan": float("nan"),
    "empty": "",
    "tuple": (1,),
}
LOOSE: Any = calibrant  # without the types of its names
ITEMS = {"replayscm": POOL} | {name: bundled_sample(name) for name in ("blickets", "causalab", "causim", "logic")}
CALLS: Mapping[str, Callable[[Any, Path], Any]] = {
    "load_pool": lambda odd, out: LOOSE.load_pool(odd),
    "load_pool(of)": lambda odd, out: LOOSE.load_pool(POOL, of=odd if odd is not None else 0),
    **{
        name: lambda odd, out, name=name: getattr(calibrant, name)(odd)  # type: ignore[misc]
        for name in (
            "solve",
            "version_space",
            "audit",
            "separate",
            "harden",
            "open_episode",
            "text_episode",
            "protocols",
            "generate",
        )
    },
    "score": lambda odd, out: LOOSE.score(odd, "x"),
    "score_many": lambda odd, out: list(LOOSE.score_many(odd if odd else None, ["x"])),
    "generate(of)": lambda odd, out: LOOSE.generate(1, of=odd),
    "run": lambda odd, out: LOOSE.run(odd, POOL, out),
    "run(pool)": lambda odd, out: LOOSE.run("posterior", odd, out),
    "run(out)": lambda odd, out: LOOSE.run("posterior", POOL, odd),
    "run(workers)": lambda odd, out: LOOSE.run("posterior", POOL, out, workers=odd),
    "run(budget)": lambda odd, out: LOOSE.run("posterior", POOL, out, budget=-1 if odd is None else odd),
    "run(cluster)": lambda odd, out: LOOSE.run("posterior", POOL, out, cluster=3 if odd is None else odd),
    "run(retry_crashed)": lambda odd, out: LOOSE.run("posterior", POOL, out, retry_crashed=odd),
}


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("call", CALLS)
def test_an_odd_argument_is_one_line(call: str, odd: str, tmp_path: Path) -> None:
    with pytest.raises((calibrant.CalibrantError, TypeError)) as error:
        CALLS[call](ODD[odd], tmp_path / "out")
    assert str(error.value)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 500
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("odd", ODD)
def test_what_is_no_path_is_an_error_of_ours(odd: str, tmp_path: Path) -> None:
    with pytest.raises(calibrant.CalibrantError):
        calibrant.load_pool(ODD[odd])
    with pytest.raises(calibrant.CalibrantError, match="pool must be a path"):
        calibrant.run("posterior", ODD[odd], tmp_path)


@pytest.mark.parametrize("name", ITEMS)
@pytest.mark.parametrize("odd", ODD)
def test_an_odd_answer_or_option_never_ends_otherwise(odd: str, name: str) -> None:
    item: Any = calibrant.load_pool(ITEMS[name]).items[0]
    calls: tuple[Callable[[], object], ...] = (
        lambda: calibrant.score(item, ODD[odd]),
        lambda: calibrant.score(item, "x", extractor=ODD[odd]),
        lambda: calibrant.score(item, "x", steps=ODD[odd]),
        lambda: calibrant.version_space(item, steps=ODD[odd], nonsense=1),  # type: ignore[call-overload]
    )
    for call in calls:
        said = "scored"
        try:
            call()
        except (calibrant.CalibrantError, TypeError) as error:
            said = str(error)
        assert said
        assert "\n" not in said
