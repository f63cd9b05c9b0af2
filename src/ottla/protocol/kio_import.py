"""Imports kio without Hypothesis.

If Hypothesis is installed, kio imports it to register its types, which takes longer than starting a
broker. A process that imported Hypothesis before gets the registered types.
"""

import sys
from typing import Any


def _import_kio() -> None:
    modules: dict[str, Any] = sys.modules
    if "hypothesis" in modules:
        return
    modules["hypothesis"] = None  # Importing it fails as if it were not installed.
    try:
        import kio.static.primitive  # noqa: F401
    finally:
        del modules["hypothesis"]


_import_kio()
