"""Addresses in text form: `host:port`, with an IPv6 host in brackets."""

import ipaddress
import re
from typing import Final, NamedTuple

DEFAULT_PORT: Final = 9092
PORT_MAX: Final = 65_535

_ADDRESS = re.compile(
    r"(?:(?P<name>[A-Za-z0-9_.-]+)://)?"
    r"(?:\[(?P<v6>[^\[\]]+)\]|(?P<host>[^\[\]:/\s]*))(?::(?P<port>\d{1,9}))?"
)


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class WrittenAddress(NamedTuple):
    """The parts of `NAME://host:port` that are present."""

    listener_name: str | None
    host: str
    port: int | None


def parse_address(text: str, *, default_port: int | None = None) -> Address:
    """An address to connect to; ValueError describes the problem."""
    written = split_address(text.strip())
    if written is not None and written.listener_name is None and written.host:
        port = default_port if written.port is None else written.port
        if port:
            return Address(written.host, port)
    raise ValueError(f"{text.strip()!r} is not of the form HOST:PORT")


def parse_servers(text: str) -> list[Address]:
    """`host:port,host:port`, as in `bootstrap.servers`."""
    return [parse_address(item, default_port=DEFAULT_PORT) for item in text.split(",")]


def split_address(text: str) -> WrittenAddress | None:
    """None if the text has another form; ValueError if a part is invalid."""
    match = _ADDRESS.fullmatch(text)
    if match is None:
        host = _ipv6(text)  # An address without a port needs no brackets.
        return None if host is None else WrittenAddress(None, host, None)
    name, bracketed, host, digits = match.groups()
    port = None if digits is None else int(digits)
    if port is not None and port > PORT_MAX:
        raise ValueError(f"{text!r} has port {port}, more than {PORT_MAX}")
    if bracketed is not None:
        host = _ipv6(bracketed)
        if host is None:
            raise ValueError(f"{text!r} has {bracketed!r}, which is no IPv6 address")
    return WrittenAddress(name, host, port)


def _ipv6(text: str) -> str | None:
    try:
        return str(ipaddress.IPv6Address(text))
    except ValueError:
        return None
