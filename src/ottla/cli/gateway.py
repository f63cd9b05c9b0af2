"""`ottla gateway`: HTTP in front of a cluster, as a process of its own."""

import importlib
import ipaddress
import logging
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from ottla.cli.command_config import login_of
from ottla.cli.errors import CommandError, UsageError
from ottla.cli.parameters import Flag, validate_port
from ottla.cli.secret_files import validate_private
from ottla.node.serve_settings import LogFormat

if TYPE_CHECKING:
    from ottla.network.trim import Trimmer

logger = logging.getLogger(__name__)

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
        node_metrics: URL of the metrics of a node, which /metrics then has too.
        auth: Who requests are: "none", the gateway's own user; "basic", users of the brokers who
            say their names and passwords (HTTP Basic).
        sqs_users: File with lines of name:password: users of the brokers who sign their requests,
            as SQS clients do, with their name as access key id and their password as secret
            access key; goes with --auth basic.
        tls_certificate: PEM file with the certificate for HTTPS, and its chain.
        tls_key: PEM file with its key, if that is not in the same file.
        insecure: Listen beyond loopback without TLS and names: everyone may do everything.
    """

    host: str = "127.0.0.1"
    port: int = 8080
    admin_port: int | None = None
    node_metrics: str | None = None
    auth: Literal["none", "basic"] = "none"
    sqs_users: Path | None = None
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    insecure: Flag = False

    def validate(self) -> None:
        validate_port("--port", self.port)
        validate_port("--admin-port", self.admin_port)
        if not (self.node_metrics or "http://").startswith("http://"):
            raise UsageError(f"--node-metrics {self.node_metrics} is not an http:// URL")
        if self.tls_key is not None and self.tls_certificate is None:
            raise UsageError("--tls-key goes with --tls-certificate")
        if self.sqs_users is not None and self.auth == "none":
            raise UsageError("--sqs-users goes with --auth basic")
        files = (
            ("--tls-certificate", self.tls_certificate),
            ("--tls-key", self.tls_key),
            ("--sqs-users", self.sqs_users),
        )
        for name, path in files:
            if path is not None and not path.is_file():
                raise UsageError(f"{name} {path} is not a file")
        key = ("--tls-key", self.tls_key or self.tls_certificate)
        for name, path in (key, ("--sqs-users", self.sqs_users)):
            if path is not None:
                validate_private(name, path)
        is_locked = self.tls_certificate is not None and self.auth != "none"
        if not self.insecure and not is_locked and not is_loopback(self.host):
            raise UsageError(
                f"{self.host} is reached from other machines; lock it (--tls-certificate, --auth"
                " basic), listen on loopback, or say --insecure to let everyone do everything"
            )


def cluster_of(bootstrap_server: str, command_config: Path | None) -> tuple[str, dict[str, Any]]:
    """Where the brokers are, and how to log in there."""
    login = login_of(bootstrap_server, command_config)
    return bootstrap_server or str(login.get("bootstrap.servers", DEFAULT_SERVER)), login


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
    command_config: Annotated[Path | None, Parameter(env_var="OTTLA_COMMAND_CONFIG")] = None,
    door: Door = Door(),  # noqa: B008
    secret_file: Path | None = None,
    webhook_allow: tuple[str, ...] = (),
    log_format: LogFormat = LogFormat.TEXT,
) -> int:
    """Serve a cluster over HTTP.

    Args:
        bootstrap_server: Broker to connect to first, as HOST:PORT; separate several with commas.
            [default: that of --command-config or the current profile, or localhost:9092]
        command_config: File with client settings for the gateway's login to the brokers.
        secret_file: File with the secret that signs delivery handles, the same for all gateways
            of a cluster; by default the cluster stores one.
        webhook_allow: Non-public network that webhooks may call, such as 10.0.0.0/8; may be
            repeated.
        log_format: Format of the log on stderr.
    """
    door.validate()
    if secret_file is not None and not secret_file.is_file():
        raise UsageError(f"--secret-file {secret_file} is not a file")
    servers, login = cluster_of(bootstrap_server, command_config)
    _validate_servers(servers)
    _validate_installed()
    from ottla.console import pages
    from ottla.gateway.core.addresses import parse_networks
    from ottla.gateway.server import serve
    from ottla.gateway.settings import Auth, GatewaySettings
    from ottla.node.log_lines import configure_logging

    try:
        parse_networks(webhook_allow)
    except ValueError as error:
        raise UsageError(f"--webhook-allow: {error}") from None
    configure_logging(log_format, "uvicorn", "asyncio")
    threading.Thread(target=_look, args=(servers, command_config), daemon=True).start()
    return serve(
        GatewaySettings(
            servers,
            host=door.host,
            port=door.port,
            admin_port=door.admin_port,
            node_metrics=door.node_metrics,
            login=login,
            auth=Auth(door.auth),
            signers=_signers(door.sqs_users),
            tls_certificate=door.tls_certificate,
            tls_key=door.tls_key,
            secret_file=secret_file,
            webhook_allow=webhook_allow,
        ),
        pages=(pages.routes,),
        on_tls_end=_trimmer(runs=door.tls_certificate is not None).on_closed,
    )


def _look(servers: str, command_config: Path | None) -> None:
    """Brokers may come later than their gateway, so that nobody is there is only said."""
    from ottla.cli.connection import Connection

    try:
        Connection(servers, command_config=command_config).reach()
    except CommandError as error:
        logger.warning("%s; requests fail until one answers", error)


def _trimmer(*, runs: bool) -> "Trimmer":
    """Returns the memory of TLS connections that have ended, as brokers do."""
    from ottla.network.trim import INTERVAL_MS, Trimmer

    trimmer = Trimmer(lambda: time.monotonic() * 1000, lambda trim: trim())

    def trim_again_and_again() -> None:
        while True:
            time.sleep(INTERVAL_MS / 1000)
            trimmer.maybe_trim()

    if runs:
        threading.Thread(target=trim_again_and_again, daemon=True).start()
    return trimmer


def _signers(path: Path | None) -> dict[str, str]:
    from ottla.gateway.aws_signatures import read_users

    try:
        return {} if path is None else read_users(path)
    except (OSError, ValueError) as error:
        raise UsageError(f"--sqs-users {path}: {error}") from None


def _validate_servers(servers: str) -> None:
    from ottla.protocol.addresses import parse_servers

    try:
        parse_servers(servers)
    except ValueError as error:
        raise UsageError(f"--bootstrap-server: {error}") from None


def _validate_installed() -> None:
    try:
        importlib.import_module("ottla.gateway.server")
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("ottla"):
            raise
        raise CommandError(MISSING) from None


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
