"""Paths in a pipeline file, relative to the file's directory."""

import re
from pathlib import Path

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:")


def resolve_path(directory: Path, text: str) -> str:
    """Absolute; leaves anything with a scheme, such as s3a:, unchanged."""
    if _SCHEME.match(text):
        return str(text)
    return str((directory / text).resolve())
