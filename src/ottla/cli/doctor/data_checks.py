"""A data directory, without a broker: whose it is, what is left of its disk, what is damaged."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ottla.cli.doctor.finding import Finding, critical, note, warning
from ottla.cli.dump_segment import SEGMENT_SUFFIXES, SegmentDump
from ottla.cli.output import format_size, some
from ottla.storage.directory_identity import LOCK_FILE, WrongDirectory, read_identity
from ottla.storage.local_filesystem import LocalFilesystem
from ottla.storage.partition_names import is_stray, parse_partition

FREE_WARNING: Final = 0.15
FREE_CRITICAL: Final = 0.05
_MEMORY: Final = ("tmpfs", "ramfs")


def check_data(directory: Path, node_id: int | None, *, deep: bool) -> Iterator[Finding]:
    """`node_id` is that of the configuration; `deep` reads every record."""
    if not directory.exists():
        yield note(
            "data",
            f"{directory} does not exist",
            "nothing to do for a new node; otherwise mount its disk",
        )
        return
    if not directory.is_dir() or not os.access(directory, os.R_OK | os.W_OK | os.X_OK):
        yield critical(
            "data",
            f"{directory} is not a directory that this user can write to",
            f"chown -R USER {directory}, for the user that the broker runs as",
        )
        return
    yield from check_space(str(directory), *shutil.disk_usage(directory)[::2])
    if _filesystem_type(directory) in _MEMORY:
        yield critical(
            "data", f"{directory} is in memory: a reboot empties it", "put log.dirs on a disk"
        )
    yield from _check_identity(directory, node_id)
    yield from _check_partitions(directory, deep=deep)


def check_space(name: str, total: int, free: int) -> Iterator[Finding]:
    if total <= 0 or free >= FREE_WARNING * total:
        return
    made = critical if free < FREE_CRITICAL * total else warning
    yield made(
        "disk",
        f"{name} has {format_size(free)} of {format_size(total)} left",
        "`ottla topics disk` shows what takes it; shorten retention with `ottla configs alter"
        " --topic TOPIC --set retention.ms=MS`, or add a disk or a node",
    )


def _check_identity(directory: Path, node_id: int | None) -> Iterator[Finding]:
    try:
        found = read_identity(LocalFilesystem(), str(directory))
    except WrongDirectory as error:
        yield critical("data", str(error), "see the message")
        return
    if found is not None and node_id is not None and found.node_id != node_id:
        yield critical(
            "data",
            f"{directory} belongs to node {found.node_id}, and the configuration is that of node"
            f" {node_id}",
            "correct node.id, or log.dirs",
        )


def _check_partitions(directory: Path, *, deep: bool) -> Iterator[Finding]:
    names = sorted(entry.name for entry in directory.iterdir() if entry.is_dir())
    strays = [name for name in names if is_stray(name)]
    if strays:
        yield warning(
            "data",
            f"{len(strays)} directories were set aside, because the cluster does not know their"
            f" topics: {some(strays)}",
            f"look at them with `ottla dump {directory}/{strays[0]}`, then remove them",
        )
    if not deep:
        return
    if _is_in_use(directory):
        yield note(
            "data",
            f"a broker runs on {directory}, so its records were not read",
            "stop it, or ask it: `ottla topics unhealthy`",
        )
        return
    for name in names:
        if parse_partition(name) is not None:
            yield from _check_segments(directory / name)


def _check_segments(partition: Path) -> Iterator[Finding]:
    for file in sorted(partition.iterdir()):
        if file.suffix not in SEGMENT_SUFFIXES or not file.stat().st_size:
            continue
        segment = SegmentDump(file)
        for position, header in segment.batches():
            segment.check(position, header)
        if segment.problems:
            is_torn = all("torn tail" in problem for problem in segment.problems)
            yield (warning if is_torn else critical)(
                "data",
                f"{file} is damaged: {segment.problems[0]}",
                "start the broker: it truncates a torn end and repairs the rest from replicas",
            )


def _is_in_use(directory: Path) -> bool:
    lock = directory / LOCK_FILE
    if not lock.exists():
        return False
    try:
        LocalFilesystem().lock(str(lock)).release()
    except OSError:
        return True
    return False


def _filesystem_type(directory: Path) -> str:
    """Of the mount that is nearest; empty where that cannot be found out."""
    found = ("", "")
    try:
        lines = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    path = str(directory.resolve())
    for line in lines:
        _, mount, kind = line.split()[:3]
        if (path == mount or path.startswith(mount.rstrip("/") + "/")) and mount >= found[0]:
            found = (mount, kind)
    return found[1]
