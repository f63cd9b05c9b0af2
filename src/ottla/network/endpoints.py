"""Where a broker listens and what it advertises: `NAME://host:port`.

Names are upper-case, as Kafka normalizes them. An empty host means all interfaces. Port 0 asks the
operating system for a free one, which makes sense for listening but not for advertising.
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ottla.protocol.addresses import split_address

_HOST_NAME = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?\.?")


class Endpoint(NamedTuple):
    listener_name: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.listener_name}://{host}:{self.port}"

    @property
    def any_interface(self) -> bool:
        return self.host in {"", "0.0.0.0", "::"}


def parse_endpoint(text: str) -> Endpoint:
    written = split_address(text)
    if written is None or written.listener_name is None or written.port is None:
        raise ValueError(f"{text!r} is not of the form NAME://host:port")
    name, host, port = written.listener_name, written.host, written.port
    if host and ":" not in host and not _HOST_NAME.fullmatch(host):
        raise ValueError(f"{text!r} has {host!r}, which is no host name")
    return Endpoint(name.upper(), host, port)


def parse_listeners(texts: Sequence[str]) -> tuple[Endpoint, ...]:
    """Raises ValueError with one sentence if the listeners conflict."""
    if not texts:
        raise ValueError("there must be at least one listener, such as PLAINTEXT://:9092")
    endpoints = _parse_distinct(texts)
    ports: dict[int, list[Endpoint]] = {}
    for endpoint in endpoints:
        ports.setdefault(endpoint.port, []).append(endpoint)
    for port, rivals in ports.items():
        if port and len(rivals) > 1 and _overlap(rivals):
            raise ValueError(f"{rivals[0]} and {rivals[1]} want the same port; give each its own")
    return endpoints


def _overlap(endpoints: list[Endpoint]) -> bool:
    hosts = [endpoint.host for endpoint in endpoints]
    return len(set(hosts)) < len(hosts) or any(e.any_interface for e in endpoints)


def parse_advertised_listeners(texts: Sequence[str]) -> tuple[Endpoint, ...]:
    endpoints = _parse_distinct(texts)
    for endpoint in endpoints:
        if endpoint.any_interface:
            raise ValueError(f"{endpoint} names no host; clients need an address to connect to")
        if not endpoint.port:
            raise ValueError(f"{endpoint} has port 0; clients need a port to connect to")
    return endpoints


def _parse_distinct(texts: Iterable[str]) -> tuple[Endpoint, ...]:
    endpoints = tuple(parse_endpoint(text) for text in texts)
    names: set[str] = set()
    for endpoint in endpoints:
        if endpoint.listener_name in names:
            raise ValueError(f"there are two listeners named {endpoint.listener_name}")
        names.add(endpoint.listener_name)
    return endpoints


def advertised_endpoints(
    bound: Sequence[Endpoint], advertised: Sequence[Endpoint], default_host: str
) -> tuple[Endpoint, ...]:
    """What each bound listener advertises: as configured, otherwise its own address.

    `default_host` is used for a listener on all interfaces.
    """
    by_name = {endpoint.listener_name: endpoint for endpoint in advertised}
    names = {endpoint.listener_name for endpoint in bound}
    for name in by_name:
        if name not in names:
            raise ValueError(f"advertised.listeners has {name}, but listeners does not")
    return tuple(
        by_name.get(endpoint.listener_name)
        or (endpoint._replace(host=default_host) if endpoint.any_interface else endpoint)
        for endpoint in bound
    )
