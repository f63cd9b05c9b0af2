"""Imports kio without Hypothesis.

Where Hypothesis is installed, kio imports it to register its types, which takes longer than a
broker takes to start. A process that has imported Hypothesis before gets the registered types.
"""

import sys
from typing import Any


def _import_kio() -> None:
    modules: dict[str, Any] = sys.modules
    if "hypothesis" in modules:
        return
    modules["hypothesis"] = None  # An import of it fails as if it were not installed.
    try:
        import kio.static.primitive  # noqa: F401
    finally:
        del modules["hypothesis"]


_import_kio()
