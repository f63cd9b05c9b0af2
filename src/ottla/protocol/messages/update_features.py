"""UpdateFeatures: see the package."""

from kio.schema.update_features.v1.response import UpdatableFeatureResult
from kio.schema.update_features.v2 import response as update_features_response

from ottla.protocol.entities import entity


@entity
class UpdateFeaturesResponse(update_features_response.UpdateFeaturesResponse):
    # Until v1, whose clients expect a result for each feature that they asked to update.
    results: tuple[UpdatableFeatureResult, ...] = ()
