from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.broker_process import BrokerProcess
from tests.cli.conftest import Ottla

from ottla.network.security_config import STANDARD_AUTHORIZER

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def authorizing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    directory: Path = tmp_path_factory.mktemp("authorizing")
    settings = (f"authorizer.class.name={STANDARD_AUTHORIZER}", "super.users=User:ANONYMOUS")
    words = [word for setting in settings for word in ("--set", setting)]
    with BrokerProcess(directory, *words) as broker:
        yield broker.bootstrap


def entries(ottla: Ottla, bootstrap: str, *words: str) -> list[tuple[str, ...]]:
    listed = ottla("acls", "list", *words, "--json", bootstrap=bootstrap)
    assert (listed.exit_code, listed.errors) == (0, "")
    return [tuple(entry.values()) for entry in listed.json]


def test_entries_are_added_listed_and_removed(ottla: Ottla, authorizing: str) -> None:
    words = ("--allow-principal", "alice", "--operation", "read", "--topic", "orders")
    added = ottla("acls", "add", *words, "--host", "10.0.0.0/8", bootstrap=authorizing)
    assert added.output == "User:alice is allowed READ on topic orders\n"
    ottla(
        "acls",
        "add",
        "--deny-principal",
        "User:*",
        "--user-principal",
        "User:bob",
        "--topic",
        "ord",
        "--resource-pattern-type",
        "prefixed",
        bootstrap=authorizing,
    )
    orders = ("topic", "orders", "literal", "User:alice", "allow", "READ", "10.0.0.0/8")
    prefix = ("topic", "ord", "prefixed", "User:*", "deny", "ALL", "*")
    tokens = ("user", "User:bob", "prefixed", "User:*", "deny", "ALL", "*")
    assert entries(ottla, authorizing) == [prefix, orders, tokens]
    match = ("--topic", "orders", "--resource-pattern-type", "match")
    assert entries(ottla, authorizing, *match) == [prefix, orders]
    assert entries(ottla, authorizing, "--principal", "alice") == [orders]
    table = ottla("acls", "list", "--topic", "orders", bootstrap=authorizing).output
    assert table.splitlines()[0].split() == [
        "RESOURCE",
        "NAME",
        "PATTERN",
        "PRINCIPAL",
        "PERMISSION",
        "OPERATION",
        "HOST",
    ]
    removed = ottla("acls", "remove", *match, "--permission", "deny", bootstrap=authorizing)
    assert removed.output == "removed: deny User:* ALL on topic ord (prefixed) from *\n"
    again = ottla("acls", "remove", *match, "--permission", "deny", bootstrap=authorizing)
    assert again.output == "there is no such entry\n"
    for principal in ("alice", "User:*"):
        ottla("acls", "remove", "--principal", principal, bootstrap=authorizing)
    assert entries(ottla, authorizing) == []


def test_producers_and_consumers_get_what_they_need(ottla: Ottla, authorizing: str) -> None:
    who = ("--allow-principal", "carol", "--topic", "t")
    roles = ("--producer", "--idempotent", "--consumer", "--group", "g", "--transactional-id", "x")
    done = ottla("acls", "add", *who, *roles, bootstrap=authorizing)
    assert done.exit_code == 0
    found = {(kind, operation) for kind, _, _, _, _, operation, _ in entries(ottla, authorizing)}
    assert found == {
        *(("topic", operation) for operation in ("READ", "WRITE", "DESCRIBE", "CREATE")),
        ("group", "READ"),
        *(("transactional_id", operation) for operation in ("WRITE", "DESCRIBE")),
        ("cluster", "IDEMPOTENT_WRITE"),
    }
    ottla("acls", "remove", "--principal", "carol", bootstrap=authorizing)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("add", "--topic", "t"), "say who"),
        (("add", "--allow-principal", "alice"), "say what for"),
        (("add", "--allow-principal", "alice", "--topic", "t", "--consumer"), "needs --topic and"),
        (("add", "--allow-principal", "a", "--topic", "t", "--operation", "fly"), "fly is not an"),
        (
            ("add", "--allow-principal", "a", "--topic", "t", "--resource-pattern-type", "match"),
            "match is not one of literal, prefixed",
        ),
        (("add", "--allow-principal", ":", "--topic", "t"), "is not of the form User:name"),
        (("remove",), "say which"),
        (("remove", "--principal", "a", "--permission", "maybe"), "neither allow nor deny"),
    ],
)
def test_wrong_words(ottla: Ottla, words: tuple[str, ...], problem: str) -> None:
    failed = ottla("acls", *words, bootstrap="127.0.0.1:1")
    assert failed.exit_code == 2
    assert problem in failed.errors


def test_without_an_authorizer_there_are_no_entries(ottla: Ottla, bootstrap: str) -> None:
    failed = ottla("acls", "list", bootstrap=bootstrap)
    assert failed.exit_code == 1
    assert "authorizer.class.name" in failed.errors
