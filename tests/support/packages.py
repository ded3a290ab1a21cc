"""Packages of extras, which only the environments of `make test` and `make test-integrations` have."""

from __future__ import annotations

import importlib.util
import os

import pytest


def needs(*modules: str) -> None:
    """Skip the module or test that calls it, before it imports them, where one is missing; fail there under CI=true."""
    missing = [module for module in modules if importlib.util.find_spec(module) is None]
    if missing:
        reason = f"no {', '.join(missing)} in this environment; `make test` and `make test-integrations` make their own"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason, allow_module_level=True)
