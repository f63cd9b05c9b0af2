"""The min.insync.replicas of the cluster comes from a file if nobody has set it (KIP-966).

Only what is in the metadata counts for who may lead (see `leadership`), so that all nodes go by the
same value. The first controller whose file has one writes it there, for all brokers. From then on
the files do not count, and the value can be changed but not removed, as in Kafka.
"""

from typing import Final

from ottla.controller.config import MIN_INSYNC_REPLICAS
from ottla.controller.effective_configs import ConfigRules
from ottla.controller.image import BROKER_RESOURCE, MetadataImage
from ottla.controller.leadership import Leadership
from ottla.controller.partition_index import PartitionIndex
from ottla.controller.records import ConfigRecord
from ottla.machine.contract import Timers
from ottla.machine.result import Result
from ottla.protocol.config import ConfigValues

_TIMER: Final = "minimum of the cluster"


class ClusterMinimum:
    def __init__(
        self,
        image: MetadataImage,
        rules: ConfigRules,
        index: PartitionIndex,
        leadership: Leadership,
        timers: Timers,
    ) -> None:
        self._image = image
        self._rules = rules
        self._index = index
        self._leadership = leadership
        self._timers = timers

    def on_loaded(self, now_ms: int) -> None:
        if MIN_INSYNC_REPLICAS.name in self._rules.static:
            self._timers.schedule(_TIMER, now_ms, self._maybe_set)

    def _maybe_set(self, _now_ms: int) -> Result[None]:
        key = MIN_INSYNC_REPLICAS
        if key.name in self._image.default_broker_configs():
            return Result(None)
        record = ConfigRecord(
            resource_type=BROKER_RESOURCE,
            resource_name="",
            name=key.name,
            value=str(ConfigValues(self._rules.static)[key]),
        )
        effects = self._leadership.changes_by_configs(self._index, [record])
        return Result(None, (record, *effects))
