"""Passes dynamic broker configs to the parts that use them."""

from collections.abc import Callable
from dataclasses import field
from pathlib import Path

from ottla.controller.config import ALL_LOG_DIRS, CORDONED_LOG_DIRS
from ottla.controller.effective_configs import EffectiveConfigs
from ottla.controller.image import BROKER_RESOURCE, MetadataImage
from ottla.controller.records import ConfigRecord
from ottla.network.config import (
    MAX_CONNECTION_CREATION_RATE,
    MAX_CONNECTIONS,
    MAX_CONNECTIONS_PER_IP,
    MAX_CONNECTIONS_PER_IP_OVERRIDES,
    parse_overrides,
)
from ottla.network.server import Server
from ottla.protocol.config import ConfigValues
from ottla.protocol.lazy_dataclass import dataclass
from ottla.replication.config import (
    FOLLOWER_REPLICATION_THROTTLED_RATE,
    LEADER_REPLICATION_THROTTLED_RATE,
    REPLICA_ALTER_LOG_DIRS_IO_MAX,
)
from ottla.replication.throttle import ReplicationThrottle
from ottla.storage.manager import LogManager


@dataclass(slots=True, eq=False)
class DynamicConfigs:
    configs: EffectiveConfigs
    logs: LogManager
    throttle: ReplicationThrottle
    configure_locks: Callable[[ConfigValues], None]
    _server: Server | None = field(init=False, default=None)
    _connections_max: int = field(init=False, default=0)

    def limit(self, server: Server, connections_max: int) -> None:
        """From now on; never more connections than this process has descriptors for."""
        self._server = server
        self._connections_max = connections_max
        self.load()

    def on_record(self, record: object, _: MetadataImage) -> None:
        if isinstance(record, ConfigRecord) and record.resource_type == BROKER_RESOURCE:
            self.load()

    def load(self, _: MetadataImage | None = None) -> None:
        values = self.configs.broker_values()
        cordoned = {str(Path(path).absolute()) for path in values[CORDONED_LOG_DIRS]}
        is_everything = ALL_LOG_DIRS in values[CORDONED_LOG_DIRS]
        self.logs.log_dirs.cordon(lambda path: is_everything or path in cordoned)
        self.logs.reconfigure(values)
        self.configure_locks(values)
        if self._server is not None:
            self._server.limits.set(
                min(values[MAX_CONNECTIONS], self._connections_max),
                values[MAX_CONNECTIONS_PER_IP],
                parse_overrides(values[MAX_CONNECTIONS_PER_IP_OVERRIDES]),
            )
            self._server.connection_rates.bound = values[MAX_CONNECTION_CREATION_RATE]
        self.throttle.leader.set_rate(values[LEADER_REPLICATION_THROTTLED_RATE])
        self.throttle.follower.set_rate(values[FOLLOWER_REPLICATION_THROTTLED_RATE])
        self.throttle.directory_moves.set_rate(values[REPLICA_ALTER_LOG_DIRS_IO_MAX])
