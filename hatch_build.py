"""Hooks of the build: the five packages below `calibrant`, and the README as a package index shows it.

In a checkout dsl, solvers, audits, baselines and bench lie beside calibrant, which has a link to each (for editors and
type checkers); a wheel has the folders themselves. hatchling follows links only where told, hence the first hook.

Once the project has one, `Source` in `[project.urls]` says it (the address that a path such as docs/api.md is appended
to), and links and images lead there. Until then they are named, not linked.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

PICTURE = re.compile(r"<picture>.*?</picture>", re.DOTALL)
ADDRESS = re.compile(r'(?<= )(src|srcset|href)="(?!https?:|#)([^"]+)"')
ALT = re.compile(r'alt="([^"]*)"')
IMAGE = re.compile(r"!\[([^\]]*)\]\((?!https?:|#)([^)\s]+)\)")
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!https?:|#)([^)\s]+)\)")


FOLDERS = ("dsl", "solvers", "audits", "baselines", "bench")
NOT_SHIPPED = ("__pycache__", "lab")  # measurements of speed and limits are for a checkout


class PackagesHook(BuildHookInterface):
    """Puts the five packages below `calibrant` in a wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Map the five packages below calibrant/.

        version: "standard" or "editable"; an editable installation is the checkout
        """
        for name in FOLDERS if version != "editable" else ():
            for part in sorted(Path(self.root, name).iterdir()):
                if part.name not in NOT_SHIPPED:
                    build_data["force_include"][str(part)] = f"calibrant/{name}/{part.name}"


class ReadmeHook(MetadataHookInterface):
    """Fills in `readme`, which is dynamic."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the README of the package index.

        metadata: the table [project]
        """
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        source = metadata.get("urls", {}).get("Source", "")
        metadata["readme"] = {"content-type": "text/markdown", "text": for_index(text, source)}


def for_index(text: str, source: str = "") -> str:
    """Return the text with no relative links: absolute below `source`, or the paths in words if there is none.

    A picture without an address becomes its description.
    """
    if source:
        base = source.rstrip("/")
        text = ADDRESS.sub(rf'\1="{base}/\2"', text)
        return LINK.sub(rf"[\1]({base}/\2)", IMAGE.sub(rf"![\1]({base}/\2)", text))
    text = PICTURE.sub(lambda match: "".join(f"*{alt}*" for alt in ALT.findall(match[0])), text)
    return LINK.sub(r"\1 (`\2`)", IMAGE.sub(r"\1: `\2`", text))
