"""The effective configuration of each group.

Read on every heartbeat and share fetch, and cached until a config changes.
"""

from ottla.controller.effective_configs import EffectiveConfigs
from ottla.controller.image import MetadataImage
from ottla.groups.consumer.config import ConsumerConfig
from ottla.groups.share.config import ShareConfig
from ottla.groups.streams.config import StreamsConfig

_GROUPS_MAX = 10_000  # Clients choose the names.


class GroupConfigs:
    def __init__(self, configs: EffectiveConfigs, image: MetadataImage) -> None:
        self._configs = configs
        self._image = image
        self._version = -1  # The version of the configs from which the others were built.
        self._consumer: dict[str, ConsumerConfig] = {}
        self._share: dict[str, ShareConfig] = {}
        self._streams: dict[str, StreamsConfig] = {}

    def consumer(self, group_id: str) -> ConsumerConfig:
        self._maybe_forget()
        config = self._consumer.get(group_id)
        if config is None:
            broker = self._configs.broker_values()
            config = ConsumerConfig.of(self._configs.group_values(group_id), broker)
            self._consumer[group_id] = config
        return config

    def share(self, group_id: str) -> ShareConfig:
        self._maybe_forget()
        config = self._share.get(group_id)
        if config is None:
            broker = self._configs.broker_values()
            config = ShareConfig.of(self._configs.group_values(group_id), broker)
            self._share[group_id] = config
        return config

    def streams(self, group_id: str) -> StreamsConfig:
        self._maybe_forget()
        config = self._streams.get(group_id)
        if config is None:
            broker = self._configs.broker_values()
            config = StreamsConfig.of(self._configs.group_values(group_id), broker)
            self._streams[group_id] = config
        return config

    def _maybe_forget(self) -> None:
        version = self._image.configs_version
        count = len(self._consumer) + len(self._share) + len(self._streams)
        if version != self._version or count >= _GROUPS_MAX:
            self._version = version
            self._consumer.clear()
            self._share.clear()
            self._streams.clear()
