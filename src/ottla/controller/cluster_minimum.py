"""Initializes the cluster's min.insync.replicas from a file if it was never set (KIP-966).

Only the value in the metadata decides who may lead (see `leadership`), so that all nodes use the
same one. The first controller whose file has a value writes it there, for all brokers. From then on
the files are ignored, and the value can be changed but not removed, as in Kafka.
"""

from collections.abc import Callable, Mapping
from typing import Final

from ottla.controller.config import MIN_INSYNC_REPLICAS
from ottla.controller.image import BROKER_RESOURCE, MetadataImage
from ottla.controller.records import ConfigRecord, MetadataRecord
from ottla.machine.contract import Timers
from ottla.machine.result import Result
from ottla.protocol.config import ConfigValues

_TIMER: Final = "minimum of the cluster"


class ClusterMinimum:
    def __init__(
        self,
        image: MetadataImage,
        static: Mapping[str, object],
        with_effects: Callable[[list[ConfigRecord]], tuple[MetadataRecord, ...]],
        timers: Timers,
    ) -> None:
        """`static` is this node's file; `with_effects` is that of `ConfigControl`."""
        self._image = image
        self._static = static
        self._with_effects = with_effects
        self._timers = timers

    def on_loaded(self, now_ms: int) -> None:
        if MIN_INSYNC_REPLICAS.name in self._static:
            self._timers.schedule(_TIMER, now_ms, self._maybe_set)

    def _maybe_set(self, _now_ms: int) -> Result[None]:
        key = MIN_INSYNC_REPLICAS
        if key.name in self._image.default_broker_configs():
            return Result(None)
        record = ConfigRecord(
            resource_type=BROKER_RESOURCE,
            resource_name="",
            name=key.name,
            value=str(ConfigValues(self._static)[key]),
        )
        return Result(None, self._with_effects([record]), cause="min.insync.replicas was set")
