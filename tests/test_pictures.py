"""Pictures of README and site are those that the program draws now."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.commands import CHECKOUT
from tests.support.pages.pictures import GALLERY, IMAGES, SHOWN, THEMES, drawings, page_text, write_pages

AGAIN = "`make pictures` draws it again"
MARKDOWN_IMAGE = re.compile(r"!\[([^\]]*)\]\(([^)]+)\)")
IMAGE_DIRECTIVE = re.compile(r"```\{image\} (\S+)\n((?::.*\n)*)")
HTML_IMAGE = re.compile(r"<img [^>]*>")


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    write_pages(folder)
    return folder


def test_drawings_are_the_same_bytes() -> None:
    for name, svg in drawings():
        assert (IMAGES / name).read_text(encoding="utf-8") == svg, AGAIN


@pytest.mark.parametrize("name", [shown.name for shown in SHOWN])
def test_a_screenshot_is_of_a_page_with_this_text(name: str, pages: Path) -> None:
    text = page_text((pages / f"{name}.html").read_text(encoding="utf-8"))
    assert (GALLERY / f"{name}.txt").read_text(encoding="utf-8") == text, AGAIN
    for theme in THEMES:
        assert (GALLERY / f"{name}-{theme}.png").read_bytes().startswith(b"\x89PNG")


def test_the_folder_has_nothing_else() -> None:
    names = {f"{shown.name}{suffix}" for shown in SHOWN for suffix in ("-light.png", "-dark.png", ".txt")}
    assert {path.name for path in GALLERY.iterdir()} == names


@pytest.mark.parametrize(
    "page", [CHECKOUT / "README.md", *sorted((CHECKOUT / "docs").rglob("*.md"))], ids=lambda page: page.name
)
def test_every_picture_is_there_and_is_described(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    described = [(path, alt) for alt, path in MARKDOWN_IMAGE.findall(text)]
    for path, options in IMAGE_DIRECTIVE.findall(text):
        described.append((path, "".join(re.findall(r":alt: (.*)", options))))
    for tag in HTML_IMAGE.findall(text):
        described.append((re.findall(r'src="([^"]+)"', tag)[0], "".join(re.findall(r'alt="([^"]*)"', tag))))
    for path, alt in described:
        assert (page.parent / path).is_file(), path
        assert len(alt) > 10, path
