"""Paths in a pipeline file, which are meant from the directory that the file is in."""

import re
from pathlib import Path

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:")


def resolve_path(directory: Path, text: str) -> str:
    """Absolute; what has a scheme, such as s3a:, is left as it is."""
    if _SCHEME.match(text):
        return str(text)
    return str((directory / text).resolve())
