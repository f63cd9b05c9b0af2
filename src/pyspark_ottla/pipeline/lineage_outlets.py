"""Where lineage events go: a file, an HTTP address, or a topic.

A pipeline runs whether or not its events arrive; failures are logged.
"""

import json
import logging
import os
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any, Protocol

from ottla.client.wire.cluster import Cluster, TopicPartition
from ottla.client.wire.errors import WireError
from ottla.client.wire.producing import produce
from ottla.client.wire.topics import ensure_topic
from ottla.records.builder import Record, build_batch
from pyspark_ottla.option_names import OptionError
from pyspark_ottla.security_options import security_for

API_KEY = "OPENLINEAGE_API_KEY"

logger = logging.getLogger(__name__)

_PATH = "/api/v1/lineage"  # OpenLineage's path, for addresses without one.
_TIMEOUT_S = 5.0
_TOPIC = "topic:"
_FILE = "file:"


class Outlet(Protocol):
    def send(self, event: dict[str, Any]) -> None:
        """Never raises."""


def open_outlet(target: str, bootstrap_servers: str) -> Outlet:
    """`target` is topic:NAME, http://..., https://..., or a file."""
    if target.startswith(_TOPIC):
        return TopicOutlet(bootstrap_servers, target.removeprefix(_TOPIC))
    if target.startswith(("http://", "https://")):
        return HttpOutlet(target)
    return FileOutlet(Path(target.removeprefix(_FILE)))


class FileOutlet:
    """One line per event."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def send(self, event: dict[str, Any]) -> None:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a") as file:
                file.write(json.dumps(event) + "\n")
        except OSError as error:
            _report(event, str(self._path), error)


class HttpOutlet:
    def __init__(self, url: str) -> None:
        parts = urllib.parse.urlsplit(url)
        self._url = url if parts.path.strip("/") else url.rstrip("/") + _PATH

    def send(self, event: dict[str, Any]) -> None:
        headers = {"Content-Type": "application/json"}
        key = os.environ.get(API_KEY)
        if key:
            headers["Authorization"] = f"Bearer {key}"
        request = urllib.request.Request(
            self._url, data=json.dumps(event).encode(), headers=headers, method="POST"
        )
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_S):
                pass
        except (urllib.error.URLError, OSError, ValueError) as error:
            _report(event, self._url, error)


class TopicOutlet:
    """One record per event, keyed by job name."""

    def __init__(self, bootstrap_servers: str, topic: str) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._topic = topic

    def send(self, event: dict[str, Any]) -> None:
        record = Record(
            timestamp=time.time_ns() // 1_000_000,
            key=event["job"]["name"].encode(),
            value=json.dumps(event).encode(),
        )
        try:
            with Cluster(
                self._bootstrap_servers,
                retry_timeout_ms=int(_TIMEOUT_S * 1000),
                security=security_for(self._bootstrap_servers),
            ) as cluster:
                ensure_topic(cluster, self._topic, partitions=1)
                produce(cluster, {TopicPartition(self._topic, 0): build_batch([record])})
        except (WireError, OptionError) as error:
            _report(event, f"topic {self._topic}", error)


def _report(event: dict[str, Any], target: str, error: Exception) -> None:
    logger.warning("%s of lineage did not arrive at %s: %s", event["eventType"], target, error)
