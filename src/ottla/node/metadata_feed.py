"""This node's image of the cluster, and who is told when it changes."""

from collections.abc import Callable

from ottla.controller.image import MetadataImage

Listener = Callable[[object, MetadataImage], None]  # A committed record, and the image with it.


class MetadataFeed:
    def __init__(self) -> None:
        self.image = MetadataImage()
        self.offset = -1  # Of the last record in the image.
        self._listeners: list[Listener] = []

    def listen(self, listener: Listener) -> None:
        self._listeners.append(listener)

    def on_committed(self, record: object, offset: int) -> None:
        self.image.replay(record)
        self.offset = offset
        for listener in self._listeners:
            listener(record, self.image)
