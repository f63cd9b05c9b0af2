"""Bundles what Python workers need on machines without Ottla into a file that Spark distributes.

    python -m pyspark_ottla.bundle ottla.zip              Ottla, for --py-files
    python -m pyspark_ottla.bundle ottla.tar.gz           and what it imports, for spark.archives
    python -m pyspark_ottla.bundle ottla.tar.gz pandas    and more of what is installed here

A zip contains only Python code: the workers must have what Ottla imports. An archive contains
compiled libraries, so it suits workers with this Python version and processor architecture.
"""

import re
import sys
import tarfile
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

PACKAGES = ("ottla", "pyspark_ottla", "pyspark_ottla_table")
LIBRARIES = ("kio", "crc32c", "cramjam", "zstandard", "fastavro", "numpy", "pyarrow")

_LEFT_OUT = {"pyspark", "py4j"}  # Spark ships them.
_REQUIREMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_ARCHIVE_ENDINGS = (".tar.gz", ".tgz")
_COMPRESSION_LEVEL = 1  # Higher levels hardly shrink libraries.


class BundleError(Exception):
    """A bundle cannot be built; the message says why."""


class _File(NamedTuple):
    path: Path
    name: str  # In the bundle.


def write_bundle(target: Path, more: Sequence[str] = ()) -> None:
    """`more` names additional distributions, for an archive."""
    if target.suffix == ".zip":
        if more:
            raise BundleError(f"{target.name} takes Ottla alone: libraries need a .tar.gz")
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as zipped:
            for file in _files_of_packages():
                zipped.write(file.path, file.name)
    elif target.name.endswith(_ARCHIVE_ENDINGS):
        libraries = _required([*LIBRARIES, *more])
        with tarfile.open(target, "w:gz", compresslevel=_COMPRESSION_LEVEL) as archive:
            for file in [*_files_of_packages(), *_files_of(libraries)]:
                archive.add(file.path, file.name)
    else:
        raise BundleError(f"{target.name} is neither a .zip nor a .tar.gz")


def _files_of_packages() -> Iterator[_File]:
    for package in PACKAGES:
        spec = find_spec(package)
        assert spec is not None, "a package of this distribution"
        assert spec.origin is not None, "a package has a file"
        directory = Path(spec.origin).parent
        for path in sorted(directory.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                yield _File(path, f"{package}/{path.relative_to(directory)}")


def _required(names: Iterable[str]) -> list[metadata.Distribution]:
    """The distributions and their dependencies."""
    found: dict[str, metadata.Distribution] = {}
    waiting = list(names)
    for name in waiting:
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            raise BundleError(f"{name} is not installed here: pip install {name}") from None
        if _key(name) not in found and _key(name) not in _LEFT_OUT:
            found[_key(name)] = distribution
            waiting += _requirements(distribution)
    return list(found.values())


def _requirements(distribution: metadata.Distribution) -> Iterator[str]:
    """Without those for extras or other platforms and Python versions, which are not installed."""
    for text in distribution.requires or ():
        requirement, _, marker = text.partition(";")
        name = _REQUIREMENT.match(requirement.strip())
        if name is not None and "extra" not in marker and _is_installed(name[0]):
            yield name[0]


def _is_installed(name: str) -> bool:
    try:
        metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def _key(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _files_of(distributions: Iterable[metadata.Distribution]) -> Iterator[_File]:
    """Without programs, which are outside the packages directory."""
    for distribution in distributions:
        for file in distribution.files or ():
            path = Path(str(file.locate()))
            if ".." not in file.parts and "__pycache__" not in file.parts and path.is_file():
                yield _File(path, str(file))


def main() -> None:
    if len(sys.argv) < 2:
        sys.exit((__doc__ or "").strip())
    target = Path(sys.argv[1])
    try:
        write_bundle(target, sys.argv[2:])
    except (BundleError, OSError) as error:
        sys.exit(str(error))
    print(f"{target}: {target.stat().st_size / 1e6:.1f} MB")  # noqa: T201


if __name__ == "__main__":
    main()
