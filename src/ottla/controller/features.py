"""Features of the cluster that all brokers must know before they are used (KIP-584, KIP-1022).

A feature has the level that was last written to the metadata; before that it has its default, which
every release knows. A level that was written must be known to a broker that registers, and all
registered brokers must know a level that is to be written.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from kio.schema.broker_registration.v4.request import Feature as SupportedFeature
from kio.schema.update_features.v1.response import UpdatableFeatureResult
from kio.schema.update_features.v2.request import FeatureUpdateKey, UpdateFeaturesRequest
from kio.static.primitive import i8, i16

from ottla.controller.image import MetadataImage
from ottla.controller.records import FeatureLevelRecord
from ottla.machine.result import Result
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.messages.update_features import UpdateFeaturesResponse
from ottla.protocol.times import NO_THROTTLE

TRANSACTION_VERSION: Final = "transaction.version"
ELIGIBLE_LEADER_REPLICAS_VERSION: Final = "eligible.leader.replicas.version"


class Feature(NamedTuple):
    low: i16
    high: i16
    default: i16


FEATURES: Final[dict[str, Feature]] = {
    TRANSACTION_VERSION: Feature(i16(0), i16(2), default=i16(2)),
    # Always on (KIP-966): without it an empty in-sync set would have no meaning.
    ELIGIBLE_LEADER_REPLICAS_VERSION: Feature(i16(1), i16(1), default=i16(1)),
}


# The upgrade types of UpdateFeatures.
UPGRADE: Final = i8(1)
SAFE_DOWNGRADE: Final = i8(2)
UNSAFE_DOWNGRADE: Final = i8(3)


def feature_level(image: MetadataImage, name: str) -> i16:
    return image.features.get(name, FEATURES[name].default)


def finalized_levels(image: MetadataImage) -> dict[str, i16]:
    """Those that are on."""
    levels = {name: feature_level(image, name) for name in FEATURES}
    return {name: level for name, level in levels.items() if level}


def supported_features() -> tuple[SupportedFeature, ...]:
    """What a broker of this release says when it registers."""
    return tuple(
        SupportedFeature(
            name=name, min_supported_version=feature.low, max_supported_version=feature.high
        )
        for name, feature in FEATURES.items()
    )


def validate_broker_features(image: MetadataImage, features: Iterable[SupportedFeature]) -> None:
    ranges = {one.name: (one.min_supported_version, one.max_supported_version) for one in features}
    for name, level in image.features.items():
        low, high = ranges.get(name, (0, 0))
        if not low <= level <= high:
            raise ApiError(
                ErrorCode.unsupported_version,
                f"the cluster has {name} at level {level}; the broker knows {low} to {high}",
            )


class FeatureControl:
    def __init__(self, image: MetadataImage) -> None:
        self._image = image

    def update_features(self, request: UpdateFeaturesRequest) -> Result[UpdateFeaturesResponse]:
        """All or nothing: the first update that is refused is the answer."""
        updates = request.feature_updates
        if len({update.feature for update in updates}) != len(updates):
            raise ApiError(ErrorCode.invalid_request, "a feature is updated more than once")
        records = [
            FeatureLevelRecord(name=update.feature, feature_level=update.max_version_level)
            for update in updates
            if self._is_change(update)
        ]
        response = UpdateFeaturesResponse(
            throttle_time=NO_THROTTLE,
            error_code=ErrorCode.none,
            error_message=None,
            results=feature_results(request, ErrorCode.none, None),
        )
        return Result(response, () if request.validate_only else tuple(records))

    def _is_change(self, update: FeatureUpdateKey) -> bool:
        """Raises ApiError when the update is refused."""
        name, level = update.feature, update.max_version_level
        if name not in FEATURES:
            raise _refusal(update, "this feature is not known")
        if update.upgrade_type not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
            raise _refusal(update, f"unknown upgrade type {update.upgrade_type}")
        self._validate_supported(update)
        present = feature_level(self._image, name)
        is_upgrade = update.upgrade_type == UPGRADE
        if level < present and is_upgrade:
            raise _refusal(update, f"it has level {present}; ask for a downgrade")
        if level > present and not is_upgrade:
            raise _refusal(update, f"it has level {present}; that would be no downgrade")
        return level != present

    def _validate_supported(self, update: FeatureUpdateKey) -> None:
        name, level = update.feature, update.max_version_level
        feature = FEATURES[name]
        if not feature.low <= level <= feature.high:
            raise _refusal(update, f"the controller knows levels {feature.low} to {feature.high}")
        for broker in self._image.brokers.values():
            known: Mapping[str, tuple[int, int]] = {
                one.name: (one.min_supported_version, one.max_supported_version)
                for one in broker.features
            }
            low, high = known.get(name, (0, feature.default))
            if not low <= level <= high:
                raise _refusal(update, f"broker {broker.broker_id} knows levels {low} to {high}")


def feature_results(
    request: UpdateFeaturesRequest, code: ErrorCode, message: str | None
) -> tuple[UpdatableFeatureResult, ...]:
    """For clients before v2, who look for each feature that they named."""
    return tuple(
        UpdatableFeatureResult(feature=one.feature, error_code=code, error_message=message)
        for one in request.feature_updates
    )


def _refusal(update: FeatureUpdateKey, reason: str) -> ApiError:
    return ApiError(
        ErrorCode.invalid_update_version,
        f"{update.feature} cannot have level {update.max_version_level}: {reason}",
    )
