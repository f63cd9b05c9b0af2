"""The resources and principals that `ottla acls` is told, and entries as it prints them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, NamedTuple, TypeVar

from cyclopts import Parameter
from kio.static.primitive import i8

from ottla.cli.errors import UsageError
from ottla.cli.parameters import Flag
from ottla.security.acls import CLUSTER_NAME, Operation, PatternType, Permission, ResourceType
from ottla.security.principal import parse_principal

COLUMNS: Final = ("resource", "name", "pattern", "principal", "permission", "operation", "host")

_CHOOSING_PATTERNS: Final = (
    PatternType.LITERAL,
    PatternType.PREFIXED,
    PatternType.MATCH,
    PatternType.ANY,
)

T = TypeVar("T")


class Resource(NamedTuple):
    type: ResourceType
    name: str


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    topic: Annotated[
        tuple[str, ...], Parameter(help="Name of a topic, or *; may be repeated.")
    ] = ()
    group: Annotated[
        tuple[str, ...], Parameter(help="Name of a group, or *; may be repeated.")
    ] = ()
    transactional_id: Annotated[
        tuple[str, ...], Parameter(help="A transactional id, or *; may be repeated.")
    ] = ()
    delegation_token: Annotated[
        tuple[str, ...], Parameter(help="Id of a delegation token, or *; may be repeated.")
    ] = ()
    user_principal: Annotated[
        tuple[str, ...],
        Parameter(help="A user whose delegation tokens are meant; may be repeated."),
    ] = ()
    cluster: Annotated[Flag, Parameter(help="The cluster.")] = False
    resource_pattern_type: Annotated[
        str,
        Parameter(
            help="literal or prefixed; to select entries also match, for all that apply to a name, "
            "or any."
        ),
    ] = "literal"

    def named(self) -> Iterator[Resource]:
        for resource_type, names in (
            (ResourceType.TOPIC, self.topic),
            (ResourceType.GROUP, self.group),
            (ResourceType.TRANSACTIONAL_ID, self.transactional_id),
            (ResourceType.DELEGATION_TOKEN, self.delegation_token),
            (ResourceType.USER, self.user_principal),
        ):
            for name in names:
                yield Resource(resource_type, name)
        if self.cluster:
            yield Resource(ResourceType.CLUSTER, CLUSTER_NAME)

    def filters(
        self,
        kind: Callable[..., T],
        principal: str | None,
        *,
        host: str | None = None,
        operation: Operation = Operation.ANY,
        permission: Permission = Permission.ANY,
    ) -> list[T]:
        """One for each resource; requests to list and to delete entries choose them alike."""
        pattern_type = self.pattern_type(_CHOOSING_PATTERNS)
        named: list[Resource | None] = list(self.named())
        return [
            kind(
                resource_type_filter=i8(resource.type if resource else ResourceType.ANY),
                resource_name_filter=resource.name if resource else None,
                pattern_type_filter=i8(pattern_type if resource else PatternType.ANY),
                principal_filter=None if principal is None else principal_named(principal),
                host_filter=host,
                operation=i8(operation),
                permission_type=i8(permission),
            )
            for resource in named or [None]
        ]

    def pattern_type(self, allowed: Sequence[PatternType]) -> PatternType:
        names = [kind.name.lower() for kind in allowed]
        if self.resource_pattern_type.lower() not in names:
            raise UsageError(
                f"--resource-pattern-type {self.resource_pattern_type} is not one of "
                + ", ".join(names)
            )
        return PatternType[self.resource_pattern_type.upper()]


NO_RESOURCES: Final = Resources()


def principal_named(text: str) -> str:
    """`alice` stands for `User:alice`."""
    try:
        return str(parse_principal(text if ":" in text else f"User:{text}"))
    except ValueError as error:
        raise UsageError(str(error)) from None


def operation_named(text: str) -> Operation:
    name = text.upper().replace("-", "_")
    names = [operation.name for operation in Operation if operation >= Operation.ALL]
    if name not in names:
        raise UsageError(f"{text} is not an operation; there are {', '.join(names)}")
    return Operation[name]


def row(resource: Any, acl: Any) -> dict[str, object]:
    """Of an entry as brokers tell it; DescribeAcls names the resource once for many entries."""
    return {
        "resource": ResourceType(resource.resource_type).name.lower(),
        "name": resource.resource_name,
        "pattern": PatternType(resource.pattern_type).name.lower(),
        "principal": acl.principal,
        "permission": Permission(acl.permission_type).name.lower(),
        "operation": Operation(acl.operation).name,
        "host": acl.host,
    }
