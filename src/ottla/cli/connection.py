"""The way from a command to a broker, and from librdkafka's errors to ours."""

import contextlib
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ClusterMetadata
from cyclopts import Parameter

from ottla.cli.cluster_nodes import ClusterNode
from ottla.cli.command_config import login_of
from ottla.cli.errors import CommandError, ExitCode, UsageError
from ottla.cli.reach import STARTING, ask
from ottla.client.wire.librdkafka_settings import security_of
from ottla.client.wire.security import Security
from ottla.protocol.addresses import DEFAULT_PORT, Address, parse_servers

T = TypeVar("T")

DEFAULT_SERVER = f"localhost:{DEFAULT_PORT}"
TIMEOUT_S = 10.0  # For what a broker that answers is asked to do.
LOOK_AFTER_S = 2.0  # Then it is time to see whether all nodes answer.
MOVING_RETRY_S = 0.1
STARTING_S = 1.0  # A node that is up but serves nobody yet is asked again for as long.
STARTING_RETRY_S = 0.05

_UNREACHABLE_CODES = {
    KafkaError._DESTROY_BROKER,  # librdkafka has just given it up.
    KafkaError._TRANSPORT,
    KafkaError._TIMED_OUT,
    KafkaError._TIMED_OUT_QUEUE,
    KafkaError._MSG_TIMED_OUT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._RESOLVE,
}

# Another broker leads the partition, or will in a moment.
_MOVING_CODES = {
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
}

