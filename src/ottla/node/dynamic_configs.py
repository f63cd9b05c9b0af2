"""What can be set for a broker while it runs, handed to those who obey it."""

from pathlib import Path

from ottla.controller.config import ALL_LOG_DIRS, CORDONED_LOG_DIRS
from ottla.controller.effective_configs import EffectiveConfigs
from ottla.controller.image import BROKER_RESOURCE, MetadataImage
from ottla.controller.records import ConfigRecord
from ottla.replication.config import (
    FOLLOWER_REPLICATION_THROTTLED_RATE,
    LEADER_REPLICATION_THROTTLED_RATE,
)
from ottla.replication.throttle import ReplicationThrottle
from ottla.storage.manager import LogManager


class DynamicConfigs:
    def __init__(
        self, configs: EffectiveConfigs, logs: LogManager, throttle: ReplicationThrottle
    ) -> None:
        self._configs = configs
        self._logs = logs
        self._throttle = throttle

    def on_record(self, record: object, _: MetadataImage) -> None:
        if isinstance(record, ConfigRecord) and record.resource_type == BROKER_RESOURCE:
            self.load()

    def load(self, _: MetadataImage | None = None) -> None:
        values = self._configs.broker_values()
        cordoned = {str(Path(path).absolute()) for path in values[CORDONED_LOG_DIRS]}
        is_everything = ALL_LOG_DIRS in values[CORDONED_LOG_DIRS]
        self._logs.log_dirs.cordon(lambda path: is_everything or path in cordoned)
        self._throttle.leader.set_rate(values[LEADER_REPLICATION_THROTTLED_RATE])
        self._throttle.follower.set_rate(values[FOLLOWER_REPLICATION_THROTTLED_RATE])
