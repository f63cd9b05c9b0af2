import re

import pytest

from ottla.network.endpoints import (
    Endpoint,
    advertised_endpoints,
    parse_advertised_listeners,
    parse_endpoint,
    parse_listeners,
)


@pytest.mark.parametrize(
    ("text", "endpoint"),
    [
        ("PLAINTEXT://:9092", Endpoint("PLAINTEXT", "", 9092)),
        ("internal://127.0.0.1:0", Endpoint("INTERNAL", "127.0.0.1", 0)),
        (
            "PLAINTEXT://broker-1.example.com:65535",
            Endpoint("PLAINTEXT", "broker-1.example.com", 65535),
        ),
        ("PLAINTEXT://[::1]:9092", Endpoint("PLAINTEXT", "::1", 9092)),
        ("PLAINTEXT://[::]:9092", Endpoint("PLAINTEXT", "::", 9092)),
    ],
)
def test_an_endpoint_is_read_and_written_back(text: str, endpoint: Endpoint) -> None:
    assert parse_endpoint(text) == endpoint
    assert parse_endpoint(str(endpoint)) == endpoint


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("localhost:9092", "'localhost:9092' is not of the form NAME://host:port"),
        ("PLAINTEXT://localhost", "'PLAINTEXT://localhost' is not of the form NAME://host:port"),
        ("PLAINTEXT://h:x", "'PLAINTEXT://h:x' is not of the form NAME://host:port"),
        ("PLAINTEXT://h:-1", "'PLAINTEXT://h:-1' is not of the form NAME://host:port"),
        ("PLAINTEXT://::1:9092", "'PLAINTEXT://::1:9092' is not of the form NAME://host:port"),
        ("://h:1", "'://h:1' is not of the form NAME://host:port"),
        ("A://h:65536", "'A://h:65536' has port 65536, more than 65535"),
        ("A://[::zz]:1", "'A://[::zz]:1' has '::zz', which is no IPv6 address"),
        ("A://h_ö:1", "'A://h_ö:1' has 'h_ö', which is no host name"),
    ],
)
def test_what_is_no_endpoint_is_refused_in_a_sentence(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(problem)}$"):
        parse_endpoint(text)


def test_several_listeners() -> None:
    texts = ("PLAINTEXT://:9092", "INTERNAL://127.0.0.1:9094", "A://h:0", "B://h:0")
    assert [e.port for e in parse_listeners(texts)] == [9092, 9094, 0, 0]
    assert len(parse_listeners(("A://127.0.0.1:9092", "B://[::1]:9092"))) == 2


@pytest.mark.parametrize(
    ("texts", "problem"),
    [
        ((), "there must be at least one listener"),
        (("A://:1", "A://:2"), "there are two listeners named A"),
        (("A://:1", "a://:2"), "there are two listeners named A"),
        (("A://:1", "B://h:1"), "A://:1 and B://h:1 want the same port"),
        (("A://h:1", "B://h:1"), "A://h:1 and B://h:1 want the same port"),
    ],
)
def test_listeners_that_cannot_stand_together(texts: tuple[str, ...], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        parse_listeners(texts)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("A://:9092", "names no host"),
        ("A://0.0.0.0:9092", "names no host"),
        ("A://h:0", "has port 0"),
    ],
)
def test_an_address_that_no_client_could_use_is_not_advertised(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        parse_advertised_listeners((text,))


def test_a_listener_advertises_itself_unless_told_otherwise() -> None:
    bound = (Endpoint("A", "", 9092), Endpoint("B", "10.0.0.1", 9093), Endpoint("C", "::", 9094))
    assert advertised_endpoints(bound, (Endpoint("C", "c.example", 1),), "localhost") == (
        Endpoint("A", "localhost", 9092),
        Endpoint("B", "10.0.0.1", 9093),
        Endpoint("C", "c.example", 1),
    )
    with pytest.raises(ValueError, match=r"advertised\.listeners has X, but listeners does not"):
        advertised_endpoints(bound, (Endpoint("X", "h", 1),), "localhost")
