"""Imports every module of the package, and prints what other modules then have of this package's.

Patches are functions or classes of this package in places of others.
"""

import contextlib
import gc
import importlib
import pkgutil
import sys
from collections.abc import Iterator, Mapping
from inspect import unwrap
from types import FunctionType
from typing import Any

import pyspark_ottla

OWN = ("pyspark_ottla", "__main__")


def import_all() -> int:
    count = 0
    for module in pkgutil.walk_packages(pyspark_ottla.__path__, "pyspark_ottla."):
        with contextlib.suppress(ImportError):  # Of what an older Spark lacks.
            importlib.import_module(module.name)
            count += 1
    return count


def find_patches(place: str, names: Mapping[str, Any]) -> Iterator[str]:
    for name, value in list(names.items()):
        if isinstance(value, type):
            if str(value.__module__).startswith(OWN):
                yield f"{place}.{name}"
            elif value.__module__ == place:
                yield from find_patches(f"{place}.{name}", vars(value))
        if isinstance(value, property):
            value = value.fget
        if isinstance(value, staticmethod | classmethod):
            value = value.__func__
        if isinstance(value, FunctionType) and str(unwrap(value).__module__).startswith(OWN):
            yield f"{place}.{name}"


def main() -> None:
    count = import_all()
    others = [name for name in sys.modules if not name.startswith((*OWN, "ottla"))]
    patches = [each for name in others for each in find_patches(name, vars(sys.modules[name]))]
    print(count > 100, patches, gc.get_freeze_count())


if __name__ == "__main__":
    main()
