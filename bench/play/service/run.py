"""Running the server: the folder's address, the port, the links of participants."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from calibrant.bench.play.folder import PlayFolder
from calibrant.bench.play.game import Plan, Practice, Terms
from calibrant.bench.play.service.routes import PlayRoutes
from calibrant.bench.play.service.server import HOST, Address, Gate, PlayServer, new_secret, read_address, write_address
from calibrant.dsl.atomic_write import write_privately
from calibrant.dsl.errors import CalibrantError

LINKS = "links.csv"


class Service:
    """A server that is ready to run.

    address: what participants open; server: its `serve_forever` runs it; warm_up: loads what scores need
    """

    def __init__(self, server: PlayServer, address: Address, warm_up: Callable[[], None]) -> None:
        self.server = server
        self.address = address
        self.warm_up = warm_up

    @property
    def url(self) -> str:
        """The address at which somebody enters an id."""
        return self.address.url(self.address.token)


@contextmanager
def open_service(
    folder: PlayFolder,
    terms: Terms,
    plan: Plan,
    names: Sequence[str] | None = None,
    *,
    port: int | None = None,
    public_origin: str = "",
    practice: Practice | None = None,
) -> Iterator[Service]:
    """Yield a server that listens; `CalibrantError` if the port is taken.

    port: by default the one that the folder had, else a free one
    public_origin: of a proxy in front, such as https://study.example.org
    """
    stored = read_address(folder.folder) if folder.folder is not None else None
    chosen_port = port if port is not None else stored.port if stored is not None else 0
    secret = stored.secret if stored is not None else new_secret()
    routes = PlayRoutes(folder, Address(chosen_port, secret), terms, plan, names, practice)
    try:
        server = PlayServer(chosen_port, routes)
    except OSError as error:
        hint = "give another one with --port"
        raise CalibrantError(f"port {chosen_port} of {HOST}: {error.strerror or error}; {hint}") from None
    address = Address(server.port, secret)
    origins = [f"http://{host}:{server.port}" for host in (HOST, "localhost")]
    server.gate = Gate(tuple(filter(None, [*origins, public_origin])))
    with server:
        if folder.folder is not None:
            write_address(folder.folder, address)
            if names:
                _write_links(folder.folder / LINKS, address, names, public_origin)
        yield Service(server, address, routes.warm_up)


def serve_until_stopped(service: Service) -> None:
    """Answer requests until Ctrl-C or SIGTERM; requests that were accepted are answered."""

    def stop(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    threading.Thread(target=service.warm_up, daemon=True).start()
    before = signal.signal(signal.SIGTERM, stop)
    try:
        service.server.serve_forever(poll_interval=0.2)
    except KeyboardInterrupt:
        return
    finally:
        signal.signal(signal.SIGTERM, before)


def _write_links(file: Path, address: Address, names: Sequence[str], public_origin: str) -> None:
    """Write the address of each participant, readable by the owner alone."""
    lines = ["participant,address"]
    for name in names:
        token = address.participant_token(name)
        lines.append(f"{name},{f'{public_origin}/{token}/' if public_origin else address.url(token)}")
    write_privately(file, "\n".join(lines) + "\n")
