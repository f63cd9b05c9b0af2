"""`ottla backup` and what is below it."""

import sys

from cyclopts import App

from ottla.cli.backups.backup import backup
from ottla.cli.backups.prune import prune
from ottla.cli.backups.runs import list_runs
from ottla.cli.backups.verify import verify
from ottla.cli.examples import EXAMPLES
from ottla.cli.help_format import PlainHelp

backup_app = App(
    name="backup",
    help="Copy topics, groups, configs, ACLs and quotas into a directory or an object store.",
    help_formatter=None if sys.stdout.isatty() else PlainHelp(),
    help_epilogue=f"Example: {EXAMPLES['backup']}",
)
backup_app.default(backup)
for _name, _command, _text in (
    ("verify", verify, "Compare a backup with its checksums."),
    ("list", list_runs, "List the runs of a backup."),
    ("prune", prune, "Forget old runs of a backup, and remove what only they had."),
):
    _example = EXAMPLES[f"backup {_name}"]
    backup_app.command(_command, name=_name, help=_text, help_epilogue=f"Example: {_example}")
