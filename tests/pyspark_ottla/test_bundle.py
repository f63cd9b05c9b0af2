import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from pyspark_ottla import bundle
from pyspark_ottla.bundle import PACKAGES, BundleError, write_bundle


def test_a_zip_has_ottla_alone(tmp_path: Path) -> None:
    write_bundle(tmp_path / "ottla.zip")
    with zipfile.ZipFile(tmp_path / "ottla.zip") as zipped:
        names = zipped.namelist()
    assert {name.split("/")[0] for name in names} == set(PACKAGES)
    assert "pyspark_ottla/source.py" in names
    assert not [name for name in names if "__pycache__" in name]


def test_an_archive_has_what_libraries_need_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundle, "LIBRARIES", ("kio",))
    write_bundle(tmp_path / "ottla.tar.gz", ["crc32c"])
    with tarfile.open(tmp_path / "ottla.tar.gz") as archive:
        tops = {name.split("/")[0] for name in archive.getnames()}
    assert {*PACKAGES, "kio", "crc32c", "typing_extensions.py"} <= tops
    assert "pyspark" not in tops


@pytest.mark.parametrize(
    ("name", "more", "reason"),
    [
        ("ottla.rar", [], "neither a .zip nor a .tar.gz"),
        ("ottla.zip", ["pandas"], "takes Ottla alone"),
        ("ottla.tar.gz", ["no-such-thing"], "no-such-thing is not installed here"),
    ],
)
def test_what_cannot_be_packed(tmp_path: Path, name: str, more: list[str], reason: str) -> None:
    with pytest.raises(BundleError, match=reason):
        write_bundle(tmp_path / name, more)


def test_the_program_says_what_it_takes() -> None:
    asked = [sys.executable, "-m", "pyspark_ottla.bundle"]
    found = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert found.returncode == 1
    assert "for spark.archives" in found.stderr
