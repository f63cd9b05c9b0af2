"""The flags of `ottla serve`, before configuration files and defaults are applied."""

import enum
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from ottla.protocol.entities import entity


class LogFormat(enum.StrEnum):
    TEXT = "text"
    JSON = "json"


@entity
class ServeSettings:
    """None means that the flag was not given: the configuration file or the default applies."""

    id: int | None = None  # Becomes node.id.
    host: str | None = None
    port: int | None = None  # 0 lets the operating system choose.
    data: tuple[Path, ...] = ()  # Becomes log.dirs.
    config_file: Path | None = None
    overrides: Mapping[str, str] = field(
        default_factory=dict
    )  # From --set; stronger than the file.
    join: tuple[str, ...] = ()  # HOST:PORT of nodes; becomes controller.quorum.bootstrap.servers.
    new_cluster: bool = False  # Whether a new directory may begin one beyond loopback.
    insecure: bool = False  # Whether listeners beyond loopback may lack security.
    advertised: str | None = None  # HOST:PORT that clients should connect to.
    listeners: tuple[str, ...] = ()  # NAME://host:port, instead of host and port.
    log_format: LogFormat = LogFormat.TEXT
