"""Configuration of a node: the file, then the environment, then the flags; the last one wins.

The environment variable of a key is `OTTLA_` plus its name in capitals with `_` for `.`:
`OTTLA_LOG_RETENTION_MS` sets `log.retention.ms`.
"""

import logging
from collections.abc import Mapping
from typing import Any

from ottla import __version__
from ottla.controller.config import BROKER_KEYS as CONTROLLER_KEYS
from ottla.groups.config import BROKER_KEYS as GROUP_BROKER_KEYS
from ottla.groups.consumer.config import BROKER_KEYS as CONSUMER_BROKER_KEYS
from ottla.groups.group_config import GROUP_KEYS, validate_broker
from ottla.groups.share.config import BROKER_KEYS as SHARE_BROKER_KEYS
from ottla.groups.streams.config import BROKER_KEYS as STREAMS_BROKER_KEYS
from ottla.network.config import ADVERTISED_LISTENERS, LISTENERS, NetworkConfig
from ottla.network.config import BROKER_KEYS as NETWORK_KEYS
from ottla.network.security_config import BROKER_KEYS as SECURITY_KEYS
from ottla.network.security_config import (
    SSL_KEYSTORE_LOCATION,
    SSL_TRUSTSTORE_LOCATION,
    SecurityConfig,
    validate_listener_keys,
)
from ottla.node.config_file import ConfigError, read_config_file
from ottla.node.joining import addresses_problem
from ottla.node.kafka_files import KAFKA_FILE_KEYS, as_kafka_means
from ottla.node.kafka_keys import with_kafka_keys
from ottla.node.serve_settings import ServeSettings
from ottla.protocol.config import (
    ConfigKey,
    ConfigSchema,
    ConfigValues,
    at_least,
    boolean_key,
    declared_keys,
    int_key,
    list_key,
    one_of,
    password_key,
    string_key,
)
from ottla.protocol.errors import ApiError
from ottla.raft.config import BROKER_KEYS as QUORUM_KEYS
from ottla.replication.config import BROKER_KEYS as REPLICATION_KEYS
from ottla.runtime.config import BROKER_KEYS as RUNTIME_KEYS
from ottla.storage.broker_config import BROKER_KEYS as STORAGE_KEYS
from ottla.storage.broker_config import LOG_DIRS
from ottla.storage.config import TOPIC_KEYS
from ottla.transactions.config import BROKER_KEYS as TRANSACTION_KEYS

logger = logging.getLogger(__name__)

ENVIRONMENT_PREFIX = "OTTLA_"
# Used by the command line and the tests, not by the broker.
ENVIRONMENT_RESERVED = (
    "OTTLA_BOOTSTRAP_SERVER",
    "OTTLA_COMMAND_CONFIG",
    "OTTLA_CONNECT_TIMEOUT",
    "OTTLA_PROFILE",
    "OTTLA_TEST_",
)

# Standard OpenTelemetry variables; OTTLA_* wins.
_OPENTELEMETRY_NAMES = {
    "OTEL_EXPORTER_OTLP_ENDPOINT": "otlp.endpoint",
    "OTEL_EXPORTER_OTLP_HEADERS": "otlp.headers",
    "OTEL_METRIC_EXPORT_INTERVAL": "otlp.interval.ms",
}

NODE_ID = int_key(
    "node.id",
    1,
    "The number of this node, unique in its cluster.",
    at_least(0),
)
BROKER_RACK = string_key(
    "broker.rack",
    "",
    "The rack or zone of this node; replicas of a partition are spread over racks.",
)
CONTROLLED_SHUTDOWN_ENABLE = boolean_key(
    "controlled.shutdown.enable",
    True,
    "Whether a stopping node first hands its partitions to other nodes.",
)
CONTROLLED_SHUTDOWN_TIMEOUT_MS = int_key(
    "controlled.shutdown.timeout.ms",
    5_000,
    "How long a stopping node waits for others to take over its partitions, and for clients to "
    "read their responses. Then it closes its logs and exits.",
    at_least(0),
)

QUORUM_BOOTSTRAP_SERVERS: ConfigKey[tuple[str, ...]] = list_key(
    "controller.quorum.bootstrap.servers",
    (),
    "Nodes of the cluster to join, as HOST:PORT; one that answers is enough. If empty, a node "
    "with a new directory starts a cluster, beyond loopback only with --new-cluster. Once joined,"
    " a node finds the others by itself.",
    addresses_problem,
)

