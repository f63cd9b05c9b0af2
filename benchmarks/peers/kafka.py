"""Apache Kafka in KRaft mode, with the JVM flags of its own start script.

Every node is broker and controller.

Maven resolves its artifacts by name into the cache directory; none are kept in the repository. Its
garbage collector log and JMX are off, which is in its favor.
"""

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.machine import java_version
from benchmarks.maven import maven
from benchmarks.peers.peer import GROUP_SETTINGS, Flush, Member, Unavailable
from benchmarks.processes import free_port

VERSION = "4.3.1"
LOG4J_VERSION = "2.25.4"
CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
JVM_FLAGS = (
    "-Xmx1G",
    "-Xms1G",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-XX:MaxInlineLevel=15",
    "-Djava.awt.headless=true",
)
ARTIFACTS = (
    ("org.apache.kafka", "kafka_2.13", VERSION),
    ("org.apache.kafka", "kafka-tools", VERSION),
    ("org.apache.logging.log4j", "log4j-slf4j-impl", LOG4J_VERSION),
)
LOGGING = """\
Configuration:
  Appenders:
    Console: {name: out, PatternLayout: {pattern: "[%d] %p %m (%c)%n"}}
  Loggers:
    Root: {level: WARN, AppenderRef: {ref: out}}
"""
PROTOCOLS = "PLAINTEXT:PLAINTEXT,SSL:SSL,CONTROLLER:PLAINTEXT"
PROPERTIES = """\
process.roles=broker,controller
node.id={node_id}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
controller.quorum.voters={voters}
log.dirs={directory}/logs
offsets.topic.replication.factor={replicas}
transaction.state.log.replication.factor={replicas}
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor={replicas}
share.coordinator.state.topic.min.isr=1
log.segment.delete.delay.ms=1000
log.initial.task.delay.ms=1000
"""


class Kafka:
    name = "kafka"

    def __init__(self, warm_seconds: float) -> None:
        self._warm_seconds = warm_seconds
        self._cache = Path()

    def prepare(self, cache: Path) -> None:
        if shutil.which("java") is None:
            raise Unavailable("Apache Kafka needs Java 17 or newer")
        self._cache = cache / f"kafka-{VERSION}"
        if (self._cache / "resolved").exists():
            return
        self._cache.mkdir(parents=True, exist_ok=True)
        (self._cache / "log4j2.yaml").write_text(LOGGING)
        (self._cache / "pom.xml").write_text(_project())
        maven(
            "dependency:copy-dependencies",
            "-DincludeScope=runtime",
            "-DoutputDirectory=libs",
            directory=self._cache,
        )
        (self._cache / "resolved").touch()

    def settings(self) -> dict[str, str]:
        return {
            "Apache Kafka": f"{VERSION}, KRaft, one process for each node, broker defaults",
            "Java": java_version(),
            "JVM flags": " ".join(JVM_FLAGS),
            "JVM warm-up": f"{self._warm_seconds:g} s of the same load before each kind of load",
            "Kafka flush ack": "flush.messages=1",
            "Kafka flush interval": "flush.ms=1000",
        }

    def format(self, directory: Path, port: int) -> None:
        self._format(self._write_properties([_alone(directory, port)], 0))

    def format_member(
        self, members: Sequence[Member], member: Member, settings: Mapping[str, str]
    ) -> None:
        self._format(self._write_properties(members, members.index(member), settings))

    def _format(self, properties: Path) -> None:
        tool = ["kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(properties)]
        subprocess.run(
            ["java", "-cp", self._class_path(), *tool], check=True, capture_output=True, timeout=60
        )

    def command(self, directory: Path, port: int, flush: Flush) -> list[str]:
        del flush  # A topic setting.
        return self._start(self._write_properties([_alone(directory, port)], 0))

    def member_command(
        self, members: Sequence[Member], member: Member, flush: Flush, settings: Mapping[str, str]
    ) -> list[str]:
        del flush  # A topic setting.
        return self._start(self._write_properties(members, members.index(member), settings))

    def _start(self, properties: Path) -> list[str]:
        logging = f"-Dlog4j2.configurationFile={self._cache / 'log4j2.yaml'}"
        start = [logging, "-cp", self._class_path(), "kafka.Kafka", str(properties)]
        return ["java", *JVM_FLAGS, *start]

    def topic_config(self, flush: Flush) -> dict[str, str]:
        return {
            Flush.ACK: {"flush.messages": "1"},
            Flush.INTERVAL: {"flush.ms": "1000"},
            Flush.OS: {},
        }[flush]

    def shares_server(self) -> bool:
        return True

    def warm_seconds(self) -> float:
        return self._warm_seconds

    def _write_properties(
        self, members: Sequence[Member], index: int, settings: Mapping[str, str] | None = None
    ) -> Path:
        member = members[index]
        path = member.directory / "server.properties"
        text = PROPERTIES.format(
            node_id=member.node_id,
            directory=member.directory,
            port=member.port,
            controller_port=member.controller_port,
            voters=",".join(
                f"{voter.node_id}@127.0.0.1:{voter.controller_port}" for voter in members
            ),
            replicas=len(members),
        )
        overrides = {**GROUP_SETTINGS, **(settings or {})}
        if "listeners" in overrides:  # Those of clients; the quorum has its own.
            overrides["listeners"] += f",CONTROLLER://127.0.0.1:{member.controller_port}"
            overrides["listener.security.protocol.map"] = PROTOCOLS
        path.write_text(text + "".join(f"{name}={value}\n" for name, value in overrides.items()))
        return path

    def _class_path(self) -> str:
        return f"{self._cache}/libs/*"


def _alone(directory: Path, port: int) -> Member:
    return Member(1, directory, port, free_port())


def _project() -> str:
    dependencies = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
        f"<version>{version}</version></dependency>"
        for group, artifact, version in ARTIFACTS
    )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>benchmarks</groupId><artifactId>kafka-peer</artifactId><version>1</version>"
        f"<packaging>pom</packaging><dependencies>{dependencies}</dependencies></project>"
    )
