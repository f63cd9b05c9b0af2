"""How the engine connects to its cluster."""

from pathlib import Path

from tests.broker_process import BrokerProcess
from tests.client.wire.tls_proxy import make_certificate, tls_proxy

from ottla.client import ProducerConfig
from ottla.integrations.engine import Engine
from ottla.integrations.task_queue import LOCK_S


def test_an_authority_can_be_given_as_text(own_broker: BrokerProcess, tmp_path: Path) -> None:
    certificate = make_certificate(tmp_path, "broker")
    with tls_proxy(own_broker.port, certificate) as port:
        config = ProducerConfig(
            bootstrap_servers=f"127.0.0.1:{port}",
            security_protocol="SSL",
            extra={"ssl.ca.pem": certificate.read_text()},
        )
        engine = Engine.shared(config, "tasks", LOCK_S)
        try:
            assert engine.call(engine.cluster.any_broker())
        finally:
            engine.release()
