"""UpdateFeatures (57): v0-v2.

Raises or lowers the level of a feature for the whole cluster.

v1  upgrade, safe or unsafe downgrade instead of a flag; only to validate
v2  one answer for all features
"""

from kio.schema.update_features.v2.request import UpdateFeaturesRequest

from ottla.controller.feature_updates import feature_results
from ottla.handlers.controller_calls import call_controller_with
from ottla.handlers.refusals import refused
from ottla.protocol.errors import ApiError
from ottla.protocol.messages.update_features import UpdateFeaturesResponse
from ottla.security.acls import Operation

handle = call_controller_with(Operation.ALTER)


def error_response(request: UpdateFeaturesRequest, error: ApiError) -> UpdateFeaturesResponse:
    results = feature_results(request, error.code, error.message)
    return refused(UpdateFeaturesResponse, error, results=results)
