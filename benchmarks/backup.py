"""Backup, verify and restore of some gigabytes, next to the disk's own speed in the same run.

    python -m benchmarks.backup --gigabytes 4

The records are in the page cache, as just written. The disk is that of the temporary directory;
`dd` writes as many bytes there, with one sync at the end.
"""

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.processes import free_port
from ottla.client.wire.cluster import Cluster, TopicPartition
from ottla.client.wire.producing import produce
from ottla.client.wire.topics import ensure_topic
from ottla.records.builder import Record, build_batch

PARTITIONS = 4
TOPIC = "backed-up"
BATCH_BYTES = 256 << 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=4)
    parser.add_argument("--directory", type=Path, default=None)
    options = parser.parse_args()
    size = int(options.gigabytes * 1e9)
    with tempfile.TemporaryDirectory(dir=options.directory) as text:
        root = Path(text)
        results = {"bytes": size, "dd_s": _dd(root, size)}
        with _broker(root / "source") as source:
            results["produce_s"] = _timed(lambda: _fill(source, size))
            to = ("backup", "--to", str(root / "backup"), "--threads", str(PARTITIONS))
            results["backup_s"] = _ottla(source, *to)
            results["backup_again_s"] = _ottla(source, *to)
        results["verify_s"] = _ottla("", "backup", "verify", str(root / "backup"))
        with _broker(root / "target") as target:
            back = ("restore", "--from", str(root / "backup"), "--threads", str(PARTITIONS))
            results["restore_s"] = _ottla(target, *back)
        results["identical"] = all(
            _digest(root / "source", index) == _digest(root / "target", index)
            for index in range(PARTITIONS)
        )
    for name in ("backup", "restore", "verify"):
        results[f"{name}_of_disk"] = round(results["dd_s"] / results[f"{name}_s"], 2)
    print(json.dumps(results, indent=1))
    sys.exit(not results["identical"])


def _timed(work: object) -> float:
    begin = time.monotonic()
    work()  # type: ignore[operator]
    return round(time.monotonic() - begin, 2)


def _dd(root: Path, size: int) -> float:
    target = root / "dd"
    command = ["dd", "if=/dev/zero", f"of={target}", "bs=1M", f"count={size >> 20}", "conv=fsync"]
    seconds = _timed(lambda: subprocess.run(command, check=True, capture_output=True))
    target.unlink()
    return seconds


@contextmanager
def _broker(data: Path) -> Iterator[str]:
    port = free_port()
    serve = ("serve", "--port", str(port), "--data", str(data))
    process = subprocess.Popen([sys.executable, "-m", "ottla", *serve], stderr=subprocess.DEVNULL)
    bootstrap = f"127.0.0.1:{port}"
    try:
        with Cluster(bootstrap) as cluster:
            cluster.topics()
        yield bootstrap
    finally:
        process.terminate()
        process.wait(60)


def _fill(bootstrap: str, size: int) -> None:
    """Incompressible values, in batches as large as a good producer's."""
    value = hashlib.shake_128(b"value").digest(1000)
    batch = bytes(build_batch([Record(timestamp=1, value=value)] * (BATCH_BYTES // 1000)))
    with Cluster(bootstrap) as cluster:
        ensure_topic(cluster, TOPIC, partitions=PARTITIONS, config={"retention.ms": "-1"})
        places = [TopicPartition(TOPIC, index) for index in range(PARTITIONS)]
        for _ in range(size // (PARTITIONS * len(batch))):
            produce(cluster, dict.fromkeys(places, batch))


def _ottla(bootstrap: str, *arguments: str) -> float:
    server = ("--bootstrap-server", bootstrap) if bootstrap else ()
    command = [sys.executable, "-m", "ottla", *arguments, *server]
    return _timed(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL))


def _digest(data: Path, partition: int) -> str:
    digest = hashlib.sha256()
    for segment in sorted((data / f"{TOPIC}-{partition}").glob("*.log")):
        with segment.open("rb") as file:
            while block := file.read(1 << 24):
                digest.update(block)
    return digest.hexdigest()


if __name__ == "__main__":
    main()
