from dataclasses import replace

import pytest
from kio.schema.api_versions.v4.response import (
    ApiVersion,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

from ottla.controller.features import FEATURES
from ottla.controller.records import FeatureLevelRecord
from ottla.handlers.api_versions import handle as handle_api_versions
from ottla.handlers.api_versions import unsupported_version_response
from ottla.handlers.refusals import error_response
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.times import NO_THROTTLE


def asking(name="librdkafka", version="2.12.0"):
    return ApiVersionsRequest(client_software_name=name, client_software_version=version)


def test_the_versions_are_those_of_the_table(start_node):
    node = start_node()
    settings = node.broker.settings._replace(api_versions={0: (0, 13), 18: (0, 4)})
    node.use(replace(node.broker, settings=settings))
    response = node.call(handle_api_versions, asking())
    assert response == ApiVersionsResponse(
        error_code=ErrorCode.none,
        api_keys=(
            ApiVersion(api_key=0, min_version=0, max_version=13),
            ApiVersion(api_key=18, min_version=0, max_version=4),
        ),
        throttle_time=NO_THROTTLE,
        supported_features=tuple(
            SupportedFeatureKey(name=name, min_version=feature.low, max_version=feature.high)
            for name, feature in FEATURES.items()
        ),
        finalized_features_epoch=node.broker.metadata_end_offset(),
        finalized_features=tuple(
            FinalizedFeatureKey(
                name=name, max_version_level=feature.default, min_version_level=feature.default
            )
            for name, feature in FEATURES.items()
        ),
    )


def test_a_feature_that_was_written_has_that_level(node):
    node.image.replay(FeatureLevelRecord(name="transaction.version", feature_level=0))
    response = node.call(handle_api_versions, asking())
    assert "transaction.version" not in {feature.name for feature in response.finalized_features}


def test_the_session_learns_the_software_of_the_client(node):
    node.call(handle_api_versions, asking())
    assert node.client.session.client_software_name == "librdkafka"
    assert node.client.session.client_software_version == "2.12.0"


def test_old_versions_say_no_software(node):
    assert node.call(handle_api_versions, asking("", ""), api_version=0).error_code == 0


@pytest.mark.parametrize("request_", [asking(name=""), asking(version="1 2"), asking(name="-a")])
def test_bad_names_of_software_are_refused(node, request_):
    with pytest.raises(ApiError) as caught:
        node.call(handle_api_versions, request_)
    assert error_response(request_, caught.value).error_code is ErrorCode.invalid_request


def test_a_client_that_reached_the_broker_that_it_meant_is_served(node):
    broker = node.broker
    meant = replace(asking(), cluster_id=broker.cluster_id, node_id=broker.node_id)
    assert node.call(handle_api_versions, meant).api_keys


@pytest.mark.parametrize(
    ("meant", "expected"),
    [
        ({"node_id": 2}, ErrorCode.rebootstrap_required),
        ({"cluster_id": "another"}, ErrorCode.rebootstrap_required),
        ({"cluster_id": None}, ErrorCode.invalid_request),
        ({"node_id": -1}, ErrorCode.invalid_request),
    ],
)
def test_a_client_that_meant_another_broker_is_refused(node, meant, expected):
    broker = node.broker
    here = replace(asking(), cluster_id=broker.cluster_id, node_id=broker.node_id)
    with pytest.raises(ApiError) as caught:
        node.call(handle_api_versions, replace(here, **meant))
    response = error_response(here, caught.value)
    assert (response.error_code, response.api_keys) == (expected, ())


def test_an_unknown_version_is_told_the_known_ones():
    response = unsupported_version_response(0, 4)
    assert response.error_code is ErrorCode.unsupported_version
    assert response.api_keys == (ApiVersion(api_key=18, min_version=0, max_version=4),)
