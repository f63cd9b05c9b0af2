"""The cluster's topics, as a coordinator sees them."""

from collections.abc import Iterable
from typing import Protocol
from uuid import UUID


class TopicCatalog(Protocol):
    @property
    def topics_version(self) -> int:
        """Increases with every change of the topics or of their partition counts."""

    def topic_names(self) -> Iterable[str]: ...

    def topic_id(self, name: str) -> UUID | None: ...

    def topic_name(self, topic_id: UUID) -> str | None: ...

    def partition_count(self, name: str) -> int | None:
        """None if the topic does not exist."""
