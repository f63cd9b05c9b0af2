"""`ottla serve`: start a broker and stay with it until it is stopped."""

import gc
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ottla.cli.assignments import parse_assignments
from ottla.cli.errors import UsageError
from ottla.cli.parameters import Flag, validate_port
from ottla.node.serve_settings import LogFormat, ServeSettings


def serve(
    *,
    id: int | None = None,  # noqa: A002
    host: str | None = None,
    port: int | None = None,
    data: list[Path] | None = None,
    config: Path | None = None,
    set_: list[str] | None = None,
    join: list[str] | None = None,
    new_cluster: Flag = False,
    insecure: Flag = False,
    shards: int = 1,
    advertised: str | None = None,
    listener: list[str] | None = None,
    http: str | None = None,
    http_config: Annotated[Path | None, Parameter(env_var="OTTLA_COMMAND_CONFIG")] = None,
    no_http: Flag = False,
    log_format: LogFormat = LogFormat.TEXT,
) -> int:
    """Start a broker.

    Args:
        id: Number of this node, unique in its cluster (node.id). [default: 1]
        host: Address to listen on. [default: localhost]
        port: Port to listen on; 0 takes a free port. [default: 9092]
        data: Data directory (log.dirs); may be repeated. [default: data]
        config: File with Kafka's configuration keys: YAML, or *.properties.
        set_: One configuration key as KEY=VALUE; overrides the file; may be repeated.
        join: HOST:PORT of a node of the cluster to join; may be repeated.
        new_cluster: Start a new cluster in a new directory. Needed once, and not on loopback.
        insecure: Listen beyond loopback without TLS and logins: everyone may do everything.
        shards: Number of nodes to start, one process each, with consecutive ids and ports.
        advertised: HOST:PORT that clients are told to connect to.
        listener: NAME://HOST:PORT to listen on, instead of --host and --port; may be repeated.
        http: PORT or HOST:PORT of an HTTP gateway to run next to the broker; PORT is on loopback.
        http_config: File with client settings for the gateway's login (--command-config).
        no_http: Run no gateway, which is the default.
        log_format: Format of the log on stderr.
    """
    validate_port("--port", port)
    if listener and (host is not None or port is not None):
        raise UsageError("--listener says where to listen; leave out --host and --port")
    if config is not None and not config.is_file():
        raise UsageError(f"--config {config} is not a file")
    if new_cluster and join:
        raise UsageError("--new-cluster begins a cluster and --join joins one; say one of them")
    if http is not None and no_http:
        raise UsageError("--http runs a gateway and --no-http runs none; say one of them")
    if http is not None and shards != 1:
        raise UsageError("--http goes with one node; run `ottla gateway` beside --shards")
    beside = None
    if http is not None:
        from ottla.cli.gateway_beside import gateway_beside, parse_http, reserve

        address = parse_http(http)
        reserved = reserve(address, http_config, insecure=insecure)
        beside = gateway_beside(
            address, reserved, http_config, insecure=insecure, log_format=log_format
        )
    settings = ServeSettings(
        id=id,
        host=host,
        port=port,
        data=tuple(data or ()),
        config_file=config,
        overrides=parse_assignments("--set", set_ or []),
        join=tuple(address for text in join or () for address in text.split(",")),
        new_cluster=new_cluster,
        insecure=insecure,
        advertised=advertised,
        listeners=tuple(listener or ()),
        log_format=log_format,
    )
    if shards != 1:
        from ottla.cli.shards import serve_shards

        return serve_shards(settings, shards)
    gc.disable()  # Until the node runs: modules stay, so there is nothing to collect.
    from ottla.node.node_process import serve as serve_node

    return serve_node(settings, beside, beside_logs_in=http_config is not None)
