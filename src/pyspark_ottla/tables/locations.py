"""Directories and files by path or URI: local, or in a store that Arrow supports."""

import posixpath
from typing import Any

import pyarrow.fs


def open_location(location: str) -> tuple[Any, str]:
    """The file system, and the path in it."""
    if "://" in location:
        filesystem, path = pyarrow.fs.FileSystem.from_uri(location)
        return filesystem, path
    return pyarrow.fs.LocalFileSystem(), location


def join(location: str, *names: str) -> str:
    return posixpath.join(location, *names)


def list_files(location: str, *, recursive: bool = False) -> list[Any]:
    """File infos; empty if the directory does not exist."""
    filesystem, path = open_location(location)
    selector = pyarrow.fs.FileSelector(path, allow_not_found=True, recursive=recursive)
    found = filesystem.get_file_info(selector)
    return [info for info in found if info.type is pyarrow.fs.FileType.File]


def remove_file(location: str) -> None:
    """A missing file is not an error."""
    filesystem, path = open_location(location)
    try:
        filesystem.delete_file(path)
    except FileNotFoundError:
        pass


def remove_directory(location: str) -> None:
    """With its contents; a missing directory is not an error."""
    filesystem, path = open_location(location)
    filesystem.delete_dir_contents(path, missing_dir_ok=True)
    try:
        filesystem.delete_dir(path)
    except FileNotFoundError:
        pass
