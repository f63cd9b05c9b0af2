"""A small part of what `python -m tests.network.attack` does for a million frames.

And of `python -m tests.network.tls_attack`.
"""

from pathlib import Path

import pytest
from tests.network import tls_attack
from tests.network.attack import attack
from tests.network.peer import Run


@pytest.mark.parametrize("seed", [1, 2])
def test_fuzzed_frames_get_nobody_in_and_leave_nothing_behind(run: Run, seed: int) -> None:
    async def main() -> None:
        report = await attack(1_000, seed)
        assert report.sent >= 1_000
        assert report.refused["authentication failed"] > 0

    run(main())


@pytest.mark.parametrize("seed", [1, 2])
def test_wrong_bytes_in_and_around_handshakes_leave_nothing_behind(
    run: Run, seed: int, tmp_path: Path
) -> None:
    async def main() -> None:
        report = await tls_attack.attack(300, seed, tmp_path)
        assert 0 < report.served < report.connections
        assert report.refused["handshake failed"] > 0

    run(main())