_HINTS = {
    KafkaError.TOPIC_ALREADY_EXISTS: "use --if-not-exists to accept a topic that is there",
    KafkaError.UNKNOWN_TOPIC_OR_PART: "`ottla topics list` shows the topics",
    KafkaError._UNKNOWN_TOPIC: "`ottla topics list` shows the topics",
    KafkaError._UNKNOWN_PARTITION: "`ottla topics describe` shows the partitions",
    KafkaError.INVALID_REPLICATION_FACTOR: "use a --replication-factor that the cluster can hold",
    KafkaError.MSG_SIZE_TOO_LARGE: "raise max.message.bytes with `ottla configs alter`",
    KafkaError.GROUP_ID_NOT_FOUND: "`ottla groups list` shows the groups",
    KafkaError.NON_EMPTY_GROUP: "stop its members first",
    KafkaError.POLICY_VIOLATION: "a topic that is being restored or moved takes no records yet",
    KafkaError._MSG_TIMED_OUT: "is the broker overloaded or gone?",
}


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Connection:
    bootstrap_server: Annotated[
        str,
        Parameter(
            name=("--bootstrap-server", "-b"),
            env_var="OTTLA_BOOTSTRAP_SERVER",
            help="Broker to connect to first, as HOST:PORT; separate several with commas. "
            f"[default: that of the current profile, or {DEFAULT_SERVER}]",
            show_default=False,
        ),
    ] = ""
    connect_timeout: Annotated[
        float,
        Parameter(
            env_var="OTTLA_CONNECT_TIMEOUT",
            help="Seconds to wait for a broker to answer.",
        ),
    ] = 4.0
    command_config: Annotated[
        Path | None,
        Parameter(
            env_var="OTTLA_COMMAND_CONFIG",
            help="File with client settings, such as security.protocol and the login.",
        ),
    ] = None

    def __post_init__(self) -> None:
        """Where nothing is said, the profile in use says it. One that cannot be read is reported by
        `ottla profile list`, not by commands that may not need it."""
        if not self.bootstrap_server:
            given = login_of("", self.command_config)
            server = str(given.get("bootstrap.servers", DEFAULT_SERVER))
            object.__setattr__(self, "bootstrap_server", server)

    def login(self) -> Mapping[str, Any]:
        """As librdkafka spells it."""
        return login_of(self.bootstrap_server, self.command_config)

    def security(self) -> Security:
        """The same for connections of our own."""
        return security_of(self.login())

    def client_config(self, **more: object) -> dict[str, Any]:
        """The configuration of a librdkafka client, once a broker has answered."""
        self.reach()
        return {
            **self.login(),
            "bootstrap.servers": self.bootstrap_server,
            "client.id": "ottla-cli",
            "log_level": 0,
            "error_cb": _ignore_error,
            "reconnect.backoff.max.ms": 1000,
            **more,
        }

    def admin(self) -> AdminClient:
        """The caller keeps it until the futures that it made are done."""
        return AdminClient(self.client_config())

    def reach(self, option: str = "--bootstrap-server") -> Address:
        """The first broker that answers; librdkafka would try again until a timeout.

        `option` is what the brokers were named with.
        """
        if self.connect_timeout <= 0:
            raise UsageError(f"--connect-timeout {self.connect_timeout:g} is not more than 0")
        try:
            addresses = parse_servers(self.bootstrap_server)
        except ValueError as error:
            raise UsageError(str(error)) from None
        problems: dict[Address, str] = {}
        starting_until = time.monotonic() + STARTING_S
        while True:
            for answer in ask(addresses, self.connect_timeout, self.security()):
                if answer.problem is None:
                    return answer.address
                problems[answer.address] = answer.problem
            if STARTING not in problems.values() or time.monotonic() > starting_until:
                break
            time.sleep(STARTING_RETRY_S)
        if len(set(problems.values())) == 1:
            raise self.unreachable(problems.popitem()[1], option)
        each = (f"{address}: {problem}" for address, problem in sorted(problems.items()))
        raise self.unreachable("; ".join(each), option)

    def unreachable(self, reason: str, option: str = "--bootstrap-server") -> CommandError:
        return CommandError(
            f"no broker at {self.bootstrap_server}: {reason}; "
            f"start one with `ottla serve` or name another with {option}",
            ExitCode.UNREACHABLE,
        )

    def silent(self, reason: str) -> CommandError:
        """Why an operation does not end although a broker has answered before."""
        self.check_nodes()
        return CommandError(
            f"the cluster at {self.bootstrap_server} does not answer: {reason}; "
            "`ottla node list` shows the state of its nodes",
            ExitCode.UNREACHABLE,
        )

    def check_nodes(self, *, tolerates_few: bool = False) -> None:
        """Clients connect to the addresses that nodes advertise, and these can be wrong.

        With `tolerates_few` nodes may be missing while enough voters are there for a controller.
        A fenced node alone is no reason, since nobody is sent to it.
        """
        from ottla.cli.broker_call import bootstrap_broker

        with bootstrap_broker(self, looks=False) as broker:
            nodes = broker.nodes()
            has_controller = broker.has_controller(LOOK_AFTER_S)
        problems = self.problems_of(nodes, self.connect_timeout / 2)
        fenced = {node.node_id for node in nodes if node.fenced}
        if not problems or (has_controller and (tolerates_few or problems.keys() <= fenced)):
            return
        raise nodes_unreachable(problems, 0 if has_controller else len(nodes))

    def problems_of(self, nodes: Iterable[ClusterNode], timeout_s: float) -> dict[int, str]:
        """What happens at the addresses of those that do not answer, by node."""
        ids = {Address(node.host, node.port): node.node_id for node in nodes}
        return {
            ids[address]: f"{address} ({problem})"
            for address, problem in ask(list(ids), timeout_s, self.security())
            if problem is not None
        }

    @contextlib.contextmanager
    def errors(self, of: str = "") -> Iterator[None]:
        """Turn the errors of librdkafka into errors of the command, which name what they are of."""
        try:
            yield
        except KafkaException as failure:
            error = failure.args[0]
            if error.code() in _UNREACHABLE_CODES:
                raise self.silent(error.str()) from None
            raise CommandError(describe_error(error, of)) from None

    def metadata(self) -> ClusterMetadata:
        admin = self.admin()
        with self.errors(), interruptible():
            return self.patiently(admin.list_topics)

    def partitions(self, consumer: Consumer, topic: str) -> list[int]:
        """The partitions of a topic; a consumer that asks does not create what is not there."""
        with self.errors(topic), interruptible():
            found = self.patiently(partial(consumer.list_topics, topic))
            metadata = found.topics[topic]
            if metadata.error is not None:
                raise KafkaException(metadata.error)
            return sorted(metadata.partitions)

    def patiently(self, call: Callable[..., T]) -> T:
        """Call with a timeout: again while leaders move, and with a long one where nothing explains
        why the short one has passed."""
        end_s = time.monotonic() + TIMEOUT_S
        while True:
            try:
                return self._call(call)
            except KafkaException as failure:
                if failure.args[0].code() not in _MOVING_CODES or time.monotonic() > end_s:
                    raise
            time.sleep(MOVING_RETRY_S)

    def _call(self, call: Callable[..., T]) -> T:
        try:
            return call(timeout=LOOK_AFTER_S)
        except KafkaException as failure:
            if failure.args[0].code() not in _UNREACHABLE_CODES:
                raise
        self.check_nodes()
        return call(timeout=TIMEOUT_S)

    def result(self, future: "Future[T]", of: str = "") -> T:
        with self.errors(of):
            return self._wait(future)

    def succeeds(self, future: "Future[None]", *, unless: int | None, of: str = "") -> bool:
        """False if the broker answers with the error code `unless`; other errors are raised."""
        with self.errors(of):
            try:
                self._wait(future)
            except KafkaException as failure:
                if failure.args[0].code() != unless:
                    raise
                return False
            return True

    def _wait(self, future: "Future[T]") -> T:
        with contextlib.suppress(TimeoutError):
            return future.result(LOOK_AFTER_S)
        self.check_nodes()
        try:
            return future.result(TIMEOUT_S * 2)
        except TimeoutError:
            raise self.silent("it takes too long") from None


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Let ctrl-c end the process at once; some calls of librdkafka return to Python much later."""
    previous = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


def _ignore_error(_: KafkaError) -> None:
    """Every operation reports its own failure; librdkafka's own words would go to stderr."""


DEFAULT_CONNECTION = Connection()


def describe_error(error: KafkaError, of: str = "") -> str:
    """One line: what the broker or librdkafka said, and what to do next if we know."""
    # librdkafka shows bytes of the answer behind some messages.
    text = "".join(filter(str.isprintable, error.str())).removeprefix("Broker: ").rstrip(".")
    if of and of not in text:
        text = f"{of}: {text}"
    return with_hint(text, error.code())


def with_hint(text: str, code: int) -> str:
    hint = _HINTS.get(code)
    return f"{text}; {hint}" if hint else text


def nodes_unreachable(problems: Mapping[int, str], nodes_count: int = 0) -> CommandError:
    """`problems` gives the address of each node, and what happens there.

    With a count of all nodes, too few voters are there to elect a controller.
    """
    addresses = [f"node {node_id} at {problems[node_id]}" for node_id in sorted(problems)]
    text = f"no answer from {', '.join(addresses)}, where it tells clients to connect"
    if nodes_count > 1:
        text = (
            f"no answer from {', '.join(addresses)}: {len(problems)} of {nodes_count} nodes are "
            "down or unreachable, and without a majority of the voters there is no controller"
        )
    return CommandError(
        f"{text}; start {'it' if len(problems) == 1 else 'them'}, or correct --advertised",
        ExitCode.UNREACHABLE,
    )
