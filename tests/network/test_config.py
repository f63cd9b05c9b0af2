import pytest

from ottla.network.config import BROKER_KEYS, NetworkConfig, parse_overrides
from ottla.network.endpoints import Endpoint
from ottla.protocol.config import ConfigSchema, ConfigValues
from ottla.protocol.errors import ApiError

SCHEMA = ConfigSchema(BROKER_KEYS)


def parse(**values: object) -> NetworkConfig:
    named = {name.replace("_", "."): value for name, value in values.items()}
    return NetworkConfig.of(ConfigValues(SCHEMA.parse(named)))


def test_the_defaults_are_those_of_the_keys() -> None:
    assert parse() == NetworkConfig()
    assert NetworkConfig().request_bytes_max == 104_857_600


def test_every_key_reads_back_what_it_writes() -> None:
    for key in BROKER_KEYS:
        if key.default:
            assert key.parse(key.format(key.default)) == key.default


def test_values_arrive_typed() -> None:
    config = parse(
        listeners="PLAINTEXT://:9092, INTERNAL://127.0.0.1:9094",
        advertised_listeners="PLAINTEXT://broker.example:19092",
        max_connections_per_ip_overrides="127.0.0.1:5,[::1]:6",
        max_connections="7",
    )
    assert [str(e) for e in config.listeners] == ["PLAINTEXT://:9092", "INTERNAL://127.0.0.1:9094"]
    assert config.advertised_listeners == (Endpoint("PLAINTEXT", "broker.example", 19092),)
    assert config.connections_per_ip_overrides == {"127.0.0.1": 5, "::1": 6}
    assert config.connections_max == 7


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"listeners": "localhost:9092"}, "is not of the form NAME://host:port"),
        ({"listeners": ""}, "at least one listener"),
        ({"advertised_listeners": "A://:9092"}, "names no host"),
        ({"socket_request_max_bytes": 0}, "Value must be at least 1"),
        ({"socket_send_buffer_bytes": 0}, "must be -1"),
        ({"max_connections_per_ip_overrides": "10.0.0.1"}, "is not of the form address:count"),
        ({"max_connections_per_ip_overrides": "10.0.0.1:x"}, "is not of the form address:count"),
        ({"max_connections_per_ip_overrides": "somewhere:1"}, "is no IP address"),
    ],
)
def test_a_bad_value_is_refused_in_a_sentence(values: dict[str, object], problem: str) -> None:
    with pytest.raises(ApiError, match=problem):
        parse(**values)


def test_no_overrides() -> None:
    assert parse_overrides("") == {}
