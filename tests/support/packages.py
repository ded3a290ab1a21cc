"""Packages that there are adapters for, which only the environment of `make test-integrations` has."""

from __future__ import annotations

import importlib.util
import os

import pytest


def needs(*modules: str) -> None:
    """Skip the module that calls it, before it imports them, where one is missing; fail there under CI=true."""
    missing = [module for module in modules if importlib.util.find_spec(module) is None]
    if missing:
        reason = f"no {', '.join(missing)} in this environment; `make test-integrations` makes one that has it"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason, allow_module_level=True)
