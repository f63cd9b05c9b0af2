"""`ottla service install`: a unit of systemd that runs a broker on this machine."""

import os
import re
import shlex
import sys
from pathlib import Path
from typing import Final

from ottla.cli.errors import CommandError, UsageError
from ottla.cli.output import print_line
from ottla.cli.parameters import Flag
from ottla.node.config import CONTROLLED_SHUTDOWN_TIMEOUT_MS, load_config
from ottla.node.config_file import ConfigError
from ottla.node.serve_settings import ServeSettings
from ottla.protocol.config import ConfigValues
from ottla.storage.broker_config import LOG_DIRS

UNITS: Final = Path("/etc/systemd/system")
DATA: Final = Path("/var/lib/ottla")

_NAME: Final = re.compile(r"[A-Za-z0-9_.-]+")
_CLOSING_S: Final = 55  # Beyond what a node waits for others: to close its logs on a slow disk.

_UNIT: Final = """\
[Unit]
Description=Ottla broker
Wants=network-online.target
After=network-online.target

[Service]
# Started is a broker that is registered, unfenced and has all replicas in sync. That may take long.
Type=notify
TimeoutStartSec=infinity
ExecStart={command}
User={user}
Restart=always
RestartSec=1
# A stop hands over what the broker leads, then closes the logs.
KillMode=mixed
TimeoutStopSec={stop_s}

# A log segment takes three open files, a connection takes one.
LimitNOFILE=1048576
OOMScoreAdjust=-500

UMask=0077
ReadWritePaths={writable}
ProtectSystem=strict
ProtectHome=read-only
PrivateTmp=yes
PrivateDevices=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
CapabilityBoundingSet=
NoNewPrivileges=yes
LockPersonality=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native

[Install]
WantedBy=multi-user.target
"""

_NEXT_STEPS: Final = """\
{path} is written. Next, as root:

  id {user} || useradd --system --home-dir {home} --shell /usr/sbin/nologin {user}
  install -d -o {user} -m 0700 {directories}
  systemctl daemon-reload
  systemctl enable --now {name}

Beyond loopback, start the first node of a new cluster once by hand, as {user}, with --new-cluster.
`systemctl status {name}` shows what it waits for, `journalctl -u {name}` its log."""


def install(
    *,
    config: Path | None = None,
    data: Path = DATA,
    name: str = "ottla",
    user: str = "ottla",
    units: Path = UNITS,
    print_: Flag = False,
) -> None:
    """Write a systemd unit that runs a broker, and print how to start it.

    Args:
        config: YAML file with Kafka's configuration keys; its log.dirs name the data directories.
        data: Data directory, without --config.
        name: Name of the unit.
        user: User that the broker runs as.
        units: Directory for the unit.
        print_: Print the unit and write nothing.
    """
    for flag, value in (("--name", name), ("--user", user)):
        if not _NAME.fullmatch(value):
            raise UsageError(f"{flag} {value!r} is not made of letters, digits, '.', '_' and '-'")
    arguments = ["--data", str(data.absolute())]
    settings = ServeSettings(data=(data.absolute(),))
    if config is not None:
        arguments = ["--config", str(config.absolute())]
        settings = ServeSettings(config_file=config.absolute())
    try:
        values = ConfigValues(load_config(settings, {}))
    except ConfigError as error:
        raise CommandError(str(error)) from None
    directories = [Path(text) for text in values[LOG_DIRS]]
    for directory in directories:
        if not directory.is_absolute():
            raise UsageError(f"log.dirs of {config} has {directory}; a service needs a full path")
    writable = shlex.join(map(str, directories))
    unit = _UNIT.format(
        command=shlex.join([*_command(), "serve", *arguments]),
        user=user,
        stop_s=values[CONTROLLED_SHUTDOWN_TIMEOUT_MS] // 1000 + _CLOSING_S,
        writable=writable,
    )
    if print_:
        print_line(unit.rstrip())
        return
    path = units / f"{name}.service"
    path.write_text(unit, encoding="utf-8")
    print_line(
        _NEXT_STEPS.format(
            path=path, user=user, name=name, home=directories[0], directories=writable
        )
    )


def _command() -> list[str]:
    """How this very installation is called."""
    called = Path(sys.argv[0]).absolute()
    if called.name == "ottla" and os.access(called, os.X_OK):
        return [str(called)]
    return [sys.executable, "-m", "ottla"]
