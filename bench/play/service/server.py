"""The server: the standard library's `http.server` with limited connections and timeouts; it serves no files.

Each request is one connection, checked by `Gate`, answered and closed. docs/decisions has the reasons.
"""

from __future__ import annotations

import hmac
import json
import re
import secrets
import socket
import threading
import traceback
from collections.abc import Mapping
from contextlib import suppress
from email.message import Message
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec

from calibrant.dsl.atomic_write import write_privately
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.parse_limits import TooLargeError, decode_json, read_bounded

# --- Checks of a request before it is processed: host, origin, method, path, size -------------------------------------
MAX_BODY_BYTES = 64 * 1024
MAX_PATH_CHARS = 512
_PATH = re.compile(r"/([0-9a-f]{32})/([a-z]{0,16})(?:\?([\w.~%&=+/:@!$'()*,;?-]*))?", re.ASCII)


class Refusal(Exception):  # noqa: N818  # it is an answer, not a fault of the program
    """A refused request. status: of HTTP; reason: one line that repeats nothing of the request."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


class Target(NamedTuple):
    """A parsed path. token: of the participant; verb: kind of request, empty for the page; query: undecoded."""

    token: str
    verb: str
    query: str


class Gate:
    """The checks of a server.

    origins: allowed origins, such as http://127.0.0.1:8000; allowed hosts follow from them
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
        """Return the length of the body of a POST; `Refusal` for one that is too long, no JSON or of unknown length."""
        if headers.get("Content-Type", "").partition(";")[0].strip().lower() != "application/json":
            raise Refusal(415, "a move is application/json")
        length = headers.get("Content-Length", "")
        if "Transfer-Encoding" in headers or not (length.isascii() and length.isdigit()):
            raise Refusal(411, "a length is needed")
        if len(length) > 9 or int(length) > MAX_BODY_BYTES:
            raise Refusal(413, f"at most {MAX_BODY_BYTES} bytes")
        return int(length)


# --- Addresses of a server, which contain a token derived from its secret, one for each participant -------------------
FILE_NAME = "address.json"
TOKEN_CHARS = 32  # 128 bits
HOST = "127.0.0.1"


