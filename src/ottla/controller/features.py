"""Cluster features that all brokers must support before they are used (KIP-584, KIP-1022).

A feature has the level last written to the metadata; before that it has its default, which every
release supports. A registering broker must support the levels that were written, and all registered
brokers must support a level that is to be written.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from kio.schema.broker_registration.v4.request import Feature as SupportedFeature
from kio.static.primitive import i16

from ottla.controller.image import MetadataImage
from ottla.protocol.errors import ApiError, ErrorCode

TRANSACTION_VERSION: Final = "transaction.version"
ELIGIBLE_LEADER_REPLICAS_VERSION: Final = "eligible.leader.replicas.version"
GROUP_VERSION: Final = "group.version"
KRAFT_VERSION: Final = "kraft.version"
METADATA_VERSION: Final = "metadata.version"
SHARE_VERSION: Final = "share.version"
STREAMS_VERSION: Final = "streams.version"


class Feature(NamedTuple):
    low: i16
    high: i16
    default: i16
    is_fixed: bool = False  # Cannot be lowered, as in Kafka.


FEATURES: Final[dict[str, Feature]] = {
    TRANSACTION_VERSION: Feature(i16(0), i16(2), default=i16(2)),
    # Always on (KIP-966): without it an empty in-sync set would have no meaning.
    ELIGIBLE_LEADER_REPLICAS_VERSION: Feature(i16(1), i16(1), default=i16(1)),
    GROUP_VERSION: Feature(i16(0), i16(1), default=i16(1)),  # KIP-848.
    SHARE_VERSION: Feature(i16(0), i16(1), default=i16(1)),  # KIP-932.
    STREAMS_VERSION: Feature(i16(0), i16(1), default=i16(1)),  # KIP-1071.
    # Voters can be added and removed (KIP-853); every release supports that.
    KRAFT_VERSION: Feature(i16(0), i16(1), default=i16(1), is_fixed=True),
    # That of Kafka 4.3, whose record formats the metadata log uses.
    METADATA_VERSION: Feature(i16(7), i16(30), default=i16(30), is_fixed=True),
}


def feature_level(image: MetadataImage, name: str) -> i16:
    return image.features.get(name, FEATURES[name].default)


def finalized_levels(image: MetadataImage) -> dict[str, i16]:
    """The features that are enabled."""
    levels = {name: feature_level(image, name) for name in FEATURES}
    return {name: level for name, level in levels.items() if level}


def supported_features() -> tuple[SupportedFeature, ...]:
    """What a broker of this release reports when it registers."""
    return tuple(
        SupportedFeature(
            name=name, min_supported_version=feature.low, max_supported_version=feature.high
        )
        for name, feature in FEATURES.items()
    )


def validate_broker_features(image: MetadataImage, features: Iterable[SupportedFeature]) -> None:
    ranges = {it.name: (it.min_supported_version, it.max_supported_version) for it in features}
    for name, level in image.features.items():
        low, high = ranges.get(name, (0, 0))
        if not low <= level <= high:
            raise ApiError(
                ErrorCode.unsupported_version,
                f"the cluster has {name} at level {level}; the broker knows {low} to {high}",
            )
