"""Every API, called by users with some access: what is refused, hidden and done."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.clients.authorization.asked import fetch, group_heartbeat, produce, produce_by_id
from tests.clients.authorization.brokers import (
    ADMIN,
    SPARE,
    AuthorizingBroker,
    apache_kafka,
    call_until_denied,
    grant,
    ottla,
    revoke,
)
from tests.clients.authorization.case import TOPIC, TOPIC_DENIED, Case
from tests.clients.authorization.entities import codes
from tests.clients.authorization.table import CASES, OWN_CASES

from ottla.security.acls import Operation

pytestmark = [
    pytest.mark.process,
    pytest.mark.timeout(900),
    pytest.mark.xdist_group("authorization"),
]


@pytest.fixture(scope="module", params=["ottla", "kafka"])
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AuthorizingBroker]:
    directory: Path = tmp_path_factory.mktemp(request.param)
    with (ottla if request.param == "ottla" else apache_kafka)(directory) as started:
        started.prepare()
        yield started


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_table(broker: AuthorizingBroker, case: Case) -> None:
    check(broker, case)


@pytest.mark.parametrize("case", OWN_CASES, ids=str)
@pytest.mark.parametrize("broker", ["ottla"], indirect=True)
def test_what_is_otherwise_in_kafka(broker: AuthorizingBroker, case: Case) -> None:
    with broker.connect(ADMIN) as wire:
        joined = wire.call(group_heartbeat(76, 1, TOPIC, "s"))
    assert codes(joined) == {"none"}, joined
    check(broker, case)


@pytest.mark.parametrize("by_id", [False, True], ids=["by name", "by id"])
def test_an_entry_that_is_removed_ends_what_open_connections_may_do(
    broker: AuthorizingBroker, by_id: bool
) -> None:
    topic_id = broker.world.topic_id
    written = produce_by_id(topic_id) if by_id else produce(TOPIC)
    read = fetch(topic_id=topic_id) if by_id else fetch(topic=TOPIC)
    with broker.connect(ADMIN) as admin, broker.connect(SPARE) as wire:
        for operation, asked in ((Operation.WRITE, written), (Operation.READ, read)):
            call_until_denied(wire, asked)
            grant(admin, SPARE, operation)
            call_until_denied(wire, asked, denied=False)
            assert not TOPIC_DENIED & codes(wire.call(asked))
            revoke(admin, SPARE, operation)
            call_until_denied(wire, asked)


def check(broker: AuthorizingBroker, case: Case) -> None:
    request = case.request(broker.world) if callable(case.request) else case.request
    with broker.connect(broker.user_of(case)) as wire:
        response = wire.call(request)
    found = codes(response)
    if case.codes is None:
        assert not any(code.endswith("authorization_failed") for code in found), response
    else:
        assert found == case.codes, response
    if case.shows is not None:
        assert case.shows(response) == case.shown, response
