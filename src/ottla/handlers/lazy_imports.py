"""Imports that run a module when something in it is first used.

Type checkers and editors see ordinary imports. Nodes in several threads may use a module for the
first time at once: one of them runs it, and the others wait. (Before Python 3.13, the loader of the
standard library shows them a half-initialized module.)
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder
from threading import RLock
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.abc import Loader, MetaPathFinder
else:  # They would import the resource readers, and Python needs no type here.
    Loader = MetaPathFinder = object

_running = RLock()  # Held while a module runs, which may use others.


@contextmanager
def lazy_imports_of(package: str) -> Iterator[None]:
    """For the modules of `package` that are imported in this context."""
    finder = _LazyFinder(package)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _LazyFinder(MetaPathFinder):
    def __init__(self, package: str) -> None:
        self._prefix = f"{package}."

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith(self._prefix):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _LazyLoader(spec.loader)
        return spec


class _LazyLoader(Loader):
    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        assert spec is not None, "the import system sets it"
        spec.loader = module.__loader__ = spec.loader_state = self._loader
        module.__class__ = _UnusedModule


class _UnusedModule(ModuleType):
    def __getattribute__(self, name: str) -> Any:
        with _running:
            spec: ModuleSpec = object.__getattribute__(self, "__spec__")
            loader: Loader | None = spec.loader_state
            if loader is not None:
                spec.loader_state = None  # While it runs, it sees itself as it is.
                try:
                    loader.exec_module(self)
                except BaseException:
                    spec.loader_state = loader
                    raise
                self.__class__ = ModuleType  # type: ignore[assignment]
            return object.__getattribute__(self, name)
