import importlib
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import pytest

from ottla.handlers.lazy_imports import lazy_imports_of

LATE = """\
from tests.handlers.test_lazy_imports import gate
gate.began.set()
assert gate.may_end.wait(60)
value = 1
"""
BROKEN = """\
from tests.handlers.test_lazy_imports import gate
if not gate.may_end.is_set():
    raise RuntimeError("not now")
value = 2
"""


class Gate:
    def __init__(self) -> None:
        self.began = threading.Event()
        self.may_end = threading.Event()


gate = Gate()


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(sys.modules["tests.handlers.test_lazy_imports"], "gate", Gate())
    directory = tmp_path / "lazy_package"
    directory.mkdir()
    (directory / "__init__.py").touch()
    (directory / "late.py").write_text(LATE)
    (directory / "broken.py").write_text(BROKEN)
    monkeypatch.syspath_prepend(tmp_path)
    yield "lazy_package"
    for name in [name for name in sys.modules if name.startswith("lazy_package")]:
        del sys.modules[name]


def load(package: str, name: str) -> ModuleType:
    with lazy_imports_of(package):
        return importlib.import_module(f"{package}.{name}")


def test_threads_that_use_a_module_first_wait_until_it_has_run(package: str) -> None:
    module = load(package, "late")
    assert not gate.began.is_set()
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(lambda: module.value)
        assert gate.began.wait(60)
        second = threads.submit(lambda: module.value)
        with pytest.raises(TimeoutError):
            second.result(0.2)
        gate.may_end.set()
        assert (first.result(60), second.result(60)) == (1, 1)
    assert type(module) is ModuleType


def test_a_module_that_fails_runs_again_when_it_is_used_again(package: str) -> None:
    module = load(package, "broken")
    with pytest.raises(RuntimeError, match="not now"):
        _ = module.value
    gate.may_end.set()
    assert module.value == 2
