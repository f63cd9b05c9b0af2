from types import SimpleNamespace

import pytest

from ottla.controller.mutations import Caller
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.runtime.forwarding import envelope_fields, forwarded_caller
from ottla.security.principal import Principal

ALICE = Principal("User", "alice")


@pytest.mark.parametrize("host", ["10.1.2.3", "::1", ""])
def test_a_caller_comes_out_of_an_envelope_as_it_went_in(host: str) -> None:
    caller = Caller(ALICE, host, "app", is_strict=True, by_token=True)
    envelope = SimpleNamespace(**envelope_fields(caller))
    assert forwarded_caller(envelope) == caller._replace(is_forwarded=True)


def test_a_node_forwards_no_principal() -> None:
    assert forwarded_caller(SimpleNamespace(**envelope_fields(None))) is None


def test_the_principal_is_laid_out_as_kafkas_default_builder_does() -> None:
    """DefaultKafkaPrincipalBuilder.serialize of Apache Kafka 4.3."""
    fields = envelope_fields(Caller(ALICE, "10.1.2.3", "app"))
    assert fields["request_principal"] == b"\0\0\5User\6alice\0\0"
    assert fields["client_host_address"] == bytes([10, 1, 2, 3])


def test_an_address_of_an_odd_size_is_refused() -> None:
    fields = envelope_fields(Caller(ALICE, "10.1.2.3", "app")) | {"client_host_address": b"12345"}
    with pytest.raises(ApiError) as error:
        forwarded_caller(SimpleNamespace(**fields))
    assert error.value.code is ErrorCode.invalid_request
