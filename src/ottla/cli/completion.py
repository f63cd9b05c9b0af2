"""`ottla completion`: a script that lets a shell complete commands and options."""

from typing import Literal

from ottla.cli.output import print_line

Shell = Literal["bash", "zsh", "fish"]


def completion(shell: Shell, /) -> None:
    """Print a completion script for a shell.

    Args:
        shell: The shell to print it for.
    """
    from ottla.cli.main import app

    print_line(app.generate_completion(prog_name="ottla", shell=shell))
