"""Families of models that fit data of one's own, and their type."""

from __future__ import annotations

from calibrant.solvers.logic.data import logic_family
from calibrant.solvers.logic.family import LogicFamily

__all__ = ["LogicFamily", "logic_family"]
