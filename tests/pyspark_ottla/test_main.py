import os
import subprocess
import sys
from pathlib import Path

import pytest

from pyspark_ottla.__main__ import main
from pyspark_ottla.python import wrap_python


def test_a_script_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"there is no script .*missing\.py; usage: python -m"):
        main([str(tmp_path / "missing.py")])


@pytest.mark.parametrize("arguments", [[], ["--help"]])
def test_usage(arguments: list[str]) -> None:
    with pytest.raises(SystemExit, match="usage: python -m pyspark_ottla SCRIPT"):
        main(arguments)


def test_the_script_gets_its_arguments_and_the_python_of_the_workers(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import os, sys\n"
        "print(sys.argv[1:], sys.path[0] == os.path.dirname(__file__))\n"
        "print(os.environ['PYSPARK_PYTHON'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pyspark_ottla", script, "--rows", "3"],
        env={name: value for name, value in os.environ.items() if name != "PYSPARK_PYTHON"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == ["['--rows', '3'] True", str(wrap_python())]
