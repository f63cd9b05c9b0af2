"""Three containers of the image, each stopped in turn while a client writes: no produce fails.

    python -m tests.deploy.rolling_stops --base localhost/python --rounds 1

Builds deploy/Dockerfile with buildah (chroot isolation, so that no daemon is needed) on `--base`,
an image with Python, or uses `--image`. Each broker runs in its own namespaces by bubblewrap, as
the image's user, as process 1 and on a read-only root; the network is the machine's. A stop is
SIGTERM to process 1, as by `docker stop`. Needs buildah and bwrap.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.ports import ReservedPort

REPOSITORY = Path(__file__).parents[2]
TOPIC = "records"
PARTITIONS = 6
USER = "10001"
PATIENCE_S = 180.0


def buildah(*arguments: str) -> str:
    done = subprocess.run(
        ["buildah", "--storage-driver", "vfs", *arguments],
        cwd=REPOSITORY,
        env={**os.environ, "BUILDAH_ISOLATION": "chroot"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout.strip().splitlines()[-1]


def build(base: str) -> str:
    """Mounts the machine's certificates into the build, for package indexes behind a proxy."""
    certificates = "/etc/ssl/certs:/etc/ssl/certs:ro"
    return buildah(
        "bud",
        f"--volume={certificates}",
        f"--build-arg=BASE={base}",
        "--file=deploy/Dockerfile",
        "--tag=localhost/ottla",
        ".",
    )


class Broker:
    """One container, whose data outlives it."""

    def __init__(self, node_id: int, root: Path, directory: Path, brokers: "list[Broker]") -> None:
        self.node_id = node_id
        self._reserved = ReservedPort(), ReservedPort()
        self.port, self.metrics_port = (reserved.number for reserved in self._reserved)
        self._root = root
        self._data = directory / f"data-{node_id}"
        self._data.mkdir()
        self._log = (directory / f"broker-{node_id}.log").open("ab")
        self._brokers = brokers
        self._sandbox: subprocess.Popen[bytes] | None = None
        self._pid = 0

    def start(self) -> None:
        others = [f"127.0.0.1:{each.port}" for each in self._brokers if each is not self]
        environment = {
            "PATH": "/opt/ottla/bin:/usr/local/bin:/usr/bin:/bin",
            "PYTHONDONTWRITEBYTECODE": "1",
            "OTTLA_LOG_DIRS": "/var/lib/ottla",
            "OTTLA_NODE_ID": str(self.node_id),
            "OTTLA_LISTENERS": f"PLAINTEXT://127.0.0.1:{self.port}",
            "OTTLA_METRICS_HOST": "127.0.0.1",
            "OTTLA_METRICS_PORT": str(self.metrics_port),
            "OTTLA_CONTROLLER_QUORUM_BOOTSTRAP_SERVERS": "" if self.node_id == 1 else others[0],
        }
        info_end, write_end = os.pipe()
        options = ["--ro-bind", str(self._root), "/", "--dev", "/dev", "--proc", "/proc"]
        options += ["--tmpfs", "/tmp", "--bind", str(self._data), "/var/lib/ottla"]
        options += ["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts"]
        options += ["--uid", USER, "--gid", USER, "--as-pid-1", "--die-with-parent", "--clearenv"]
        options += ["--chdir", "/var/lib/ottla", "--info-fd", str(write_end)]
        for name, value in environment.items():
            options += ["--setenv", name, value]
        self._sandbox = subprocess.Popen(
            ["bwrap", *options, "/opt/ottla/bin/ottla", "serve"],
            stdout=self._log,
            stderr=self._log,
            pass_fds=(write_end,),
        )
        os.close(write_end)
        with os.fdopen(info_end) as information:
            self._pid = json.load(information)["child-pid"]

    def stop(self) -> float:
        """Seconds until it exited."""
        assert self._sandbox is not None
        began = time.monotonic()
        os.kill(self._pid, signal.SIGTERM)
        code = self._sandbox.wait(PATIENCE_S)
        if code:
            raise AssertionError(f"broker {self.node_id} ended with exit code {code}")
        self._sandbox = None
        return time.monotonic() - began

    def wait_until_ready(self) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                with urllib.request.urlopen(
                    f"http://127.0.0.1:{self.metrics_port}/readyz", timeout=20
                ):
                    return
            except urllib.error.HTTPError as error:
                with error:
                    problem = error.read().decode().strip()
            except OSError as error:
                problem = str(error)
            assert self._sandbox is not None
            if self._sandbox.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"broker {self.node_id} is not ready: {problem}")
            time.sleep(0.1)

    def end(self) -> None:
        if self._sandbox is not None:
            self._sandbox.kill()
            self._sandbox.wait()
        self._log.close()


