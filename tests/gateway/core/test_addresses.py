import pytest

from ottla.gateway.core.addresses import may_call, parse_networks


@pytest.mark.parametrize(
    "address", ["93.184.216.34", "2606:2800:220:1::1", "::ffff:8.8.8.8", "64:ff9b::808:808"]
)
def test_the_internet_may_be_called(address: str) -> None:
    assert may_call(address)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.8.9.1",
        "0.0.0.0",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "192.0.2.1",
        "::",
        "::1",
        "::ffff:127.0.0.1",
        "::ffff:a9fe:a9fe",
        "::127.0.0.1",
        "fe80::1%eth0",
        "fc00::1",
        "fec0::1",
        "ff02::1",
        "2002:7f00:1::",
        "64:ff9b::7f00:1",
        "64:ff9b:1::a00:1",
        "localhost",
        "",
    ],
)
def test_what_is_near_may_not(address: str) -> None:
    assert not may_call(address)


def test_an_operator_allows_networks() -> None:
    allowed = parse_networks(["10.0.0.0/8", "::1"])
    assert may_call("10.9.9.9", allowed)
    assert may_call("::ffff:10.9.9.9", allowed)
    assert may_call("::1", allowed)
    assert not may_call("192.168.0.1", allowed)


def test_what_is_no_network_is_refused() -> None:
    with pytest.raises(ValueError, match="everything"):
        parse_networks(["everything"])
