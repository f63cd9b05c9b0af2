"""Step functions, by name: `module:function`.

A module next to the pipeline file takes precedence over an installed one. Its code is sent with the
functions to the tasks, so it need not be installed where they run.
"""

import importlib
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from pyspark import cloudpickle


class FunctionNotFound(Exception):
    """The function does not exist; the message says why."""


def find_function(name: str, directory: Path) -> Callable[..., Any]:
    module_name, _, function_name = name.partition(":")
    try:
        module = _module(module_name, directory.resolve())
    except ImportError as error:
        raise FunctionNotFound(f"{module_name} cannot be imported: {error}") from error
    function = getattr(module, function_name, None)
    if not callable(function):
        raise FunctionNotFound(f"there is no function {function_name} in {module_name}")
    return function  # type: ignore[no-any-return]


def _module(name: str, directory: Path) -> ModuleType:
    file = directory.joinpath(*name.split(".")).with_suffix(".py")
    if not file.is_file():
        return importlib.import_module(name)
    if str(directory) not in sys.path:
        sys.path.insert(0, str(directory))
    loaded = sys.modules.get(name)
    if loaded is None or loaded.__file__ != str(file):
        loaded = _load(name, file)
    _let_travel(directory)
    return loaded


def _load(name: str, file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None, "the file is Python"
    assert spec.loader is not None, "a file has a loader"
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _let_travel(directory: Path) -> None:
    """Pickle modules from next to the file by value."""
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if file and Path(file).is_relative_to(directory):
            cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