class Writer:
    """Writes numbers one after another until stopped."""

    def __init__(self, servers: str) -> None:
        self.acked: set[int] = set()
        self.errors: list[str] = []
        config = {"acks": "all", "enable.idempotence": True, "linger.ms": 5}
        self._producer = Producer({"bootstrap.servers": servers, **config})
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._write)

    def __enter__(self) -> "Writer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()
        self._producer.flush(PATIENCE_S)

    def _write(self) -> None:
        number = 0
        while not self._stopped.wait(0.002):
            number += 1
            self._producer.produce(TOPIC, str(number).encode(), on_delivery=self._on_delivery)
            self._producer.poll(0)

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.errors.append(error.str())
        else:
            self.acked.add(int(message.value() or b"0"))


def create_topic(servers: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    config = {"min.insync.replicas": "2"}
    topic = NewTopic(TOPIC, PARTITIONS, 3, config=config)
    admin.create_topics([topic], operation_timeout=PATIENCE_S)[TOPIC].result()


def read_all(servers: str, count: int) -> list[int]:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "check"})
    consumer.assign([TopicPartition(TOPIC, index, 0) for index in range(PARTITIONS)])
    numbers: list[int] = []
    while len(numbers) < count:
        messages = consumer.consume(1000, timeout=30)
        if not messages:
            break
        numbers += [int(each.value() or b"0") for each in messages if each.error() is None]
    consumer.close()
    return numbers


def run(root: Path, directory: Path, rounds: int) -> list[str]:
    """Returns the findings."""
    brokers: list[Broker] = []
    for node_id in (1, 2, 3):
        brokers.append(Broker(node_id, root, directory, brokers))
    try:
        for broker in brokers:
            broker.start()
            broker.wait_until_ready()
        servers = ",".join(f"127.0.0.1:{broker.port}" for broker in brokers)
        create_topic(servers)
        with Writer(servers) as writer:
            for _ in range(rounds):
                for broker in brokers:
                    before = len(writer.acked)
                    stopped_s = broker.stop()
                    broker.start()
                    broker.wait_until_ready()
                    print(
                        f"broker {broker.node_id}: stopped in {stopped_s:.1f} s and ready again;"
                        f" {len(writer.acked) - before} records were acknowledged meanwhile",
                        flush=True,
                    )
        numbers = read_all(servers, len(writer.acked))
    finally:
        for broker in brokers:
            broker.end()
    problems = [f"a produce failed: {error}" for error in writer.errors]
    missing = writer.acked - set(numbers)
    if missing:
        problems.append(f"{len(missing)} of {len(writer.acked)} acknowledged records are missing")
    if len(numbers) != len(set(numbers)):
        problems.append(f"{len(numbers) - len(set(numbers))} records are there twice")
    print(f"{len(writer.acked)} records acknowledged, {len(problems)} problems")
    return problems


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--base", default="python:3.12-slim-bookworm")
    parser.add_argument("--image", help="an image that is there already")
    parser.add_argument("--rounds", type=int, default=1)
    arguments = parser.parse_args()
    for tool in ("buildah", "bwrap"):
        if shutil.which(tool) is None:
            print(f"there is no {tool} here; install Debian's buildah and bubblewrap")
            return 2
    image = arguments.image or build(arguments.base)
    container = buildah("from", "--pull-never", image)
    try:
        with tempfile.TemporaryDirectory() as directory:
            problems = run(Path(buildah("mount", container)), Path(directory), arguments.rounds)
    finally:
        buildah("rm", container)
    for problem in problems[:20]:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
