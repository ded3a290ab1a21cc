"""Nothing here may depend on what a hub of models answers."""

from __future__ import annotations

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # before anything imports its client
