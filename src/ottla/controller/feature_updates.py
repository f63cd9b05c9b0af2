"""UpdateFeatures: raises or lowers feature levels, for all brokers at once."""

from collections.abc import Mapping
from typing import Final

from kio.schema.update_features.v1.response import UpdatableFeatureResult
from kio.schema.update_features.v2.request import FeatureUpdateKey, UpdateFeaturesRequest
from kio.static.primitive import i8

from ottla.controller.features import FEATURES, feature_level
from ottla.controller.image import MetadataImage
from ottla.controller.records import FeatureLevelRecord
from ottla.machine.result import Result
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.messages.update_features import UpdateFeaturesResponse
from ottla.protocol.times import NO_THROTTLE

# The upgrade types of UpdateFeatures.
UPGRADE: Final = i8(1)
SAFE_DOWNGRADE: Final = i8(2)
UNSAFE_DOWNGRADE: Final = i8(3)


class FeatureControl:
    def __init__(self, image: MetadataImage) -> None:
        self._image = image

    def update_features(self, request: UpdateFeaturesRequest) -> Result[UpdateFeaturesResponse]:
        """All or nothing: the first rejected update is the answer."""
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
        """Raises ApiError if the update is rejected."""
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
        if level < present and FEATURES[name].is_fixed:
            raise _refusal(update, f"it has level {present}, which cannot be lowered")
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
                feature.name: (feature.min_supported_version, feature.max_supported_version)
                for feature in broker.features
            }
            low, high = known.get(name, (0, feature.default))
            if not low <= level <= high:
                raise _refusal(update, f"broker {broker.broker_id} knows levels {low} to {high}")


def feature_results(
    request: UpdateFeaturesRequest, code: ErrorCode, message: str | None
) -> tuple[UpdatableFeatureResult, ...]:
    """For clients before v2, which expect a result for each feature they named."""
    return tuple(
        UpdatableFeatureResult(feature=update.feature, error_code=code, error_message=message)
        for update in request.feature_updates
    )


def _refusal(update: FeatureUpdateKey, reason: str) -> ApiError:
    return ApiError(
        ErrorCode.invalid_update_version,
        f"{update.feature} cannot have level {update.max_version_level}: {reason}",
    )
