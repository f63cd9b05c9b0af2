"""Sends lineage events to a file, an HTTP address, or a topic.

A pipeline runs whether or not its events arrive; failures are logged.
"""

import json
import logging
import os
import time
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

from ottla.client.wire.cluster import Cluster, TopicPartition
from ottla.client.wire.errors import WireError
from ottla.client.wire.producing import produce
from ottla.client.wire.topics import ensure_topic
from ottla.records.builder import Record, build_batch
from pyspark_ottla.security_options import security_for

API_KEY = "OPENLINEAGE_API_KEY"

logger = logging.getLogger(__name__)

_PATH = "/api/v1/lineage"  # OpenLineage's path, for addresses without one.
_TIMEOUT_S = 5.0
_TOPIC = "topic:"


def send_event(event: dict[str, Any], target: str, bootstrap_servers: str) -> None:
    """`target` is topic:NAME, http://..., https://..., or a file. Never raises."""
    try:
        if target.startswith(_TOPIC):
            _write(event, target.removeprefix(_TOPIC), bootstrap_servers)
        elif target.startswith(("http://", "https://")):
            _post(event, target)
        else:
            _append(event, Path(target.removeprefix("file:")))
    except (OSError, ValueError, WireError) as error:
        logger.warning("%s of lineage did not arrive at %s: %s", event["eventType"], target, error)


def _append(event: dict[str, Any], path: Path) -> None:
    """One line per event."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(event) + "\n")


def _post(event: dict[str, Any], url: str) -> None:
    if not urllib.parse.urlsplit(url).path.strip("/"):
        url = url.rstrip("/") + _PATH
    headers = {"Content-Type": "application/json"}
    key = os.environ.get(API_KEY)
    if key:
        headers["Authorization"] = f"Bearer {key}"
    data = json.dumps(event).encode()
    request = urllib.request.Request(url, data=data, headers=headers, method="POST")
    with urllib.request.urlopen(request, timeout=_TIMEOUT_S):
        pass


def _write(event: dict[str, Any], topic: str, bootstrap_servers: str) -> None:
    """One record per event, keyed by job name."""
    record = Record(
        timestamp=time.time_ns() // 1_000_000,
        key=event["job"]["name"].encode(),
        value=json.dumps(event).encode(),
    )
    with Cluster(
        bootstrap_servers,
        retry_timeout_ms=int(_TIMEOUT_S * 1000),
        security=security_for(bootstrap_servers),
    ) as cluster:
        ensure_topic(cluster, topic, partitions=1)
        produce(cluster, {TopicPartition(topic, 0): build_batch([record])})
