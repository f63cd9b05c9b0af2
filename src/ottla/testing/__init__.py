"""Test kits that ship with the broker. Importing this imports no broker; starting one does."""

from ottla.testing.broker_access import ExternalBroker, NotInTime
from ottla.testing.embedded.cluster import EmbeddedBroker, EmbeddedCluster, Storage
from ottla.testing.embedded.container import OttlaContainer

__all__ = [
    "EmbeddedBroker",
    "EmbeddedCluster",
    "ExternalBroker",
    "NotInTime",
    "OttlaContainer",
    "Storage",
]
