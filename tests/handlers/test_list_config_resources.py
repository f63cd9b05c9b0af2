import pytest
from kio.schema.list_config_resources.v1.request import ListConfigResourcesRequest
from tests.controller.test_topics import creation, topic

from ottla.handlers.create_topics import handle as handle_create_topics
from ottla.handlers.list_config_resources import handle as handle_list_config_resources
from ottla.handlers.refusals import error_response
from ottla.protocol.errors import ApiError, ErrorCode


def listed(node, *types, api_version=1):
    request = ListConfigResourcesRequest(resource_types=types)
    response = node.call(handle_list_config_resources, request, api_version=api_version)
    return [
        (resource.resource_type, resource.resource_name) for resource in response.config_resources
    ]


def test_topics_brokers_and_their_loggers_are_listed(node):
    node.call(handle_create_topics, creation(topic("b"), topic("a")))
    assert listed(node) == [(2, "a"), (2, "b"), (4, "1"), (8, "1")]
    assert listed(node, 4) == [(4, "1")]
    assert listed(node, 8) == [(8, "1")]
    assert listed(node, 16) == []
    assert listed(node, api_version=0) == []


def test_an_unknown_type_is_refused(node):
    with pytest.raises(ApiError) as caught:
        listed(node, 3)
    answer = error_response(ListConfigResourcesRequest(resource_types=(3,)), caught.value)
    assert answer.error_code is ErrorCode.unsupported_version
