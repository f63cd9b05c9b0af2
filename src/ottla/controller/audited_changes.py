"""Describes what a request has changed, for the audit log: names and keys, never values."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from ottla.protocol.errors import ErrorCode
from ottla.security.acls import Operation, PatternType, Permission, ResourceType
from ottla.security.scram import ScramMechanism

_CONFIG_RESOURCES: Final = {
    2: "topic",
    4: "broker",
    8: "broker logger",
    16: "client metrics",
    32: "group",
}


def _with_outcome(text: str, code: ErrorCode) -> str:
    return text if code is ErrorCode.none else f"{text} ({code.name.upper()})"


def _topics(results: str) -> Callable[[Any, Any], list[str]]:
    def names(_: Any, response: Any) -> list[str]:
        return [
            _with_outcome(result.name or str(result.topic_id), result.error_code)
            for result in getattr(response, results)
        ]

    return names


def _configs(request: Any, response: Any) -> list[str]:
    keys = {
        (resource.resource_type, resource.resource_name): "+".join(
            config.name for config in resource.configs
        )
        for resource in request.resources
    }
    return [
        _with_outcome(
            f"{_CONFIG_RESOURCES.get(item.resource_type, item.resource_type)} "
            f"{item.resource_name}: {keys.get((item.resource_type, item.resource_name), '')}",
            item.error_code,
        )
        for item in response.responses
    ]


def _users(request: Any, response: Any) -> list[str]:
    codes = {item.user: item.error_code for item in response.results}
    return [
        _with_outcome(f"{verb} {change.name} {_mechanism(change.mechanism)}", codes[change.name])
        for verb, changes in (("set", request.upsertions), ("delete", request.deletions))
        for change in changes
    ]


def _mechanism(number: int) -> str:
    return next(
        (mechanism.sasl_name for mechanism in ScramMechanism if mechanism == number), str(number)
    )


def _acl(acl: Any, pattern_type: int) -> str:
    return (
        f"{Permission(acl.permission_type).name} {acl.principal} from {acl.host} "
        f"{Operation(acl.operation).name} on {ResourceType(acl.resource_type).name} "
        f"{PatternType(pattern_type).name}:{acl.resource_name}"
    )


def _created_acls(request: Any, response: Any) -> list[str]:
    return [
        _with_outcome(_acl(creation, creation.resource_pattern_type), result.error_code)
        for creation, result in zip(request.creations, response.results, strict=False)
    ]


def _deleted_acls(_: Any, response: Any) -> list[str]:
    return [
        _acl(acl, acl.pattern_type)
        for result in response.filter_results
        for acl in result.matching_acls
    ]


def _quotas(request: Any, response: Any) -> list[str]:
    codes = [entry.error_code for entry in response.entries]
    return [
        _with_outcome(
            " ".join(
                f"{entity.entity_type}={entity.entity_name or '(default)'}"
                for entity in entry.entity
            )
            + ": "
            + "+".join(op.key for op in entry.ops),
            code,
        )
        for entry, code in zip(request.entries, codes, strict=False)
    ]


def _created_token(_: Any, response: Any) -> list[str]:
    return [f"{response.token_id} for {response.principal_type}:{response.principal_name}"]


def _nothing(_: Any, __: Any) -> list[str]:
    return []


# By API key: the action, and the names of its objects.
_CHANGES: Final[Mapping[int, tuple[str, Callable[[Any, Any], list[str]]]]] = {
    19: ("create_topics", _topics("topics")),
    20: ("delete_topics", _topics("responses")),
    30: ("create_acls", _created_acls),
    31: ("delete_acls", _deleted_acls),
    33: ("alter_configs", _configs),
    37: ("create_partitions", _topics("results")),
    38: ("create_delegation_token", _created_token),
    39: ("renew_delegation_token", _nothing),
    40: ("expire_delegation_token", _nothing),
    43: ("elect_leaders", _nothing),
    44: ("alter_configs", _configs),
    45: ("alter_partition_reassignments", _nothing),
    49: ("alter_client_quotas", _quotas),
    51: ("alter_users", _users),
    57: ("update_features", _nothing),
    64: ("unregister_broker", lambda request, _: [str(request.broker_id)]),
    80: ("add_voter", lambda request, _: [str(request.voter_id)]),
    81: ("remove_voter", lambda request, _: [str(request.voter_id)]),
}


def described_change(request: Any, response: Any) -> tuple[str, list[str]] | None:
    """The action and its objects; None for a request that changes nothing. `response` is None if
    the whole request was rejected."""
    found = _CHANGES.get(int(request.__api_key__))
    if found is None or getattr(request, "validate_only", False):
        return None
    action, names = found
    return action, [] if response is None else names(request, response)
