"""The server: `http.server` of the standard library with a limit on connections, timeouts, and nothing on disk to give.

docs/decisions says why no other library: each request is one connection, checked by `Gate`, answered and closed.
"""

from __future__ import annotations

import json
import socket
import threading
import traceback
from collections.abc import Mapping
from contextlib import suppress
from email.message import Message
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Protocol

from calibrant.bench.play.service.address import HOST
from calibrant.bench.play.service.gate import Gate, Refusal, Target

MAX_CONNECTIONS = 128  # handled at a time; a further one takes the place of the oldest that has sent no good request
MAX_SECONDS_TO_CLOSE = 1.0  # for a thread whose connection was closed; it takes a millisecond
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

    gate: set before the first request, when the port is known
    """

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = BACKLOG
    gate: Gate

    def __init__(self, port: int, routes: Routes) -> None:
        self.routes = routes
        self._free = threading.BoundedSemaphore(MAX_CONNECTIONS)
        self._waiting: dict[int, socket.socket] = {}  # connections without a good request so far, the oldest first
        self._waiting_lock = threading.Lock()
        super().__init__((HOST, port), _Handler)

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:
        """Handle a connection in a thread of its own.

        Where too many are open the oldest idle one is closed: else who opens them would keep all others out.
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
        """Handle a connection, then make room for another one."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.stop_waiting(request)
            self._free.release()

    def stop_waiting(self, request: Any) -> None:
        """Keep a connection to its end: it has sent a good request, or is over."""
        with self._waiting_lock:
            self._waiting.pop(id(request), None)

    def _close_oldest_waiting(self) -> None:
        with self._waiting_lock:
            oldest = next(iter(self._waiting), None)
            connection = None if oldest is None else self._waiting.pop(oldest)
        if connection is not None:
            with suppress(OSError):  # it may have ended meanwhile
                connection.shutdown(socket.SHUT_RDWR)  # its thread reads the end of the request

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Pass over connections that break off; others print their traceback to standard error."""
        import sys

        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)

    def server_bind(self) -> None:
        """Bind without a look-up of the machine's name, which may ask the network."""
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
        except Exception:  # a fault of the program: without an answer the page would send its move again and again
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
        """Read what a refused client still sends, up to a limit: a closed connection would hide the answer from it."""
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
        """Answer what is no request of HTTP, without repeating any of it."""
        self.close_connection = True
        self._send(Response(code, {"problem": HTTPStatus(code).phrase}))

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # http.server has the name
        """Log nothing: addresses of participants are not stored."""


def _single_headers(headers: Message) -> dict[str, str]:
    """Return the headers that requests are judged by; `Refusal` for one that is given twice."""
    names = ("Host", "Origin", "Sec-Fetch-Site", "Content-Type", "Content-Length", "Transfer-Encoding")
    values = {name: headers.get_all(name, []) for name in names}
    if any(len(texts) > 1 for texts in values.values()):
        raise Refusal(400, "a header is given twice")
    return {name: str(texts[0]) for name, texts in values.items() if texts}
