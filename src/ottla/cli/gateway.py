"""`ottla gateway`: HTTP in front of a cluster, as a process of its own."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ottla.cli.errors import CommandError, UsageError

MISSING = "the gateway needs packages that are not installed; run: pip install 'ottla[gateway]'"


def gateway(
    *,
    bootstrap_server: Annotated[
        str,
        Parameter(name=("--bootstrap-server", "-b"), env_var="OTTLA_BOOTSTRAP_SERVER"),
    ] = "localhost:9092",
    host: str = "127.0.0.1",
    port: int = 8080,
    secret_file: Path | None = None,
    webhook_allow: tuple[str, ...] = (),
) -> int:
    """Serve a cluster over HTTP.

    Args:
        bootstrap_server: Broker to connect to first, as HOST:PORT; more separated by commas.
        host: Address to listen on; others than loopback let everybody in who reaches it.
        port: Port to listen on; 0 takes a free one.
        secret_file: File with the secret that signs delivery handles, the same for all gateways
            of a cluster; without it the cluster keeps one.
        webhook_allow: Network that webhooks may call although it is not public, such as
            10.0.0.0/8; may be repeated.
    """
    if not 0 <= port < 1 << 16:
        raise UsageError(f"--port {port} is not from 0 to 65535")
    if secret_file is not None and not secret_file.is_file():
        raise UsageError(f"--secret-file {secret_file} is not a file")
    from ottla.client.wire.cluster import parse_servers

    try:
        parse_servers(bootstrap_server)
    except ValueError as error:
        raise UsageError(f"--bootstrap-server: {error}") from None
    try:
        from ottla.gateway.server import serve
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("ottla"):
            raise
        raise CommandError(MISSING) from None
    from ottla.gateway.core.addresses import parse_networks
    from ottla.gateway.settings import GatewaySettings

    try:
        parse_networks(webhook_allow)
    except ValueError as error:
        raise UsageError(f"--webhook-allow: {error}") from None
    return serve(
        GatewaySettings(
            bootstrap_server,
            host=host,
            port=port,
            secret_file=secret_file,
            webhook_allow=webhook_allow,
        )
    )
