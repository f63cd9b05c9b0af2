from pathlib import Path

import pytest
from tests.controller.scenario import Scenario
from tests.kits.scenarios import check_scenario, scenario_files


@pytest.mark.parametrize("path", scenario_files(__file__), ids=lambda path: path.stem)
def test_scenario(path: Path) -> None:
    check_scenario(Scenario(), path)