QUORUM_JOIN_TIMEOUT_MS = int_key(
    "quorum.join.timeout.ms",
    3_000,
    "How long a node with a new directory waits for one of controller.quorum.bootstrap.servers to"
    " answer before it gives up. Raise it if you start all nodes at once.",
    at_least(0),
)

INITIAL_USERS_FILE = string_key(
    "initial.users.file",
    "",
    "A file with the SCRAM credentials of the first users, written by `ottla secure init`. The "
    "controller adds them to a cluster without users.",
)

OTTLA_VERSION = string_key(
    "ottla.version",
    __version__,
    "The release that the node runs. Read-only.",
    one_of(__version__),
)

METRICS_HOST = string_key(
    "metrics.host",
    "localhost",
    "The address on which the node serves metrics. They contain topic names.",
)
METRICS_PORT = int_key(
    "metrics.port",
    -1,
    "The port on which the node serves metrics for Prometheus, at /metrics; 0 picks a free one, "
    "-1 turns metrics off. The port of `ottla serve --http` serves them too, unless this is -1. "
    "Needs ottla[metrics].",
    at_least(-1),
)
METRICS_PARTITIONS = boolean_key(
    "metrics.partitions",
    True,
    "Whether there are metrics for every partition, or only totals.",
)

METRICS_TOPICS = boolean_key(
    "metrics.topics",
    True,
    "Whether there are metrics for every topic.",
)
METRICS_GROUPS_MAX = int_key(
    "metrics.groups.max",
    1_000,
    "How many groups of a coordinator get their own metrics; 0 turns off group metrics and lag.",
    at_least(0),
)
METRICS_LAG_INTERVAL_MS = int_key(
    "metrics.lag.interval.ms",
    10_000,
    "How often a coordinator measures the lag of its groups.",
    at_least(100),
)

METRICS_CLIENTS_MAX = int_key(
    "metrics.clients.max",
    100,
    "For how many clients this node shows the metrics they push (KIP-714). `ottla configs alter "
    "--client-metrics NAME` sets which clients push what.",
    at_least(0),
)
TELEMETRY_MAX_BYTES = int_key(
    "telemetry.max.bytes",
    1_048_576,
    "Maximum bytes of a client's metrics push.",
    at_least(1),
)

OTLP_ENDPOINT = string_key(
    "otlp.endpoint",
    "",
    "The URL of an OpenTelemetry collector that the node pushes its metrics to: protobuf over "
    "HTTP, to /v1/metrics below it. OTEL_EXPORTER_OTLP_ENDPOINT sets it as well. Needs "
    "ottla[otel].",
    lambda url: None if not url or url.startswith(("http://", "https://")) else "must be a URL",
)
OTLP_HEADERS = password_key(
    "otlp.headers",
    "",
    "Headers for otlp.endpoint, KEY=VALUE,KEY=VALUE. OTEL_EXPORTER_OTLP_HEADERS sets them as well.",
    lambda text: None if all("=" in pair for pair in text.split(",") if pair) else "not KEY=VALUE",
)
OTLP_INTERVAL_MS = int_key(
    "otlp.interval.ms",
    60_000,
    "How often metrics are pushed to otlp.endpoint. OTEL_METRIC_EXPORT_INTERVAL sets it as well.",
    at_least(100),
)

PROBE_INTERVAL_MS = int_key(
    "probe.interval.ms",
    0,
    "How often the active controller sends a record through every broker and back, and reports "
    "latency and losses as metrics; 0 for never. Needs metrics.port. The records are in the "
    "topics ottla-probe-ID.",
    at_least(0),
)

_FILE_KEYS = (
    SSL_KEYSTORE_LOCATION.name,
    SSL_TRUSTSTORE_LOCATION.name,
    INITIAL_USERS_FILE.name,
)

DECLARED_BROKER_KEYS: tuple[ConfigKey[Any], ...] = (
    *declared_keys(globals()),
    *KAFKA_FILE_KEYS,
    *NETWORK_KEYS,
    *SECURITY_KEYS,
    *STORAGE_KEYS,
    *CONTROLLER_KEYS,
    *QUORUM_KEYS,
    *GROUP_BROKER_KEYS,
    *CONSUMER_BROKER_KEYS,
    *SHARE_BROKER_KEYS,
    *STREAMS_BROKER_KEYS,
    *TRANSACTION_KEYS,
    *REPLICATION_KEYS,
    *RUNTIME_KEYS,
)
BROKER_SCHEMA = ConfigSchema(with_kafka_keys(DECLARED_BROKER_KEYS))
TOPIC_SCHEMA = ConfigSchema(TOPIC_KEYS)
GROUP_SCHEMA = ConfigSchema(GROUP_KEYS)


