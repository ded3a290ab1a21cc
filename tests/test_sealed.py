"""What is sealed in an episode stays behind `act`: nobody who plays names a private member of one."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from calibrant.dsl.blickets.episode import BlicketEpisode
from calibrant.solvers.blickets.conditions import NoiseSpace, OrderSpace, SwitchSpace
from calibrant.solvers.blickets.exact import UniversalSpace
from calibrant.solvers.blickets.space import StaticSpace
from calibrant.solvers.space import Space

CHECKOUT = Path(__file__).resolve().parent.parent
PLAYERS = ("solvers", "baselines")


def _foreign_private(tree: ast.AST) -> list[str]:
    """Private attributes of anything but self and cls, dunders apart, and private names asked for as text."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and _private(node.attr):
            if not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")):
                found.append(node.attr)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("getattr", "object.__getattribute__", "vars"):
            found += [str(a.value) for a in node.args if isinstance(a, ast.Constant) and _private(str(a.value))]
    return found


def _private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def _sealed_members() -> set[str]:
    members: set[str] = set(BlicketEpisode.__slots__)
    assert all(_private(name) for name in members)
    return members


@pytest.mark.parametrize("package", PLAYERS)
def test_no_player_names_a_private_member_of_an_episode(package: str) -> None:
    sealed = _sealed_members()
    sources = sorted((CHECKOUT / package / "blickets").rglob("*.py"))
    assert sources
    named = {path.name: _foreign_private(ast.parse(path.read_text(encoding="utf-8"))) for path in sources}
    assert {name: bad for name, some in named.items() if (bad := sorted(set(some) & sealed))} == {}


def test_a_private_name_is_noticed_in_every_spelling() -> None:
    for source in ("episode._item", "getattr(episode, '_item')", "a.b._item.sealed"):
        assert "_item" in _foreign_private(ast.parse(source))
    assert _foreign_private(ast.parse("self._item, cls._item, x.__class__")) == []


def _as_spaces() -> list[Space]:  # type: ignore[type-arg]  # the members differ
    """Return spaces of detectors as spaces, which the type checker sees."""
    return [StaticSpace.full(2), SwitchSpace.full(2), OrderSpace.full(2), NoiseSpace.full(2), UniversalSpace.full(2)]


def test_every_space_names_its_class() -> None:
    assert len({space.in_words for space in _as_spaces()}) == 5
