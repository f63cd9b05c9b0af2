"""Imports the broker, when the first one is wanted."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.testing.embedded.embedded_node import EmbeddedNode


def node_type() -> "type[EmbeddedNode]":
    with _no_collections():
        from ottla.testing.embedded.embedded_node import EmbeddedNode
    return EmbeddedNode


@contextmanager
def _no_collections() -> Iterator[None]:
    """Modules stay, so there is nothing to collect; to look for it takes a tenth of the import."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
