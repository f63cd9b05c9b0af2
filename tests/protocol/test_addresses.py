import re

import pytest

from ottla.protocol.addresses import Address, parse_address, parse_servers


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("localhost:9093", Address("localhost", 9093)),
        ("localhost", Address("localhost", 9092)),
        ("[::1]:9093", Address("::1", 9093)),
        ("[::1]", Address("::1", 9092)),
        ("::1", Address("::1", 9092)),
        (" host:1 ", Address("host", 1)),
        ("b.c:65535", Address("b.c", 65535)),
        ("bücher.example:1", Address("bücher.example", 1)),
    ],
)
def test_an_address_is_read_and_written_back(text: str, address: Address) -> None:
    assert parse_address(text, default_port=9092) == address
    assert parse_address(str(address)) == address


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        *(
            (text, f"{text!r} is not of the form HOST:PORT")
            for text in ("", ":9092", "host:", "host:port", "host:0", "host:-1", "[::1", "a b:1")
        ),
        ("A://host:1", "'A://host:1' is not of the form HOST:PORT"),
        ("host:65536", "'host:65536' has port 65536, more than 65535"),
        ("[::zz]:1", "'[::zz]:1' has '::zz', which is no IPv6 address"),
    ],
)
def test_what_is_no_address_is_refused_in_a_sentence(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(problem)}$"):
        parse_address(text, default_port=9092)


def test_a_port_is_needed_where_there_is_no_default() -> None:
    with pytest.raises(ValueError, match="'host' is not of the form HOST:PORT"):
        parse_address("host")


def test_servers_are_separated_by_commas() -> None:
    assert parse_servers("a:1, b.c:65535") == [Address("a", 1), Address("b.c", 65535)]
    with pytest.raises(ValueError, match="'' is not of the form HOST:PORT"):
        parse_servers("a:1,,b:1")
