import os
from pathlib import Path

import pytest
from tests.controller.scenario import Scenario, scenario_files


@pytest.mark.parametrize("path", scenario_files(), ids=lambda path: path.stem)
def test_scenario(path: Path) -> None:
    expected = path.read_text()

    actual = Scenario().run(expected)

    if os.environ.get("OTTLA_REWRITE_SCENARIOS"):
        path.write_text(actual)
    else:
        assert actual == expected
