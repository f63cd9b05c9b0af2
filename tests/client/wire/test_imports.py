import subprocess
import sys

import pytest


@pytest.mark.parametrize("module", ["ottla.client.wire.cluster", "pyspark_ottla.stream_reader"])
def test_importing_it_loads_no_hypothesis(module: str) -> None:
    """Kio would, if it is installed: as long a wait as for all else a Python worker imports."""
    program = f"import sys, {module}; print('kio' in sys.modules, 'hypothesis' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "True False\n"
