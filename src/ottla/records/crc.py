"""CRC-32C, the checksum of every batch: the function of the `crc32c` package.

The package reads its own version and has a command line, for which it imports thirty more modules
(20 ms of processor time, on the first start in a process). Only its extension is loaded.
"""

from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import Protocol, cast


class Crc32c(Protocol):
    def __call__(self, data: bytes | bytearray | memoryview, before: int = 0, /) -> int:
        """The checksum of the data; `before` is the checksum of what precedes it."""


def _load() -> Crc32c:
    package = PathFinder.find_spec("crc32c")
    paths = None if package is None else package.submodule_search_locations
    extension = None if paths is None else PathFinder.find_spec("crc32c._crc32c", paths)
    if extension is None or extension.loader is None:  # It is not installed as a directory.
        import crc32c as whole

        return cast("Crc32c", whole.crc32c)
    module = module_from_spec(extension)
    extension.loader.exec_module(module)
    return cast("Crc32c", module.crc32c)


crc32c: Crc32c = _load()
