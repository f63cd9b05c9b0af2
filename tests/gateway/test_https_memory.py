from pathlib import Path

import pytest
from tests.gateway.gateway_process import GatewayProcess
from tests.network.bad_handshakes import GROWTH_KB_MAX, growth_kb
from tests.network.locked import stored

pytestmark = pytest.mark.process


def test_a_gateway_gives_back_the_memory_of_handshakes_that_failed(
    bootstrap: str, tmp_path: Path
) -> None:
    tls = stored(tmp_path)
    https = ("--tls-certificate", tls.keystore_location)
    authorities = Path(tls.truststore_location)
    with GatewayProcess(tmp_path, bootstrap, *https, authorities=authorities) as gateway:
        grown = growth_kb(gateway.pid, gateway.port.number, connections=3_000, at_once=250)
    assert grown <= GROWTH_KB_MAX
