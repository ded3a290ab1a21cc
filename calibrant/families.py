"""Families of models that fit data of one's own."""

from __future__ import annotations

from calibrant.solvers.logic.data import logic_family

__all__ = ["logic_family"]
