"""`ottla acls add`: allow or deny something."""

from collections.abc import Iterator
from typing import Annotated, Final

from cyclopts import Parameter
from kio.schema.create_acls.v3.request import AclCreation, CreateAclsRequest
from kio.static.primitive import i8

from ottla.cli.acls.resources import (
    NO_RESOURCES,
    Resource,
    Resources,
    operation_named,
    principal_named,
)
from ottla.cli.broker_call import bootstrap_broker, check
from ottla.cli.connection import DEFAULT_CONNECTION, Connection
from ottla.cli.errors import UsageError
from ottla.cli.output import print_line
from ottla.cli.parameters import Flag
from ottla.security.acls import CLUSTER_NAME, Operation, PatternType, Permission, ResourceType

_PRODUCER: Final = {
    ResourceType.TOPIC: (Operation.WRITE, Operation.DESCRIBE, Operation.CREATE),
    ResourceType.TRANSACTIONAL_ID: (Operation.WRITE, Operation.DESCRIBE),
    ResourceType.CLUSTER: (Operation.IDEMPOTENT_WRITE,),
}
_CONSUMER: Final = {
    ResourceType.TOPIC: (Operation.READ, Operation.DESCRIBE),
    ResourceType.GROUP: (Operation.READ,),
}

Names = Annotated[tuple[str, ...], Parameter(show_default=False)]


def add(
    *,
    allow_principal: Names = (),
    deny_principal: Names = (),
    operation: Names = (),
    host: Names = ("*",),
    producer: Flag = False,
    consumer: Flag = False,
    idempotent: Flag = False,
    resources: Resources = NO_RESOURCES,
    connection: Connection = DEFAULT_CONNECTION,
) -> None:
    """Allow or deny operations on resources.

    Args:
        allow_principal: User to allow: alice, User:alice, or User:* for everyone; may be repeated.
        deny_principal: User to deny; overrides every allow; may be repeated.
        operation: Operation, such as READ; ALL if not given; may be repeated.
        host: Address of the client, or a range such as 10.0.0.0/8; may be repeated.
        producer: What a producer needs: WRITE, DESCRIBE and CREATE on topics, WRITE and DESCRIBE
            on transactional ids.
        consumer: What a consumer needs: READ and DESCRIBE on topics, READ on groups.
        idempotent: With --producer, IDEMPOTENT_WRITE on the cluster; newer brokers do without it.
    """
    wanted = list(_wanted(operation, resources, producer, consumer, idempotent))
    principals = [(principal, Permission.ALLOW) for principal in allow_principal]
    principals += [(principal, Permission.DENY) for principal in deny_principal]
    if not principals:
        raise UsageError("say who: --allow-principal alice, or --deny-principal")
    pattern_type = resources.pattern_type((PatternType.LITERAL, PatternType.PREFIXED))
    creations = tuple(
        AclCreation(
            resource_type=i8(resource.type),
            resource_name=resource.name,
            resource_pattern_type=i8(
                PatternType.LITERAL if resource.type is ResourceType.CLUSTER else pattern_type
            ),
            principal=principal_named(principal),
            host=address,
            operation=i8(allowed),
            permission_type=i8(permission),
        )
        for principal, permission in principals
        for resource, allowed in wanted
        for address in host
    )
    with bootstrap_broker(connection) as broker:
        response = broker.call(CreateAclsRequest(creations=creations))
    for creation, result in zip(creations, response.results, strict=True):
        check(result.error_code, creation.resource_name, result.error_message)
    for creation in creations:
        print_line(
            f"{creation.principal} is {_WORDS[Permission(creation.permission_type)]} "
            f"{Operation(creation.operation).name} on "
            f"{ResourceType(creation.resource_type).name.lower()} {creation.resource_name}"
        )


_WORDS: Final = {Permission.ALLOW: "allowed", Permission.DENY: "denied"}


def _wanted(
    operations: tuple[str, ...],
    resources: Resources,
    producer: bool,
    consumer: bool,
    idempotent: bool,
) -> Iterator[tuple[Resource, Operation]]:
    named = list(resources.named())
    if not named:
        raise UsageError("say what for: --topic, --group, --transactional-id, --cluster, ...")
    if not producer and not consumer:
        for resource in named:
            for operation in operations or ("ALL",):
                yield resource, operation_named(operation)
        return
    if operations:
        raise UsageError("--producer and --consumer say the operations; leave --operation out")
    roles = [
        role for role, is_wanted in ((_PRODUCER, producer), (_CONSUMER, consumer)) if is_wanted
    ]
    if consumer and not (resources.topic and resources.group):
        raise UsageError("--consumer needs --topic and --group")
    if producer and not resources.topic:
        raise UsageError("--producer needs --topic")
    if idempotent and producer:
        named.append(Resource(ResourceType.CLUSTER, CLUSTER_NAME))
    pairs = {
        (resource, operation): None
        for role in roles
        for resource in named
        for operation in role.get(resource.type, ())
    }
    yield from pairs
