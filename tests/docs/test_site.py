"""The documents become a site in which every link is valid."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", directory],
        cwd=REPOSITORY,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return directory


@pytest.mark.process
def test_the_site_is_built_strictly(site: Path) -> None:
    assert "A cluster" in (site / "index.html").read_text()
    assert "linger_ms" in (site / "api.html").read_text()
    assert (site / "repository" / "config" / "broker.yaml.txt").exists()
    pages = " ".join(path.read_text() for path in site.glob("*.html"))
    assert "fonts.googleapis.com" not in pages
