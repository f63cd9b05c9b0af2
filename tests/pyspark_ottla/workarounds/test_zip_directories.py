import importlib
import sys
import zipfile
from pathlib import Path

import pytest

from pyspark_ottla.workarounds.zip_directories import watch_zips


def write_module(archive: Path, name: str) -> None:
    with zipfile.ZipFile(archive, "a") as file:
        file.writestr(f"{name}.py", "")


def test_a_zip_that_changes_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watch_zips()
    archive = tmp_path / "modules.zip"
    write_module(archive, "one_of_the_zip")
    monkeypatch.syspath_prepend(str(archive))
    importlib.import_module("one_of_the_zip")
    importlib.invalidate_caches()
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("other_of_the_zip")
    write_module(archive, "other_of_the_zip")
    importlib.invalidate_caches()
    importlib.import_module("other_of_the_zip")


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="Python reads it when it is needed")
def test_a_zip_that_stays_is_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch_zips()
    archive = tmp_path / "modules.zip"
    write_module(archive, "stays_in_the_zip")
    monkeypatch.syspath_prepend(str(archive))
    importlib.import_module("stays_in_the_zip")
    importlib.invalidate_caches()
    importer = sys.path_importer_cache[str(archive)]
    files = importer._files  # type: ignore[union-attr]
    importlib.invalidate_caches()
    assert importer._files is files  # type: ignore[union-attr]
