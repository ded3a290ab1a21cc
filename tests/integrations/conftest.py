"""Nothing here may depend on what a hub of models answers, or on when the interpreter collects what others leave."""

from __future__ import annotations

import os
import warnings

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # before anything imports its client

# Inspect lets go of the receiving end of each sample's events without closing it (inspect_ai/hooks/_hooks.py,
# `drain_sample_events`, 0.3.285). In a cycle it lives until the garbage collector comes by: in whichever test that is,
# also one of another tool, where warnings are errors. Nothing of ours opens such a stream.
LEFT_BY_INSPECT = "ignore:Unclosed <MemoryObjectReceiveStream :ResourceWarning"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("filterwarnings", LEFT_BY_INSPECT)
    # after the last test pytest collects once more, with the filters that held before this file was read
    warnings.filterwarnings("ignore", "Unclosed <MemoryObjectReceiveStream ", ResourceWarning)
