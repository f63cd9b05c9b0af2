import pytest
from tests.cli.conftest import Ottla

pytestmark = pytest.mark.process


def test_quotas_are_set_listed_and_removed(ottla: Ottla, bootstrap: str) -> None:
    done = ottla(
        *("quotas", "set", "producer_byte_rate=1000000", "request_percentage=12.5"),
        *("--user", "dora", "--default-client-id"),
        bootstrap=bootstrap,
    )
    assert done.output == (
        "user dora, client-id (default): producer_byte_rate is 1000000\n"
        "user dora, client-id (default): request_percentage is 12.5\n"
    )
    listed = ottla("quotas", "list", "--user", "dora", bootstrap=bootstrap).output.splitlines()
    assert [line.split("  ")[0] for line in listed[1:]] == ["user dora, client-id (default)"] * 2
    as_json = ottla("quotas", "list", "--user", "dora", "--json", bootstrap=bootstrap).json
    assert as_json[1] == {
        "entity": {"client-id": None, "user": "dora"},
        "quota": "request_percentage",
        "value": 12.5,
    }
    entity = ("--user", "dora", "--default-client-id")
    gone = ottla("quotas", "remove", "request_percentage", *entity, bootstrap=bootstrap)
    assert gone.output == "user dora, client-id (default): removed request_percentage\n"
    ottla("quotas", "remove", *entity, bootstrap=bootstrap)
    assert ottla("quotas", "list", "--user", "dora", "--json", bootstrap=bootstrap).json == []
    again = ottla("quotas", "remove", *entity, bootstrap=bootstrap)
    assert again.errors == "ottla: user dora, client-id (default) has no quota\n"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("producer_byte_rate=1",), "say whom the quota is for"),
        (("speed=1", "--user", "dora"), "there is no quota 'speed'"),
        (("request_percentage=much", "--user", "dora"), "request_percentage=number"),
        (("request_percentage=1", "--user", "d", "--default-user"), "exclude each other"),
    ],
)
def test_what_is_wrong_is_said(ottla: Ottla, arguments: tuple[str, ...], problem: str) -> None:
    outcome = ottla("quotas", "set", *arguments)
    assert outcome.exit_code == 2
    assert problem in outcome.errors


def test_what_the_broker_refuses_is_said(ottla: Ottla, bootstrap: str) -> None:
    refused = ("quotas", "set", "connection_creation_rate=1", "--user", "dora")
    outcome = ottla(*refused, bootstrap=bootstrap)
    assert outcome.exit_code == 1
    assert "'connection_creation_rate' is no quota of this entity" in outcome.errors