def has_metrics(values: ConfigValues) -> bool:
    """Whether anything reads the metrics."""
    return values[METRICS_PORT] >= 0 or bool(values[OTLP_ENDPOINT])


def load_config(settings: ServeSettings, environment: Mapping[str, str]) -> dict[str, object]:
    """Every key that was set, validated. Read it as `ConfigValues(load_config(...))`."""
    values: dict[str, object] = {}
    if settings.config_file is not None:
        content = read_config_file(settings.config_file, _FILE_KEYS, _is_secret)
        values |= _parse(content, f"in {settings.config_file}")
    values |= _parse(_read_environment(environment), "in the environment")
    values |= _parse(_read_flags(settings, ConfigValues(values)), "in the flags")
    values = as_kafka_means(values, joins=bool(settings.join), is_open=settings.insecure)
    try:
        validate_broker(ConfigValues(values))
        _validate_listeners(values)
    except ApiError as error:
        raise ConfigError(str(error.message)) from None
    except ValueError as error:
        raise ConfigError(str(error)) from None
    return values


def log_without_effect(values: Mapping[str, object]) -> None:
    """Log the keys that Kafka supports and Ottla ignores, in one line."""
    names = sorted(name for name in values if not BROKER_SCHEMA[name].has_effect)
    if names:
        logger.warning("these Apache Kafka keys have no effect here: %s", ", ".join(names))


def _is_secret(name: str) -> bool:
    return BROKER_SCHEMA.finds(name) and BROKER_SCHEMA[name].sensitive


def _validate_listeners(given: Mapping[str, object]) -> None:
    values = ConfigValues(given)
    listeners = NetworkConfig.of(values).listeners
    validate_listener_keys(list(given), listeners)
    SecurityConfig.of(values, listeners)


def _parse(values: Mapping[str, object], origin: str) -> dict[str, object]:
    try:
        return BROKER_SCHEMA.parse(values)
    except ApiError as error:
        raise ConfigError(f"{error.message} ({origin})") from None


def _read_environment(environment: Mapping[str, str]) -> dict[str, object]:
    names = {environment_name(key.name): key.name for key in BROKER_SCHEMA}
    values: dict[str, object] = {
        key: environment[name] for name, key in _OPENTELEMETRY_NAMES.items() if name in environment
    }
    for variable, value in environment.items():
        if variable in names:
            values[names[variable]] = value
        elif variable.startswith(ENVIRONMENT_PREFIX) and not variable.startswith(
            ENVIRONMENT_RESERVED
        ):
            import difflib  # For mistyped names.

            nearest = difflib.get_close_matches(variable, names, n=1)
            hint = f"; did you mean {nearest[0]}?" if nearest else ""
            raise ConfigError(f"unknown environment variable {variable}{hint}")
    return values


def environment_name(key: str) -> str:
    return ENVIRONMENT_PREFIX + key.replace(".", "_").replace("-", "_").upper()


def _read_flags(settings: ServeSettings, below: ConfigValues) -> dict[str, object]:
    values: dict[str, object] = dict(settings.overrides)
    if settings.id is not None:
        values[NODE_ID.name] = settings.id
    if settings.data:
        values[LOG_DIRS.name] = tuple(str(path) for path in settings.data)
    if settings.join:
        values[QUORUM_BOOTSTRAP_SERVERS.name] = settings.join
    if settings.listeners:
        values[LISTENERS.name] = settings.listeners
    elif settings.host is not None or settings.port is not None:
        values[LISTENERS.name] = (_single_listener(settings, below),)
    if settings.advertised is not None:
        first = values.get(LISTENERS.name, below[LISTENERS])
        name = str(first[0] if isinstance(first, tuple) else first).partition("://")[0]
        values[ADVERTISED_LISTENERS.name] = (f"{name}://{settings.advertised}",)
    return values


def _single_listener(settings: ServeSettings, below: ConfigValues) -> str:
    """`--host` and `--port` each replace one half of the first configured listener."""
    name, _, address = below[LISTENERS][0].partition("://")
    host, _, port = address.rpartition(":")
    if settings.host is not None:
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
    if settings.port is not None:
        port = str(settings.port)
    return f"{name}://{host}:{port}"
