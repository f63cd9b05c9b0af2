from typing import Any

from kio.schema.create_acls.v3.request import AclCreation, CreateAclsRequest
from kio.schema.delete_acls.v3.request import DeleteAclsFilter, DeleteAclsRequest
from kio.static.primitive import i8
from tests.controller.cluster import Cluster, answered

from ottla.controller.image import MetadataImage
from ottla.protocol.errors import ErrorCode
from ottla.security.acls import Operation, PatternType, Permission, ResourceType
from ottla.security.authorizer import Authorizer
from ottla.security.principal import parse_principal

ALICE = parse_principal("User:alice")


def creation(**changes: Any) -> AclCreation:
    values = {
        "resource_type": i8(ResourceType.TOPIC),
        "resource_name": "orders",
        "resource_pattern_type": i8(PatternType.LITERAL),
        "principal": "User:alice",
        "host": "*",
        "operation": i8(Operation.READ),
        "permission_type": i8(Permission.ALLOW),
    }
    return AclCreation(**{**values, **changes})


def create(cluster: Cluster, *creations: AclCreation) -> list[ErrorCode]:
    result = cluster.machine.acls.create_acls(CreateAclsRequest(creations=creations))
    cluster.apply(result)
    return [acl_result.error_code for acl_result in answered(result).results]


def any_filter(**changes: Any) -> DeleteAclsFilter:
    values = {
        "resource_type_filter": i8(1),
        "resource_name_filter": None,
        "pattern_type_filter": i8(1),
        "principal_filter": None,
        "host_filter": None,
        "operation": i8(1),
        "permission_type": i8(1),
    }
    return DeleteAclsFilter(**{**values, **changes})


def test_an_entry_is_created_once() -> None:
    cluster = Cluster()
    access = Authorizer(cluster.image.acls).access(ALICE, "10.0.0.1")
    assert not access.may(Operation.READ, ResourceType.TOPIC, "orders")
    assert create(cluster, creation(), creation()) == [ErrorCode.none] * 2
    assert create(cluster, creation()) == [ErrorCode.none]
    assert len(cluster.image.acls) == 1
    assert access.may(Operation.READ, ResourceType.TOPIC, "orders")


def test_bad_entries_are_refused_one_by_one() -> None:
    cluster = Cluster()
    bad = [
        creation(resource_name=""),
        creation(resource_type=i8(0)),
        creation(resource_type=i8(1)),
        creation(resource_type=i8(ResourceType.CLUSTER), resource_name="other"),
        creation(resource_pattern_type=i8(PatternType.MATCH)),
        creation(operation=i8(1)),
        creation(permission_type=i8(1)),
        creation(principal="alice"),
    ]
    good = creation(resource_type=i8(ResourceType.CLUSTER), resource_name="kafka-cluster")
    assert create(cluster, *bad, good) == [ErrorCode.invalid_request] * len(bad) + [ErrorCode.none]
    assert len(cluster.image.acls) == 1


def test_filters_remove_entries_and_say_which() -> None:
    cluster = Cluster()
    create(
        cluster,
        creation(),
        creation(resource_name="ord", resource_pattern_type=i8(PatternType.PREFIXED)),
        creation(resource_name="else"),
    )
    request = DeleteAclsRequest(
        filters=(
            any_filter(resource_name_filter="orders", pattern_type_filter=i8(PatternType.MATCH)),
            any_filter(operation=i8(99)),
            any_filter(resource_name_filter="orders"),
        )
    )
    result = cluster.machine.acls.delete_acls(request)
    first, unknown, again = answered(result).filter_results
    assert {acl.resource_name for acl in first.matching_acls} == {"orders", "ord"}
    assert unknown.error_code is ErrorCode.invalid_request
    assert [acl.resource_name for acl in again.matching_acls] == ["orders"]
    cluster.apply(result)
    assert [acl.resource_name for acl in cluster.image.acls] == ["else"]


def test_entries_survive_a_snapshot() -> None:
    cluster = Cluster()
    create(cluster, creation(), creation(host="10.0.0.0/8", permission_type=i8(Permission.DENY)))
    image = MetadataImage()
    for record in cluster.image.snapshot():
        image.replay(record)
    assert image.acls == cluster.image.acls
    held = MetadataImage()
    acls = held.acls
    held.replace_with(image)
    assert held.acls is acls
    assert acls == cluster.image.acls
