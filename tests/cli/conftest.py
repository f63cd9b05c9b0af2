import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ottla.cli.main import run


class Outcome(NamedTuple):
    exit_code: int
    output: str
    errors: str

    @property
    def json(self) -> Any:
        return json.loads(self.output)


Ottla = Callable[..., Outcome]


@pytest.fixture
def ottla(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Ottla:
    """Run a command in this process: `ottla("topics", "list", stdin="")`."""

    def call(*arguments: str | Path, bootstrap: str | None = None, stdin: str = "") -> Outcome:
        monkeypatch.delenv("OTTLA_BOOTSTRAP_SERVER", raising=False)
        if bootstrap:
            monkeypatch.setenv("OTTLA_BOOTSTRAP_SERVER", bootstrap)
        (tmp_path / "stdin").write_text(stdin)
        with (tmp_path / "stdin").open() as opened:
            monkeypatch.setattr(sys, "stdin", opened)
            exit_code = run([str(argument) for argument in arguments])
        return Outcome(exit_code, *capfd.readouterr())

    return call
