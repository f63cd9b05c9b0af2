from dataclasses import replace
from uuid import UUID

import pytest
from kio.schema.allocate_producer_ids.v0.request import AllocateProducerIdsRequest
from kio.schema.describe_groups.v6.request import DescribeGroupsRequest
from tests.controller.test_topics import creation, topic

from ottla.controller.mutations import Caller
from ottla.controller.operations import FORWARDED_KEYS
from ottla.handlers.api import ColdApi
from ottla.handlers.envelope import handle as handle_envelope
from ottla.handlers.table import API_TABLE
from ottla.protocol.codec import read_response, write_request
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.messages.envelope import EnvelopeRequest
from ottla.runtime.forwarding import envelope_fields
from ottla.security.acl_index import AclIndex
from ottla.security.acls import AclBinding, Operation, PatternType, Permission, ResourceType
from ottla.security.authorizer import Authorizer
from ottla.security.principal import ANONYMOUS, Principal

ALICE = Principal("User", "alice")
FROM = Caller(ALICE, "10.1.2.3", "app")


def envelope(request, caller=None):
    frame = write_request(request.__api_key__, request.__version__, 9, "node-2", request)
    return EnvelopeRequest(request_data=frame[4:], **envelope_fields(caller))


def authorizing(node, *entries, super_users=()):
    """The node, with an authorizer that has these entries for topics."""
    acls = AclIndex()
    for principal, operation, name, host in entries:
        acls.add(
            UUID(int=acls.version + 1),
            AclBinding(
                ResourceType.TOPIC,
                name,
                PatternType.LITERAL,
                principal,
                host,
                operation,
                Permission.ALLOW,
            ),
        )
    authorizer = Authorizer(acls, frozenset(super_users))
    node.use(replace(node.broker, authorizer=authorizer))
    return authorizer


def created_in(response):
    _, created = read_response(19, 7, memoryview(response.response_data))
    return {result.name: result.error_code for result in created.topics}


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


def test_a_forwarded_request_is_authorized_in_the_name_of_its_client(node):
    authorizing(
        node,
        (ALICE, Operation.CREATE, "hers", "10.1.2.3"),
        (ALICE, Operation.CREATE, "elsewhere", "10.9.9.9"),
        super_users=(ANONYMOUS,),  # The node that forwards.
    )
    request = creation(*(topic(name, 1, 1) for name in ("hers", "elsewhere", "nobodys")))
    response = node.call(handle_envelope, envelope(request, FROM))
    assert created_in(response) == {
        "hers": ErrorCode.none,
        "elsewhere": ErrorCode.topic_authorization_failed,
        "nobodys": ErrorCode.topic_authorization_failed,
    }
    assert node.image.topic_id("nobodys") is None


def test_a_request_of_the_node_itself_is_not_authorized_again(node):
    authorizing(node)
    response = node.call(handle_envelope, envelope(creation(topic("orders", 1, 1))))
    assert created_in(response) == {"orders": ErrorCode.none}


def test_the_controller_is_asked_again_while_it_does_not_know_the_acls(node):
    authorizing(node, super_users=(ALICE,)).is_loaded = False
    with pytest.raises(ApiError) as error:
        node.call(handle_envelope, envelope(creation(topic("orders", 1, 1)), FROM))
    assert error.value.code is ErrorCode.not_controller


def test_an_envelope_of_somebody_who_is_no_node_is_refused_whatever_principal_it_names(node):
    authorizing(node, super_users=(ALICE,))
    forged = envelope(creation(topic("orders", 1, 1)), FROM)
    response = node.ask(58, 0, forged)  # As User:ANONYMOUS.
    assert response.error_code is ErrorCode.cluster_authorization_failed
    assert node.image.topic_id("orders") is None


def test_what_only_nodes_ask_for_is_not_forwarded_for_clients(node):
    epoch = node.image.brokers[1].broker_epoch
    request = AllocateProducerIdsRequest(broker_id=1, broker_epoch=epoch)
    response = node.call(handle_envelope, envelope(request, FROM))
    _, allocated = read_response(67, 0, memoryview(response.response_data))
    assert allocated.error_code is ErrorCode.invalid_request


@pytest.mark.parametrize("principal", [b"", b"\0\0", b"\0\1\5User\6alice\0\0", b"\0\0\x7fUser"])
def test_a_principal_that_cannot_be_read_is_refused(node, principal):
    forwarded = replace(envelope(creation()), request_principal=principal)
    with pytest.raises(ApiError) as error:
        node.call(handle_envelope, forwarded)
    assert error.value.code is ErrorCode.principal_deserialization_failure
