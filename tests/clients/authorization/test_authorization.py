"""Every API by users who have some access: what is refused, what is hidden, what is done."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.clients.authorization.asked import group_heartbeat
from tests.clients.authorization.brokers import ADMIN, AuthorizingBroker, apache_kafka, ottla
from tests.clients.authorization.case import TOPIC, Case
from tests.clients.authorization.entities import codes
from tests.clients.authorization.table import CASES, OWN_CASES

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
