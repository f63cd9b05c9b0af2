"""The authorizer, compared with the rules in their simplest form."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.security.acl_index import AclIndex
from ottla.security.acls import (
    CLUSTER_NAME,
    AclBinding,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourceType,
    host_matches,
)
from ottla.security.authorizer import DECISIONS_MAX, UNLIMITED, AuthorizedAccess, Authorizer
from ottla.security.principal import Principal, parse_principal

ALICE = parse_principal("User:alice")
BOB = parse_principal("User:bob")
HOST = "10.1.2.3"

TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
READ, WRITE, DESCRIBE = Operation.READ, Operation.WRITE, Operation.DESCRIBE
ALLOW, DENY = Permission.ALLOW, Permission.DENY

operations = st.sampled_from([operation for operation in Operation if operation >= Operation.ALL])
names = st.text("ab*", min_size=1, max_size=4)
bindings = st.builds(
    AclBinding,
    st.sampled_from([TOPIC, GROUP]),
    names,
    st.sampled_from([LITERAL, PREFIXED]),
    st.sampled_from([ALICE, BOB, Principal("User", "*"), Principal("Group", "alice")]),
    st.sampled_from(["*", HOST, "10.0.0.0/8", "10.9.9.9", "nonsense"]),
    operations,
    st.sampled_from([ALLOW, DENY]),
)


def index(*acls: AclBinding) -> AclIndex:
    made = AclIndex()
    for number, acl in enumerate(acls, 1):
        made.add(UUID(int=number), acl)
    return made


def allow(
    operation: Operation = READ,
    name: str = "a",
    *,
    kind: ResourceType = TOPIC,
    pattern: PatternType = LITERAL,
    who: str = "User:alice",
    host: str = "*",
    permission: Permission = ALLOW,
) -> AclBinding:
    return AclBinding(kind, name, pattern, parse_principal(who), host, operation, permission)


def applies(acl: AclBinding, kind: ResourceType, name: str) -> bool:
    if acl.resource_type != kind:
        return False
    if acl.pattern_type is PREFIXED:
        return name.startswith(acl.resource_name)
    return acl.resource_name in (name, "*")


def is_for(acl: AclBinding, principal: Principal) -> bool:
    return acl.principal in (principal, Principal("User", "*")) and acl.host in (
        "*",
        HOST,
        "10.0.0.0/8",
    )


def implied(operation: Operation) -> set[Operation]:
    if operation is DESCRIBE:
        return {DESCRIBE, READ, WRITE, Operation.DELETE, Operation.ALTER, Operation.ALL}
    if operation is Operation.DESCRIBE_CONFIGS:
        return {operation, Operation.ALTER_CONFIGS, Operation.ALL}
    return {operation, Operation.ALL}


def naive(
    acls: list[AclBinding], operation: Operation, kind: ResourceType, name: str, *, default: bool
) -> bool:
    found = [acl for acl in acls if applies(acl, kind, name)]
    if not found:
        return default
    mine = [acl for acl in found if is_for(acl, ALICE)]
    if any(a.permission is DENY and a.operation in (operation, Operation.ALL) for a in mine):
        return False
    return any(a.permission is ALLOW and a.operation in implied(operation) for a in mine)


@given(
    st.lists(bindings, max_size=12, unique=True),
    st.lists(st.integers(0, 11), max_size=6),
    operations,
    names,
    st.booleans(),
)
def test_decides_as_the_rules_say(
    acls: list[AclBinding], removed: set[int], operation: Operation, name: str, default: bool
) -> None:
    acl_index = index(*acls)
    access = Authorizer(acl_index, allow_everyone=default).access(ALICE, HOST)
    for kind in (TOPIC, GROUP):
        assert access.may(operation, kind, name) is naive(
            acls, operation, kind, name, default=default
        )
    for number in removed:
        acl_index.remove(UUID(int=number + 1))
    left = list(acl_index)
    assert left == [acl for number, acl in enumerate(acls) if number not in removed]
    for kind in (TOPIC, GROUP):
        assert access.may(operation, kind, name) is naive(
            left, operation, kind, name, default=default
        )
    again = AclIndex()
    again.replace_with(acl_index)
    assert again == acl_index
    assert again.entries_for(TOPIC, name) == acl_index.entries_for(TOPIC, name)


@given(st.lists(bindings, max_size=8, unique=True), operations)
def test_finds_whether_anything_may_be_done_to_some_resource(
    acls: list[AclBinding], operation: Operation
) -> None:
    """Compared with trying every name that is not longer than any pattern."""
    access = Authorizer(index(*acls)).access(ALICE, HOST)
    mine = [a for a in acls if is_for(a, ALICE) and a.operation in (operation, Operation.ALL)]
    denies_all = any(
        a.permission is DENY and a.resource_type is TOPIC and a[1:3] == ("*", LITERAL) for a in mine
    )
    patterns = {
        (a.pattern_type, a.resource_name)
        for a in mine
        if a.permission is ALLOW and a.resource_type is TOPIC
    }
    denied = [a for a in mine if a.permission is DENY and a.resource_type is TOPIC]

    def survives(pattern_type: PatternType, name: str) -> bool:
        if (pattern_type, name) == (LITERAL, "*"):
            return True
        return not any(
            name.startswith(a.resource_name)
            if a.pattern_type is PREFIXED
            else pattern_type is LITERAL and name == a.resource_name
            for a in denied
        )

    expected = not denies_all and any(survives(*pattern) for pattern in patterns)
    hardcoded = access.may(operation, TOPIC, "hardcode")
    assert access.may_any(operation, TOPIC) is (expected or hardcoded)


def test_a_super_user_may_do_everything_even_what_is_denied() -> None:
    denied = allow(Operation.ALL, "*", who="User:*", permission=DENY)
    authorizer = Authorizer(index(denied), frozenset({ALICE}))
    assert authorizer.access(ALICE, HOST).may(READ, TOPIC, "a")
    assert authorizer.access(ALICE, HOST).may_any(WRITE, TOPIC)
    assert not authorizer.access(BOB, HOST).may(READ, TOPIC, "a")


def test_a_change_drops_earlier_decisions() -> None:
    acls = index()
    access = Authorizer(acls).access(ALICE, HOST)
    assert not access.may(READ, TOPIC, "a")
    acls.add(UUID(int=1), allow())
    assert access.may(READ, TOPIC, "a")
    acls.remove(UUID(int=1))
    assert not access.may(READ, TOPIC, "a")
    other = index(allow())
    acls.replace_with(other)
    assert access.may(READ, TOPIC, "a")


def test_decisions_are_kept_for_a_bounded_number_of_names() -> None:
    access = Authorizer(index(allow())).access(ALICE, HOST)
    for number in range(DECISIONS_MAX + 10):
        access.may(READ, TOPIC, f"name-{number}")
    assert isinstance(access, AuthorizedAccess)
    assert len(access._decisions) <= DECISIONS_MAX


def test_before_the_entries_are_loaded_only_super_users_may_do_anything() -> None:
    authorizer = Authorizer(index(), frozenset({BOB}), allow_everyone=True)
    authorizer.is_loaded = False
    alice = authorizer.access(ALICE, HOST)
    assert not alice.may(READ, TOPIC, "a")
    assert not alice.may_any(WRITE, TOPIC)
    assert authorizer.access(BOB, HOST).may(READ, TOPIC, "a")
    authorizer.is_loaded = True
    assert alice.may(READ, TOPIC, "a")


def test_refusals_of_what_was_asked_for_are_told() -> None:
    refusals = []
    authorizer = Authorizer(
        index(allow()),
        on_refused=lambda access, *what: refusals.append((str(access.principal), *what)),
    )
    access = authorizer.access(ALICE, HOST)
    assert access.authorize(READ, TOPIC, "a")
    assert not access.may(WRITE, TOPIC, "a")
    assert refusals == []
    assert not access.authorize(WRITE, TOPIC, "a")
    assert refusals == [("User:alice", WRITE, TOPIC, "a")]


def test_allowed_operations_are_told_as_bits() -> None:
    access = Authorizer(index(allow(READ), allow(Operation.ALTER_CONFIGS))).access(ALICE, HOST)
    assert access.operations(TOPIC, "a") == sum(
        1 << operation
        for operation in (READ, DESCRIBE, Operation.ALTER_CONFIGS, Operation.DESCRIBE_CONFIGS)
    )
    assert access.operations(CLUSTER, CLUSTER_NAME) == 0
    assert UNLIMITED.operations(TOPIC, "a") == 3576
    assert UNLIMITED.operations(GROUP, "a") == 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11


@pytest.mark.parametrize(
    ("pattern", "host", "matches"),
    [
        ("*", "10.1.2.3", True),
        ("10.1.2.3", "10.1.2.3", True),
        ("10.1.2.3", "10.1.2.4", False),
        ("10.1.0.0/16", "10.1.2.3", True),
        ("10.1.2.3/16", "10.1.9.9", True),
        ("10.2.0.0/16", "10.1.2.3", False),
        ("0:0:0:0:0:0:0:1", "::1", True),
        ("fe80::/10", "fe80::1%eth0", True),
        ("10.1.2.3", "::ffff:10.1.2.3", True),
        ("10.0.0.0/8", "::1", False),
        ("example.com", "10.1.2.3", False),
        ("10.0.0.0/99", "10.1.2.3", False),
        ("", "10.1.2.3", False),
    ],
)
def test_hosts_are_addresses_ranges_or_all(pattern: str, host: str, matches: bool) -> None:
    assert host_matches(pattern, host) is matches


@pytest.mark.parametrize(
    ("chosen", "names"),
    [
        (AclFilter(), {"*", "logs", "logs-", "other"}),
        (AclFilter(resource_name="logs"), {"logs"}),
        (AclFilter(resource_name="logs", pattern_type=PREFIXED), set()),
        (AclFilter(resource_name="logs-1", pattern_type=PatternType.MATCH), {"*", "logs-"}),
        (AclFilter(resource_name="logs", pattern_type=PatternType.MATCH), {"*", "logs"}),
        (AclFilter(resource_name="*", pattern_type=LITERAL), {"*"}),
        (AclFilter(pattern_type=PREFIXED), {"logs-"}),
        (AclFilter(principal="User:bob"), {"other"}),
        (AclFilter(host="10.1.2.3"), {"other"}),
        (AclFilter(operation=WRITE), {"logs"}),
        (AclFilter(permission=DENY), {"*"}),
        (AclFilter(resource_type=GROUP), set()),
    ],
)
def test_filters_choose_entries(chosen: AclFilter, names: set[str]) -> None:
    acls = (
        allow(name="*", permission=DENY),
        allow(WRITE, "logs"),
        allow(name="logs-", pattern=PREFIXED),
        allow(name="other", who="User:bob", host="10.1.2.3"),
    )
    assert {acl.resource_name for acl in acls if chosen.matches(acl)} == names


def test_numbers_that_are_not_known_make_a_filter_unknown() -> None:
    assert AclFilter(operation=Operation(99)).is_unknown
    assert AclFilter(pattern_type=PatternType(-5)).is_unknown
    assert not AclFilter().is_unknown