class Address(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Port and secret of a folder's server, kept over restarts so that open pages continue to work."""

    port: int
    secret: str

    @property
    def token(self) -> str:
        """The token of the page where participants enter their id."""
        return self._derive("")

    def participant_token(self, participant: str) -> str:
        """Return the token of a participant."""
        return self._derive(participant)

    def url(self, token: str) -> str:
        """Return the address of a token on this machine."""
        return f"http://{HOST}:{self.port}/{token}/"

    def _derive(self, name: str) -> str:
        return hmac.digest(bytes.fromhex(self.secret), f"play {name}".encode(), "sha256").hex()[:TOKEN_CHARS]


def new_secret() -> str:
    """Return 64 random hexadecimal digits."""
    return secrets.token_hex(32)


def read_address(folder: Path) -> Address | None:
    """Return the stored address of a folder; None if there is none."""
    file = folder / FILE_NAME
    if not file.is_file():
        return None
    try:
        address = decode_json(read_bounded(file), Address)
        bytes.fromhex(address.secret)
    except (msgspec.DecodeError, ValueError, TooLargeError) as error:
        raise CalibrantError(f"{file}: no address of a server: {error}; delete it for a new one") from None
    return address


def write_address(folder: Path, address: Address) -> None:
    """Store an address in a file that its owner alone can read."""
    write_privately(folder / FILE_NAME, msgspec.json.encode(address).decode())


MAX_CONNECTIONS = 128  # at a time; a further one replaces the oldest that has sent no valid request
MAX_SECONDS_TO_CLOSE = 1.0  # to wait for the thread of a closed connection, which usually takes 1 ms
TIMEOUT_SECONDS = 10.0  # for a request to arrive
BACKLOG = 512
MAX_DISCARDED_BYTES = 4 * 1024 * 1024
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; "
        "form-action 'none'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Response(NamedTuple):
    """Status and content to send. content: a page, or an object that is sent as JSON."""

    status: int
    content: str | Mapping[str, Any]


class Routes(Protocol):
    """Answers to requests that passed the gate."""

    def get(self, target: Target) -> Response: ...
    def post(self, target: Target, body: Mapping[str, Any]) -> Response: ...


class PlayServer(ThreadingHTTPServer):
    """A server on the loopback interface; `serve_forever` runs it.

    gate: set once the port is known, before the first request
    """

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = BACKLOG
    gate: Gate

    def __init__(self, port: int, routes: Routes) -> None:
        self.routes = routes
        self._free = threading.BoundedSemaphore(MAX_CONNECTIONS)
        self._waiting: dict[int, socket.socket] = {}  # connections without a valid request so far, oldest first
        self._waiting_lock = threading.Lock()
        super().__init__((HOST, port), _Handler)

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:
        """Handle a connection in its own thread.

        If too many are open, the oldest idle one is closed, so that idle connections cannot block the server.
        """
        if not self._free.acquire(blocking=False):
            self._close_oldest_waiting()
            if not self._free.acquire(timeout=MAX_SECONDS_TO_CLOSE):
                self.shutdown_request(request)
                return
        with self._waiting_lock:
            self._waiting[id(request)] = request
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # no thread can be started
            self.stop_waiting(request)
            self._free.release()
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Handle a connection, then release its slot."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.stop_waiting(request)
            self._free.release()

    def stop_waiting(self, request: Any) -> None:
        """Protect a connection from being closed, because it has sent a valid request or is over."""
        with self._waiting_lock:
            self._waiting.pop(id(request), None)

    def _close_oldest_waiting(self) -> None:
        with self._waiting_lock:
            oldest = next(iter(self._waiting), None)
            connection = None if oldest is None else self._waiting.pop(oldest)
        if connection is not None:
            with suppress(OSError):  # it may have ended meanwhile
                connection.shutdown(socket.SHUT_RDWR)  # its thread then reads the end of input

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore broken connections; print the traceback of any other error to standard error."""
        import sys

        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)

    def server_bind(self) -> None:
        """Bind without looking up the machine's name, which may query the network."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = HOST, self.server_address[1]


class _Handler(BaseHTTPRequestHandler):
    """One request of one connection."""

    server: PlayServer
    timeout = TIMEOUT_SECONDS
    server_version = "calibrant"
    sys_version = ""
    _has_read_body = False

    def do_GET(self) -> None:
        self._answer(lambda target: self.server.routes.get(target))

    def do_POST(self) -> None:
        self._answer(lambda target: self.server.routes.post(target, self._read_body()))

    def _answer(self, route: Any) -> None:
        try:
            target = self.server.gate.check(self.command, self.path, _single_headers(self.headers))
            self.server.stop_waiting(self.request)
            response = route(target)
        except Refusal as refusal:
            if not self._has_read_body:
                self._discard_body()
            response = Response(refusal.status, {"problem": refusal.reason})
        except TimeoutError:
            response = Response(HTTPStatus.REQUEST_TIMEOUT, {"problem": "the request did not arrive"})
        except OSError:
            raise
        except Exception:  # a bug is answered too: without an answer the page would repeat its request
            traceback.print_exc()
            problem = "the server failed at this; what was done before is kept. Please tell whoever runs it."
            response = Response(HTTPStatus.INTERNAL_SERVER_ERROR, {"problem": problem})
        self._send(response)

    def _read_body(self) -> dict[str, Any]:
        size = self.server.gate.body_size(_single_headers(self.headers))
        self._has_read_body = True
        raw = self.rfile.read(size)
        try:
            body = json.loads(raw)
        except (ValueError, RecursionError):
            raise Refusal(400, "the body is no JSON") from None
        if len(raw) < size or not isinstance(body, dict):
            raise Refusal(400, "the body is no JSON object")
        return body

    def _discard_body(self) -> None:
        """Read the rest of a refused request, up to a limit; closing at once would hide the answer from the client."""
        length = self.headers.get("Content-Length", "")
        remaining = (
            min(int(length), MAX_DISCARDED_BYTES) if length.isascii() and length.isdigit() and len(length) < 9 else 0
        )
        while remaining > 0 and (block := self.rfile.read(min(remaining, 65_536))):
            remaining -= len(block)

    def _send(self, response: Response) -> None:
        is_page = isinstance(response.content, str)
        text = response.content if is_page else json.dumps(response.content)
        data = str(text).encode("utf-8", "surrogatepass")
        self.send_response(response.status)
        self.send_header("Content-Type", "text/html; charset=utf-8" if is_page else "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Connection", "close")
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)
        self.close_connection = True

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer a malformed request without repeating any of it."""
        self.close_connection = True
        self._send(Response(code, {"problem": HTTPStatus(code).phrase}))

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # http.server has the name
        """Log nothing: addresses of participants are not stored."""


def _single_headers(headers: Message) -> dict[str, str]:
    """Return the headers that are checked; `Refusal` for a repeated one."""
    names = ("Host", "Origin", "Sec-Fetch-Site", "Content-Type", "Content-Length", "Transfer-Encoding")
    values = {name: headers.get_all(name, []) for name in names}
    if any(len(texts) > 1 for texts in values.values()):
        raise Refusal(400, "a header is given twice")
    return {name: str(texts[0]) for name, texts in values.items() if texts}
