"""The effective configuration of each group.

Read on every heartbeat and share fetch, and cached until a config changes.
"""

from typing import Any, TypeVar

from ottla.controller.effective_configs import EffectiveConfigs
from ottla.controller.image import MetadataImage
from ottla.groups.consumer.config import ConsumerConfig
from ottla.groups.share.config import ShareConfig
from ottla.groups.streams.config import StreamsConfig

_GROUPS_MAX = 10_000  # Clients choose the names.

C = TypeVar("C", ConsumerConfig, ShareConfig, StreamsConfig)


class GroupConfigs:
    def __init__(self, configs: EffectiveConfigs, image: MetadataImage) -> None:
        self._configs = configs
        self._image = image
        self._version = -1  # The version of the configs from which the others were built.
        self._known: dict[tuple[type, str], Any] = {}

    def consumer(self, group_id: str) -> ConsumerConfig:
        return self._find(ConsumerConfig, group_id)

    def share(self, group_id: str) -> ShareConfig:
        return self._find(ShareConfig, group_id)

    def streams(self, group_id: str) -> StreamsConfig:
        return self._find(StreamsConfig, group_id)

    def _find(self, kind: type[C], group_id: str) -> C:
        version = self._image.configs_version
        if version != self._version or len(self._known) >= _GROUPS_MAX:
            self._version = version
            self._known.clear()
        config: C | None = self._known.get((kind, group_id))
        if config is None:
            group, broker = self._configs.group_values(group_id), self._configs.broker_values()
            config = self._known[kind, group_id] = kind.of(group, broker)
        return config
