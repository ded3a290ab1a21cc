"""Hook of the build: the README as a package index shows it, where files of the checkout have no address.

Once the project has one, `Source` in `[project.urls]` says it (the address that a path such as docs/api.md is appended
to), and links and images lead there. Until then they are named, not linked.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

IMAGE = re.compile(r"!\[([^\]]*)\]\((?!https?:|#)([^)\s]+)\)")
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!https?:|#)([^)\s]+)\)")


class ReadmeHook(MetadataHookInterface):
    """Fills in `readme`, which is dynamic."""

    def update(self, metadata: dict[str, Any]) -> None:
        """metadata: the table [project]"""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        source = metadata.get("urls", {}).get("Source", "")
        metadata["readme"] = {"content-type": "text/markdown", "text": for_index(text, source)}


def for_index(text: str, source: str = "") -> str:
    """The text with no relative links: absolute below `source`, or the paths in words if there is none."""
    if source:
        base = source.rstrip("/")
        return LINK.sub(rf"[\1]({base}/\2)", IMAGE.sub(rf"![\1]({base}/\2)", text))
    return LINK.sub(r"\1 (`\2`)", IMAGE.sub(r"\1: `\2`", text))
