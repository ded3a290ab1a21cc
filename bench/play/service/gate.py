"""Checks of a request before anything reads it: host, origin, method, path, size. All others are refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

MAX_BODY_BYTES = 64 * 1024
MAX_PATH_CHARS = 512
_PATH = re.compile(r"/([0-9a-f]{32})/([a-z]{0,16})(?:\?([\w.~%&=+-]*))?", re.ASCII)


class Refusal(Exception):  # noqa: N818  # it is an answer, not a fault of the program
    """A request that is refused. status: of HTTP; reason: one line without anything of the request."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


class Target(NamedTuple):
    """A path. token: whose; verb: what is asked for, empty for the page; query: undecoded."""

    token: str
    verb: str
    query: str


class Gate:
    """The checks of one server.

    origins: as browsers name them, such as http://127.0.0.1:8000; hosts follow from them
    """

    def __init__(self, origins: tuple[str, ...]) -> None:
        self._origins = frozenset(origins)
        self._hosts = frozenset(origin.partition("://")[2] for origin in origins)

    def check(self, method: str, path: str, headers: Mapping[str, str]) -> Target:
        """Return the target of a request; `Refusal` for one that does not come from this server's page."""
        if headers.get("Host", "") not in self._hosts:
            raise Refusal(403, "unknown host")
        origin = headers.get("Origin")
        if origin is not None and origin not in self._origins:
            raise Refusal(403, "foreign origin")
        site = headers.get("Sec-Fetch-Site", "same-origin")
        if method == "POST" and site not in ("same-origin", "none"):
            raise Refusal(403, "foreign origin")
        match = _PATH.fullmatch(path) if len(path) <= MAX_PATH_CHARS else None
        if match is None:
            raise Refusal(404, "no such page")
        return Target(match[1], match[2], match[3] or "")

    def body_size(self, headers: Mapping[str, str]) -> int:
        """Return the length of the body of a POST; `Refusal` for one that is too long, not JSON or without length."""
        if headers.get("Content-Type", "").partition(";")[0].strip().lower() != "application/json":
            raise Refusal(415, "a move is application/json")
        length = headers.get("Content-Length", "")
        if "Transfer-Encoding" in headers or not (length.isascii() and length.isdigit()):
            raise Refusal(411, "a length is needed")
        if len(length) > 9 or int(length) > MAX_BODY_BYTES:
            raise Refusal(413, f"at most {MAX_BODY_BYTES} bytes")
        return int(length)
