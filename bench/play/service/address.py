"""Addresses of a server: a secret that all of them carry, and one of its own for each participant."""

from __future__ import annotations

import hmac
import secrets
from pathlib import Path

import msgspec

from calibrant.dsl.atomic_write import write_privately
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.parse_limits import TooLargeError, decode_json, read_bounded

FILE_NAME = "address.json"
TOKEN_CHARS = 32  # 128 bits
HOST = "127.0.0.1"


class Address(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Port and secret of a folder's server, the same after a restart so that open pages go on."""

    port: int
    secret: str

    @property
    def token(self) -> str:
        """The part of the address at which somebody enters an id."""
        return self._derive("")

    def participant_token(self, participant: str) -> str:
        """Return the part of the address of one participant."""
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
    """Return the address that a folder had; None if it had none."""
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
    """Keep an address, readable by its owner alone."""
    write_privately(folder / FILE_NAME, msgspec.json.encode(address).decode())
