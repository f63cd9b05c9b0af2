"""Paths in a pipeline file, relative to the file's directory."""

import re
from pathlib import Path

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:")


def has_scheme(text: str) -> bool:
    """Whether it is a URI, such as s3a://bucket/orders, and not a local path."""
    return _SCHEME.match(text) is not None


def resolve_path(directory: Path, text: str) -> str:
    """Absolute; leaves anything with a scheme unchanged."""
    if has_scheme(text):
        return str(text)
    return str((directory / text).resolve())
