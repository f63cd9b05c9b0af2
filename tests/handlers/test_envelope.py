import pytest
from kio.schema.describe_groups.v6.request import DescribeGroupsRequest
from tests.controller.test_topics import creation, topic

from ottla.controller.operations import FORWARDED_KEYS
from ottla.handlers.api import ColdApi
from ottla.handlers.envelope import handle as handle_envelope
from ottla.handlers.table import API_TABLE
from ottla.protocol.codec import read_response, write_request
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.messages.envelope import EnvelopeRequest


def envelope(request, api_version=None):
    version = request.__version__ if api_version is None else api_version
    frame = write_request(request.__api_key__, version, 9, "node-2", request)
    return EnvelopeRequest(request_data=frame[4:], request_principal=None, client_host_address=b"")


def test_a_request_is_answered_with_how_far_the_image_is(node):
    before = node.quorum.applier.applied_offset
    request = creation(topic("orders", 2, 1))
    response = node.call(handle_envelope, envelope(request))
    assert response.error_code is ErrorCode.none
    assert response.metadata_offset == node.quorum.applier.applied_offset > before
    correlation_id, created = read_response(19, 7, memoryview(response.response_data))
    assert correlation_id == 9
    assert [(result.name, result.error_code) for result in created.topics] == [
        ("orders", ErrorCode.none)
    ]


def test_what_the_controller_refuses_is_refused_in_the_words_of_the_request(node):
    broken = creation(topic("orders", 2, 1), topic("orders", 2, 1))
    response = node.call(handle_envelope, envelope(broken))
    assert response.error_code is ErrorCode.none
    _, created = read_response(19, 7, memoryview(response.response_data))
    assert {result.error_code for result in created.topics} == {ErrorCode.invalid_request}


@pytest.mark.parametrize(
    "refused",
    [
        envelope(DescribeGroupsRequest(groups=(), include_authorized_operations=False)),
        envelope(envelope(creation())),
        EnvelopeRequest(request_data=b"", request_principal=None, client_host_address=b""),
        EnvelopeRequest(request_data=b"\x7f" * 40, request_principal=None, client_host_address=b""),
    ],
)
def test_what_is_not_for_the_controller_is_refused(node, refused):
    with pytest.raises(ApiError) as error:
        node.call(handle_envelope, refused)
    assert error.value.code is ErrorCode.invalid_request


@pytest.mark.parametrize("api_key", sorted(FORWARDED_KEYS))
def test_what_is_forwarded_is_served(api_key):
    assert isinstance(API_TABLE[api_key], ColdApi)
