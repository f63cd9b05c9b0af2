"""ElasticMQ, an SQS server on the JVM, from Maven.

It keeps messages in memory, or in an H2 database on disk that does not sync every change, which is
close to Ottla's flush policy `os`.
"""

import shutil
from pathlib import Path

from benchmarks.maven import maven
from benchmarks.peers.guest import Guest
from benchmarks.peers.peer import Flush, Unavailable

VERSION = "1.6.9"
PROJECT = f"""\
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>benchmarks</groupId><artifactId>elasticmq</artifactId><version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.elasticmq</groupId>
      <artifactId>elasticmq-server_2.13</artifactId>
      <version>{VERSION}</version>
    </dependency>
  </dependencies>
</project>
"""


class ElasticMq(Guest):
    def __init__(self, *, on_disk: bool) -> None:
        self.name = "elasticmq" if on_disk else "elasticmq in memory"
        self._on_disk = on_disk
        self._home = Path()

    def prepare(self, cache: Path) -> None:
        if shutil.which("java") is None:
            raise Unavailable("ElasticMQ needs Java")
        self._home = cache / f"elasticmq-{VERSION}"
        if (self._home / "resolved").exists():
            return
        self._home.mkdir(parents=True, exist_ok=True)
        (self._home / "pom.xml").write_text(PROJECT)
        maven(
            "dependency:copy-dependencies",
            "-DincludeScope=runtime",
            "-DoutputDirectory=libs",
            directory=self._home,
        )
        (self._home / "resolved").touch()

    def settings(self) -> dict[str, str]:
        return {"ElasticMQ": f"{VERSION}, messages in an H2 database on disk, or in memory"}

    def command(self, directory: Path, port: int, flush: Flush) -> list[str]:
        del flush  # It has one policy.
        settings = {
            "rest-sqs.bind-hostname": "127.0.0.1",
            "rest-sqs.bind-port": port,
            "rest-stats.enabled": "false",
            "node-address.host": "127.0.0.1",
            "node-address.port": port,
        }
        if self._on_disk:
            settings |= {
                "messages-storage.enabled": "true",
                "messages-storage.uri": f"jdbc:h2:{directory / 'messages'}",
            }
        options = [f"-D{name}={value}" for name, value in settings.items()]
        class_path = str(self._home / "libs" / "*")
        return ["java", *options, "-cp", class_path, "org.elasticmq.server.Main"]
