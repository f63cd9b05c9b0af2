"""The pytest plugin: fixtures with brokers for an application's tests.

    def test_orders(ottla_broker):
        topic = ottla_broker.topic("orders")
        place_order(ottla_broker.bootstrap_servers, topic)
        (order,) = ottla_broker.wait_for(topic, 1)

Every setting can be given as a flag, in the environment or in pytest's configuration file; the
first of these wins. The broker is not imported before a test uses a fixture.
"""

import os
import uuid
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import pytest

from ottla.testing import EmbeddedBroker, EmbeddedCluster, ExternalBroker, Storage

if TYPE_CHECKING:
    from ottla.testing.gateway import Gateway

ClusterFactory = Callable[..., EmbeddedCluster]


class _Setting(NamedTuple):
    name: str  # In the configuration file; the flag is made of it.
    variables: tuple[str, ...]
    help: str


_STORAGE = _Setting(
    "ottla_storage",
    ("OTTLA_TEST_STORAGE",),
    "Where embedded brokers keep their data: memory (default) or directory, a temporary one.",
)
_PORT = _Setting(
    "ottla_port", ("OTTLA_TEST_PORT",), "Port of ottla_broker; 0 (default) takes a free one."
)
_CONFIG = _Setting(
    "ottla_config",
    ("OTTLA_TEST_CONFIG",),
    "Settings of embedded brokers as KEY=VALUE under Kafka's names, separated by commas.",
)
_BOOTSTRAP_SERVERS = _Setting(
    "ottla_bootstrap_servers",
    ("OTTLA_BOOTSTRAP_SERVERS", "OTTLA_BOOTSTRAP_SERVER"),
    "HOST:PORT of the broker of ottla_noproc, which runs already.",
)
_SETTINGS = (_STORAGE, _PORT, _CONFIG, _BOOTSTRAP_SERVERS)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("ottla", "Ottla, a message queue")
    for setting in _SETTINGS:
        flag = "--" + setting.name.replace("_", "-")
        group.addoption(flag, dest=setting.name, default=None, help=setting.help)
        parser.addini(setting.name, setting.help, default="")


@pytest.fixture(scope="session")
def ottla_broker_session(pytestconfig: pytest.Config) -> Iterator[EmbeddedBroker]:
    """The broker of `ottla_broker`, for fixtures that outlive a test."""
    broker = EmbeddedBroker(
        config=_config(pytestconfig), storage=_storage(pytestconfig), port=_port(pytestconfig)
    )
    with broker:
        yield broker


@pytest.fixture
def ottla_broker(
    ottla_broker_session: EmbeddedBroker, ottla_topic_prefix: str
) -> Iterator[EmbeddedBroker]:
    """A real broker in this process, shared by all tests; each pytest-xdist worker has its own.

    `ottla_broker.topic(...)` creates topics that no other test uses. Faults that a test injects
    are undone after it.
    """
    broker = ottla_broker_session
    broker.topic_prefix = ottla_topic_prefix
    yield broker
    broker.topic_prefix = ""
    broker.heal()


@pytest.fixture
def ottla_cluster(pytestconfig: pytest.Config) -> Iterator[ClusterFactory]:
    """`ottla_cluster(nodes=3)` starts a cluster that stops after the test."""
    config, storage = _config(pytestconfig), _storage(pytestconfig)
    clusters: list[EmbeddedCluster] = []

    def start(nodes: int = 3, **more: object) -> EmbeddedCluster:
        given = more.get("config") or {}
        assert isinstance(given, dict)
        cluster = EmbeddedCluster(nodes, config={**config, **given}, storage=storage)
        clusters.append(cluster)
        cluster.start()
        return cluster

    yield start
    for cluster in clusters:
        cluster.stop()


@pytest.fixture(scope="session")
def ottla_gateway(ottla_broker_session: EmbeddedBroker) -> "Iterator[Gateway]":
    """An HTTP gateway to the broker of `ottla_broker`, at `ottla_gateway.url`."""
    from ottla.testing.gateway import Gateway

    with Gateway(ottla_broker_session.bootstrap_servers) as gateway:
        yield gateway


@pytest.fixture
def ottla_noproc(pytestconfig: pytest.Config, ottla_topic_prefix: str) -> ExternalBroker:
    """A broker that is already running: Ottla or any other that speaks the Kafka protocol."""
    servers = _value(pytestconfig, _BOOTSTRAP_SERVERS)
    if not servers:
        pytest.fail(
            "ottla_noproc needs a broker: set OTTLA_BOOTSTRAP_SERVERS, --ottla-bootstrap-servers "
            "or ottla_bootstrap_servers",
            pytrace=False,
        )
    broker = ExternalBroker(servers)
    broker.topic_prefix = ottla_topic_prefix
    return broker


@pytest.fixture
def ottla_topic_prefix() -> str:
    """Unique to each test, across runs and workers."""
    return f"test-{uuid.uuid4().hex[:12]}-"


def _value(config: pytest.Config, setting: _Setting) -> str:
    flag = config.getoption(setting.name)
    if flag is not None:
        return str(flag)
    for variable in setting.variables:
        if variable in os.environ:
            return os.environ[variable]
    return str(config.getini(setting.name))


def _storage(config: pytest.Config) -> Storage:
    text = _value(config, _STORAGE) or Storage.MEMORY
    try:
        return Storage(text)
    except ValueError:
        raise pytest.UsageError(
            f"{_STORAGE.name} is {text!r}; it must be memory or directory"
        ) from None


def _port(config: pytest.Config) -> int:
    text = _value(config, _PORT) or "0"
    if not text.isdecimal() or int(text) >= 1 << 16:
        raise pytest.UsageError(f"{_PORT.name} is {text!r}; it must be from 0 to 65535")
    return int(text)


def _config(config: pytest.Config) -> dict[str, str]:
    text = _value(config, _CONFIG).replace("\n", ",")
    pairs = [pair.strip() for pair in text.split(",") if pair.strip()]
    if any("=" not in pair for pair in pairs):
        raise pytest.UsageError(f"{_CONFIG.name} is {text!r}; it must be KEY=VALUE,KEY=VALUE")
    return {key.strip(): value.strip() for key, _, value in (pair.partition("=") for pair in pairs)}
