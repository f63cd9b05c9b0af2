import subprocess
import sys

from tests.fork_server import REPOSITORY

UNPATCHED = """
import gc, zipimport
import pyspark.util
before = zipimport.zipimporter.invalidate_caches, pyspark.util.local_connect_and_auth
import pyspark_ottla
after = zipimport.zipimporter.invalidate_caches, pyspark.util.local_connect_and_auth
print(before == after, gc.get_freeze_count())
"""


def test_an_import_patches_nothing() -> None:
    printed = subprocess.run(
        [sys.executable, "-c", UNPATCHED],
        env={"PYTHONPATH": str(REPOSITORY / "src")},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert printed == "True 0\n"
