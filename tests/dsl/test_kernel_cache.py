"""Where compiled kernels are kept when the home is read-only: never where somebody else could put code."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from dsl import kernel_cache
from dsl.kernel_cache import cache_folder, private_folder


def test_the_same_private_folder_is_found_again(tmp_path: Path) -> None:
    folder = private_folder(tmp_path, "kernels")
    assert folder.parent == tmp_path
    assert folder.stat().st_mode & 0o777 == 0o700
    assert private_folder(tmp_path, "kernels") == folder


def test_a_folder_that_others_can_write_to_is_not_used(tmp_path: Path) -> None:
    first = private_folder(tmp_path, "kernels")
    first.chmod(0o777)
    second = private_folder(tmp_path, "kernels")
    assert second != first
    assert second.stat().st_mode & 0o777 == 0o700


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    planted = private_folder(tmp_path, "kernels")
    planted.rmdir()
    planted.symlink_to(tmp_path / "elsewhere")
    assert private_folder(tmp_path, "kernels") != planted


def test_a_folder_of_another_user_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planted = private_folder(tmp_path, "kernels")
    real = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: real + 1)
    planted.rename(tmp_path / f"kernels-{real + 1}")
    assert private_folder(tmp_path, "kernels") != tmp_path / f"kernels-{real + 1}"


def test_without_a_writable_home_the_folder_is_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("no folder", encoding="utf-8")
    monkeypatch.setattr(kernel_cache, "user_cache_path", lambda name: tmp_path / "file" / name)
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    folder = cache_folder("1.0")
    assert folder.parent == tmp_path
    assert folder.stat().st_mode & 0o777 == 0o700
    assert cache_folder("2.0") != folder
