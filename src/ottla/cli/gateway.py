"""`ottla gateway`: HTTP in front of a cluster, as a process of its own."""

import importlib
import ipaddress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from ottla.cli.command_config import read_command_config
from ottla.cli.errors import CommandError, UsageError
from ottla.cli.parameters import Flag
from ottla.node.settings import LogFormat

DEFAULT_SERVER = "localhost:9092"
MISSING = "the gateway needs packages that are not installed; run: pip install 'ottla[gateway]'"


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Door:
    """Where a gateway listens, and whom it lets in.

    Args:
        host: Address to listen on; others than loopback need --tls-certificate and --auth basic.
        port: Port to listen on; 0 takes a free one.
        admin_port: Port for health, metrics and administration, which --port then does not serve.
        auth: Who requests are: "none", the gateway's own user; "basic", users of the brokers who
            say their names and passwords (HTTP Basic).
        tls_certificate: PEM file with the certificate for HTTPS, and its chain.
        tls_key: PEM file with its key, if that is not in the same file.
        insecure: Listen beyond loopback without TLS and names: everyone may do everything.
    """

    host: str = "127.0.0.1"
    port: int = 8080
    admin_port: int | None = None
    auth: Literal["none", "basic"] = "none"
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    insecure: Flag = False

    def validate(self) -> None:
        if not 0 <= self.port < 1 << 16:
            raise UsageError(f"--port {self.port} is not from 0 to 65535")
        if self.admin_port is not None and not 0 <= self.admin_port < 1 << 16:
            raise UsageError(f"--admin-port {self.admin_port} is not from 0 to 65535")
        if self.tls_key is not None and self.tls_certificate is None:
            raise UsageError("--tls-key goes with --tls-certificate")
        files = (("--tls-certificate", self.tls_certificate), ("--tls-key", self.tls_key))
        for name, path in files:
            if path is not None and not path.is_file():
                raise UsageError(f"{name} {path} is not a file")
        is_locked = self.tls_certificate is not None and self.auth != "none"
        if not self.insecure and not is_locked and not _is_loopback(self.host):
            raise UsageError(
                f"{self.host} is reached from other machines; lock it (--tls-certificate, --auth"
                " basic), listen on loopback, or say --insecure to let everyone do everything"
            )


def gateway(
    *,
    bootstrap_server: Annotated[
        str,
        Parameter(
            name=("--bootstrap-server", "-b"),
            env_var="OTTLA_BOOTSTRAP_SERVER",
            show_default=False,
        ),
    ] = "",
    command_config: Annotated[
        Path | None, Parameter(name="--command-config", env_var="OTTLA_COMMAND_CONFIG")
    ] = None,
    door: Door = Door(),  # noqa: B008
    secret_file: Path | None = None,
    webhook_allow: tuple[str, ...] = (),
    log_format: LogFormat = LogFormat.TEXT,
) -> int:
    """Serve a cluster over HTTP.

    Args:
        bootstrap_server: Broker to connect to first, as HOST:PORT; more separated by commas.
            [default: that of --command-config, or localhost:9092]
        command_config: File with settings of clients, such as how the gateway logs in to brokers.
        secret_file: File with the secret that signs delivery handles, the same for all gateways
            of a cluster; without it the cluster keeps one.
        webhook_allow: Network that webhooks may call although it is not public, such as
            10.0.0.0/8; may be repeated.
        log_format: How the log on stderr is written.
    """
    door.validate()
    if secret_file is not None and not secret_file.is_file():
        raise UsageError(f"--secret-file {secret_file} is not a file")
    login = {} if command_config is None else read_command_config(command_config)
    servers = bootstrap_server or str(login.get("bootstrap.servers", DEFAULT_SERVER))
    from ottla.protocol.addresses import parse_servers

    try:
        parse_servers(servers)
    except ValueError as error:
        raise UsageError(f"--bootstrap-server: {error}") from None
    _validate_installed()
    from ottla.gateway.core.addresses import parse_networks
    from ottla.gateway.server import serve
    from ottla.gateway.settings import Auth, GatewaySettings
    from ottla.node.log_lines import configure_logging

    try:
        parse_networks(webhook_allow)
    except ValueError as error:
        raise UsageError(f"--webhook-allow: {error}") from None
    configure_logging(log_format, "uvicorn", "asyncio")
    return serve(
        GatewaySettings(
            servers,
            host=door.host,
            port=door.port,
            admin_port=door.admin_port,
            login=login,
            auth=Auth(door.auth),
            tls_certificate=door.tls_certificate,
            tls_key=door.tls_key,
            secret_file=secret_file,
            webhook_allow=webhook_allow,
        )
    )


def _validate_installed() -> None:
    try:
        importlib.import_module("ottla.gateway.server")
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("ottla"):
            raise
        raise CommandError(MISSING) from None


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
