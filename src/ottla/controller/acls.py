"""CreateAcls and DeleteAcls: the access control entries in the metadata."""

from collections.abc import Callable
from typing import Final
from uuid import UUID

from kio.schema.create_acls.v3.request import AclCreation, CreateAclsRequest
from kio.schema.create_acls.v3.response import AclCreationResult, CreateAclsResponse
from kio.schema.delete_acls.v3.request import DeleteAclsFilter, DeleteAclsRequest
from kio.schema.delete_acls.v3.response import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsResponse,
)
from kio.schema.describe_acls.v3.request import DescribeAclsRequest
from kio.static.primitive import i8

from ottla.controller.image import MetadataImage, acl_record
from ottla.controller.records import RemoveAccessControlEntryRecord
from ottla.machine.result import Result
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import NO_THROTTLE
from ottla.security.acls import (
    CLUSTER_NAME,
    AclBinding,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from ottla.security.principal import parse_principal

CHANGES_MAX: Final = 10_000  # Per request, as in Kafka.


class AclControl:
    def __init__(self, image: MetadataImage, new_id: Callable[[], UUID]) -> None:
        self._image = image
        self._new_id = new_id

    def create_acls(self, request: CreateAclsRequest) -> Result[CreateAclsResponse]:
        """An entry that already exists is not created again, which is not an error."""
        new: dict[AclBinding, None] = {}
        results = []
        for creation in request.creations:
            try:
                acl = _binding(creation)
                if acl not in self._image.acls:
                    new[acl] = None
                results.append(AclCreationResult(error_code=ErrorCode.none, error_message=None))
            except ApiError as error:
                results.append(
                    AclCreationResult(error_code=error.code, error_message=error.message)
                )
        _validate_count(len(new))
        response = CreateAclsResponse(throttle_time=NO_THROTTLE, results=tuple(results))
        records = tuple(acl_record(self._new_id(), acl) for acl in new)
        return Result(response, records, cause="access control entries were added")

    def delete_acls(self, request: DeleteAclsRequest) -> Result[DeleteAclsResponse]:
        removed: dict[UUID, None] = {}
        results = []
        for each in request.filters:
            wanted = acl_filter(each)
            if wanted.is_unknown:
                results.append(_failed_filter(_UNKNOWN_FILTER))
                continue
            matching = {
                acl_id: acl for acl_id, acl in self._image.acls.items() if wanted.matches(acl)
            }
            removed |= dict.fromkeys(matching)
            results.append(
                DeleteAclsFilterResult(
                    error_code=ErrorCode.none,
                    error_message=None,
                    matching_acls=tuple(map(_matching, matching.values())),
                )
            )
        _validate_count(len(removed))
        response = DeleteAclsResponse(throttle_time=NO_THROTTLE, filter_results=tuple(results))
        records = tuple(RemoveAccessControlEntryRecord(id=acl_id) for acl_id in removed)
        return Result(response, records, cause="access control entries were removed")


def acl_filter(wanted: DeleteAclsFilter | DescribeAclsRequest) -> AclFilter:
    return AclFilter(
        ResourceType(wanted.resource_type_filter),
        wanted.resource_name_filter,
        PatternType(wanted.pattern_type_filter),
        wanted.principal_filter,
        wanted.host_filter,
        Operation(wanted.operation),
        Permission(wanted.permission_type),
    )


def _binding(creation: AclCreation) -> AclBinding:
    resource_type = ResourceType(creation.resource_type)
    pattern_type = PatternType(creation.resource_pattern_type)
    operation, permission = Operation(creation.operation), Permission(creation.permission_type)
    name = creation.resource_name
    if resource_type is ResourceType.CLUSTER and name != CLUSTER_NAME:
        raise _invalid(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
    if not name:
        raise _invalid("Invalid empty resource name")
    if resource_type in (ResourceType.UNKNOWN, ResourceType.ANY):
        raise _invalid(f"Invalid resourceType {resource_type.name}")
    if pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
        raise _invalid(f"Invalid patternType {pattern_type.name}")
    if operation in (Operation.UNKNOWN, Operation.ANY):
        raise _invalid(f"Invalid operation {operation.name}")
    if permission not in (Permission.ALLOW, Permission.DENY):
        raise _invalid(f"Invalid permissionType {permission.name}")
    try:
        principal = parse_principal(creation.principal)
    except ValueError as error:
        raise _invalid(f"Invalid principal: {error}") from None
    return AclBinding(
        resource_type, name, pattern_type, principal, creation.host, operation, permission
    )


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.invalid_request, message)


def _validate_count(count: int) -> None:
    if count > CHANGES_MAX:
        raise _invalid(f"one request changes at most {CHANGES_MAX} access control entries")


def _matching(acl: AclBinding) -> DeleteAclsMatchingAcl:
    return DeleteAclsMatchingAcl(
        error_code=ErrorCode.none,
        error_message=None,
        resource_type=i8(acl.resource_type),
        resource_name=acl.resource_name,
        pattern_type=i8(acl.pattern_type),
        principal=str(acl.principal),
        host=acl.host,
        operation=i8(acl.operation),
        permission_type=i8(acl.permission),
    )


_UNKNOWN_FILTER: Final = _invalid("The filter has an unknown resource, operation or permission.")


def _failed_filter(error: ApiError) -> DeleteAclsFilterResult:
    return DeleteAclsFilterResult(
        error_code=error.code, error_message=error.message, matching_acls=()
    )
