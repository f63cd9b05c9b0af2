"""Options that say how to reach a cluster, the same for reads and writes."""

from dataclasses import dataclass

from ottla.client.wire.cluster import Cluster
from ottla.client.wire.security import Security
from ottla.protocol.addresses import parse_servers
from pyspark_ottla.options import OptionError, OptionValues
from pyspark_ottla.security_options import NAMES as SECURITY_NAMES
from pyspark_ottla.security_options import default_servers, parse_security

SERVERS = "kafka.bootstrap.servers"
NAMES = (SERVERS, "kafka.client.id", "kafka.request.timeout.ms", *SECURITY_NAMES)


@dataclass(frozen=True)
class ClusterOptions:
    bootstrap_servers: str
    client_id: str
    request_timeout_ms: int
    retry_timeout_ms: int
    security: Security

    def connect(self) -> Cluster:
        """The cluster; connects on the first request."""
        return Cluster(
            self.bootstrap_servers,
            client_id=self.client_id,
            request_timeout_ms=self.request_timeout_ms,
            retry_timeout_ms=self.retry_timeout_ms,
            security=self.security,
        )


def parse_cluster_options(values: OptionValues, *, retry_timeout_ms: int) -> ClusterOptions:
    """Raises OptionError. Reads and writes have options of their own for the retry timeout."""
    servers = values.text(SERVERS) or default_servers()
    if servers is None:
        raise OptionError(f"option {SERVERS} is missing: host:port of one or more brokers")
    try:
        parse_servers(servers)
    except ValueError as error:
        raise OptionError(f"option {SERVERS}: {error}") from None
    return ClusterOptions(
        bootstrap_servers=servers,
        client_id=values.text("kafka.client.id") or "ottla-spark",
        request_timeout_ms=values.positive("kafka.request.timeout.ms") or 30_000,
        retry_timeout_ms=retry_timeout_ms,
        security=parse_security(values, servers),
    )
