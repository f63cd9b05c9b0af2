"""Features of the cluster that all nodes must know before they are used (KIP-584, KIP-1022).

A feature has the level that was last written to the metadata; before that it has its default, which
every release knows.
"""

from typing import Final, NamedTuple

from kio.static.primitive import i16

from ottla.controller.image import MetadataImage

TRANSACTION_VERSION: Final = "transaction.version"
ELIGIBLE_LEADER_REPLICAS_VERSION: Final = "eligible.leader.replicas.version"


class Feature(NamedTuple):
    low: i16
    high: i16
    default: i16


FEATURES: Final[dict[str, Feature]] = {
    TRANSACTION_VERSION: Feature(i16(0), i16(2), default=i16(2)),
    ELIGIBLE_LEADER_REPLICAS_VERSION: Feature(i16(0), i16(1), default=i16(1)),
}


def feature_level(image: MetadataImage, name: str) -> i16:
    return image.features.get(name, FEATURES[name].default)
