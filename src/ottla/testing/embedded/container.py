"""A broker with the interface of testcontainers' `KafkaContainer`, but no container.

from ottla.testing import OttlaContainer as KafkaContainer
"""

from typing import Self

from ottla.network.held_port import HOST
from ottla.testing.embedded.cluster import EmbeddedBroker, Storage

_KAFKA_PREFIX = "KAFKA_"


class OttlaContainer:
    """Options about images and containers are accepted and ignored."""

    def __init__(self, image: str = "", port: int = 9093, **_: object) -> None:
        self.image = image
        self.port = port  # Inside the container that there is not.
        self._config: dict[str, str] = {}
        self._broker: EmbeddedBroker | None = None

    def with_env(self, key: str, value: str) -> Self:
        """KAFKA_LOG_RETENTION_MS sets log.retention.ms, as in Kafka's images.

        Settings for listeners, addresses and voters are ignored: they are fixed.
        """
        if key.startswith(_KAFKA_PREFIX):
            name = key.removeprefix(_KAFKA_PREFIX).replace("_", ".").lower()
            if _is_known(name):
                self._config[name] = value
        return self

    def _without_effect(self, *_: object, **_options: object) -> Self:
        return self

    with_kraft = with_cluster_id = with_name = _without_effect
    with_exposed_ports = with_kwargs = _without_effect

    def start(self, timeout: float = 0) -> Self:  # noqa: ARG002
        """`timeout` is ignored."""
        self._broker = EmbeddedBroker(config=self._config, storage=Storage.MEMORY)
        self._broker.start()
        return self

    def stop(self, *_: object, **_options: object) -> None:
        """All arguments are ignored: nothing is left behind."""
        if self._broker is not None:
            self._broker.stop()
            self._broker = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def broker(self) -> EmbeddedBroker:
        """What a `KafkaContainer` lacks: records and faults."""
        if self._broker is None:
            raise RuntimeError("the broker is not started")
        return self._broker

    def get_bootstrap_server(self) -> str:
        return self.broker.bootstrap_servers

    def get_container_host_ip(self) -> str:
        return HOST

    def get_exposed_port(self, _: int) -> int:
        """For any container port, the broker's only port."""
        return int(self.broker.bootstrap_servers.rpartition(":")[2])


def _is_known(name: str) -> bool:
    from ottla.node.config import BROKER_SCHEMA, NODE_ID

    if name.endswith("listeners") or name == NODE_ID.name:
        return False
    return any(key.name == name for key in BROKER_SCHEMA)
