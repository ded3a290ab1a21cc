"""Hooks of the build: the five packages below `calibrant`, and the README as a package index shows it.

In a checkout dsl, solvers, audits, baselines and bench lie beside calibrant, which has a link to each (for editors and
type checkers); a wheel has the folders themselves. hatchling follows links only where told, hence the first hook.

With CALIBRANT_KERNELS set the kernels are compiled while the wheel is built, in an environment that has what Calibrant
requires, and the wheel is one of this Python and system (docs/decisions/0008-kernels-in-wheels.md).

The project's addresses are those of the repository that CALIBRANT_REPOSITORY names (https://HOST/OWNER/NAME; the
workflow of releases sets it to its own): URLs of the metadata, and the links and images of the README. CALIBRANT_EMAIL
is where the authors are written to. Without them the metadata have no address, and links are named.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
import sysconfig
import tempfile
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


class PackagesHook(BuildHookInterface[Any]):
    """Puts the five packages below `calibrant` in a wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Map the five packages below calibrant/.

        version: "standard" or "editable"; an editable installation is the checkout
        """
        for name in FOLDERS if version != "editable" else ():
            for part in sorted(Path(self.root, name).iterdir()):
                if part.name not in NOT_SHIPPED:
                    build_data["force_include"][str(part)] = f"calibrant/{name}/{part.name}"
        if version != "editable" and os.environ.get("CALIBRANT_KERNELS"):
            kernels = _compile_kernels(Path(self.root))
            build_data["force_include"][str(kernels)] = f"calibrant/dsl/{kernels.name}"
            build_data["tag"] = f"cp{sys.version_info.major}{sys.version_info.minor}-none-{_platform_tag()}"


COMPILE = """
import sys
from pathlib import Path
from calibrant.bench.lab.speed.startup import run_commands
from calibrant.dsl._jit import shipped_file, write_compiled
path = Path(sys.argv[1], shipped_file().name)
run_commands()
write_compiled(path)
print(path)
"""


def _compile_kernels(root: Path) -> Path:
    """Compile for every processor of this architecture that is not too old, and return the file."""
    folder = Path(tempfile.mkdtemp(prefix="calibrant-kernels-"))
    cpu = "x86-64-v3" if platform.machine().lower() in ("x86_64", "amd64") else "generic"
    settings = {
        "PYTHONPATH": str(root),
        "NUMBA_CACHE_DIR": str(folder),
        "NUMBA_CPU_NAME": cpu,
        "NUMBA_CPU_FEATURES": "",
    }
    line = [sys.executable, "-c", COMPILE, str(folder)]
    done = subprocess.run(line, cwd=root, env=os.environ | settings, stdout=subprocess.PIPE, text=True, check=True)
    return Path(done.stdout.splitlines()[-1])


def _platform_tag() -> str:
    """Return the tag of the system; kernels call no library, so any Linux that numba's own wheels allow will do."""
    tag = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    return tag.replace("linux_", "manylinux_2_17_", 1) if tag.startswith("linux_") else tag


class AddressHook(MetadataHookInterface):
    """Fills in `readme`, `authors` and `urls`, which are dynamic."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the README of the package index and the project's addresses.

        metadata: the table [project]
        """
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        repository = os.environ.get("CALIBRANT_REPOSITORY", "").rstrip("/")
        metadata["readme"] = {"content-type": "text/markdown", "text": for_index(text, repository)}
        email = os.environ.get("CALIBRANT_EMAIL")
        metadata["authors"] = [{"name": "The Calibrant authors", **({"email": email} if email else {})}]
        metadata["urls"] = addresses(repository)


def addresses(repository: str) -> dict[str, str]:
    """Return the URLs of the metadata by label; none without a repository."""
    pages = {
        "Source": "",
        "Documentation": "/blob/main/docs/index.md",
        "Changelog": "/blob/main/CHANGELOG.md",
        "Issues": "/issues",
    }
    return {label: f"{repository}{page}" for label, page in pages.items()} if repository else {}


def for_index(text: str, repository: str = "") -> str:
    """Return the text with no relative links: absolute ones, or the paths in words if there is no repository.

    A picture without an address becomes its description.
    """
    if repository:
        page, file = f"{repository}/blob/main", f"{repository}/raw/main"
        text = ADDRESS.sub(lambda match: f'{match[1]}="{page if match[1] == "href" else file}/{match[2]}"', text)
        return LINK.sub(rf"[\1]({page}/\2)", IMAGE.sub(rf"![\1]({file}/\2)", text))
    text = PICTURE.sub(lambda match: "".join(f"*{alt}*" for alt in ALT.findall(match[0])), text)
    return LINK.sub(r"\1 (`\2`)", IMAGE.sub(r"\1: `\2`", text))
