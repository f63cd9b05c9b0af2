"""Pictures of the terminal for the documents: `python -m deploy.site.screenshots HOST:PORT`.

Runs commands at that cluster and draws what they print, as SVG in docs/images.
"""

import io
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.text import Text

IMAGES: Final = Path(__file__).parents[2] / "docs" / "images"
COMMANDS: Final = {"top": ("top", "--once"), "doctor": ("doctor",)}
_COLUMNS: Final = 92
_FONTS: Final = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)  # They live on another site.


def picture(title: str, text: str) -> str:
    console = Console(record=True, width=_COLUMNS, file=io.StringIO())
    console.print(Text(text.rstrip()))
    drawn = console.export_svg(title=title, unique_id="ottla")
    return _FONTS.sub("", drawn).replace("Fira Code", "ui-monospace")


def main(server: str) -> None:
    IMAGES.mkdir(exist_ok=True)
    for name, arguments in COMMANDS.items():
        command = [sys.executable, "-m", "ottla", *arguments, "-b", server]
        environment = {**os.environ, "COLUMNS": str(_COLUMNS)}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        path = IMAGES / f"{name}.svg"
        path.write_text(picture(f"ottla {' '.join(arguments)}", done.stdout))


if __name__ == "__main__":
    main(sys.argv[1])
