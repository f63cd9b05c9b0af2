"""The `ottla` command: the tree of commands, and the one place where errors become exit codes.

Commands are named by import path and loaded when they are called, so that `ottla serve` pays for
neither rich nor the client library.
"""

import os
import sys
from collections.abc import Sequence

from cyclopts import App, CycloptsError, Parameter

from ottla import __version__
from ottla.cli.demo.failover import failover
from ottla.cli.errors import CommandError, ExitCode, ManyErrors
from ottla.cli.examples import EXAMPLES
from ottla.cli.help_format import PlainHelp


def _commands(parent: App, **commands: tuple[str, str]) -> None:
    """The path below `ottla.cli` and the help of each command, by name."""
    for key, (path, text) in commands.items():
        name = key.replace("_", "-")
        words = name if parent is app else f"{parent.name[0]} {name}"
        epilogue = f"Example: {EXAMPLES[words]}"
        parent.command(f"ottla.cli.{path}", name=name, help=text, help_epilogue=epilogue)


def _group(name: str, text: str, **commands: tuple[str, str]) -> App:
    group = App(name=name, help=text, help_formatter=app.help_formatter)
    _commands(group, **commands)
    app.command(group)
    return group


app = App(
    name="ottla",
    version=__version__,
    help="A distributed message queue that speaks the Kafka protocol.",
    help_formatter=None if sys.stdout.isatty() else PlainHelp(),
    default_parameter=Parameter(negative=()),
)

_commands(
    app,
    serve=("serve:serve", "Start a broker."),
    gateway=("gateway:gateway", "Serve a cluster over HTTP."),
    produce=("produce:produce", "Write records to a topic."),
    consume=("consume:consume", "Read records of a topic."),
    dump=("dump:dump", "Print log segments and indexes, offline."),
    probe=("probe:probe", "Send records through every broker and back; report loss and latency."),
    doctor=("doctor.doctor:doctor", "Find problems, how bad they are, and how to repair them."),
    top=("top:top", "Watch nodes, topics and groups live."),
    rebalance=("rebalance:rebalance", "Spread replicas and leaders evenly over the nodes."),
    completion=("completion:completion", "Print a completion script for bash, zsh or fish."),
    restore=("backups.restore:restore", "Restore topics from a backup, with the same offsets."),
    migrate=(
        "backups.migrate:migrate",
        "Move topics from a running Kafka cluster, with the same offsets.",
    ),
)
app.command(
    "ottla.cli.backups.app:backup_app",
    name="backup",
    help="Back up a cluster to a directory or an object store.",
)
_group(
    "cluster",
    "See whether a cluster is healthy, or try one out on this machine.",
    status=("cluster.status:status", "Show whether the cluster is healthy."),
    up=("cluster.up:up", "Start a cluster on this machine."),
)
_group(
    "features",
    "Show and raise the feature levels of a cluster.",
    list=("features.list:list_features", "List the features and their levels."),
    upgrade=("features.upgrade:upgrade", "Raise features to a new level."),
)
_group(
    "profile",
    "Name clusters, and choose the one to talk to.",
    add=("profiles.add:add", "Add a named cluster."),
    use=("profiles.use:use", "Choose the profile to use."),
    list=("profiles.list:list_profiles", "List the profiles."),
    remove=("profiles.remove:remove", "Delete a profile."),
)
_group(
    "secure",
    "Create certificates and the configuration of a secured cluster.",
    init=("secure.init:init", "Secure a cluster, or add nodes to it."),
    renew=("secure.renew:renew", "Renew the certificates of nodes."),
)
_group(
    "service",
    "Run a broker as a service of this machine.",
    install=("service.install:install", "Write a systemd unit for a broker."),
)
_group(
    "users",
    "List, add and remove the users of a cluster.",
    list=("users.list:list_users", "List the users."),
    add=("users.add:add", "Add a user, or change a password."),
    remove=("users.remove:remove", "Remove a user."),
)
_group(
    "tokens",
    "Create, list, renew and expire delegation tokens.",
    list=("tokens.list:list_tokens", "List the tokens."),
    create=("tokens.create:create", "Create a token to log in with."),
    renew=("tokens.renew:renew", "Renew a token."),
    expire=("tokens.expire:expire", "Expire a token, now or later."),
)
_group(
    "acls",
    "List, add and remove access control entries: who may do what.",
    list=("acls.list:list_acls", "List who may do what."),
    add=("acls.add:add", "Allow or deny operations on resources."),
    remove=("acls.remove:remove", "Remove access control entries."),
)
_group(
    "quotas",
    "List, set and remove the quotas of clients.",
    list=("quotas.list:list_quotas", "List the quotas."),
    set=("quotas.set:set_quotas", "Set quotas."),
    remove=("quotas.remove:remove", "Remove quotas."),
)
_group(
    "node",
    "List, drain, undrain and remove the nodes of a cluster.",
    list=("nodes.list:list_nodes", "List the nodes of the cluster."),
    drain=("nodes.drain:drain", "Move all replicas off a node."),
    undrain=("nodes.undrain:undrain", "Let a drained node take replicas again."),
    wait=("nodes.wait:wait", "Wait until nodes are active and in sync."),
    remove=("nodes.remove:remove", "Remove a stopped node from the cluster."),
)
_group(
    "metadata",
    "Repair the metadata of a cluster, offline.",
    recover=("metadata.recover:recover", "Let one node continue when the other voters are lost."),
)
_group(
    "reassignments",
    "Watch and cancel reassignments.",
    list=("reassignments.list:list_reassignments", "List the reassignments in progress."),
    watch=("reassignments.watch:watch", "Show progress."),
    cancel=("reassignments.cancel:cancel", "Cancel all reassignments."),
)
_group(
    "topics",
    "Create, list, describe, alter and delete topics.",
    create=("topics.create:create", "Create a topic."),
    list=("topics.list:list_topics", "List the topics."),
    describe=("topics.describe:describe", "Show partitions, offsets and replicas."),
    unhealthy=("topics.unhealthy:unhealthy", "Show only partitions with a problem."),
    verify=("topics.verify:verify", "Compare the replicas of partitions."),
    disk=("topics.disk:disk", "Show the disk usage of each topic."),
    elect_leaders=("topics.elect_leaders:elect_leaders", "Elect the preferred leaders."),
    delete_records=("topics.delete_records:delete_records", "Remove the oldest records."),
    alter=("topics.alter:alter", "Add partitions to a topic."),
    reassign=("topics.reassign:reassign_topic", "Change the replicas of a topic."),
    delete=("topics.delete:delete", "Delete topics with all their records."),
)
_group(
    "configs",
    "Show and change the configuration of topics and brokers.",
    describe=("configs.describe:describe", "Show configuration values."),
    alter=("configs.alter:alter", "Change configuration values."),
)
_group(
    "groups",
    "List, describe, reset and delete consumer groups and share groups.",
    list=("groups.list:list_groups", "List the groups."),
    describe=("groups.describe:describe", "Show members, offsets and lag."),
    lag=("groups.lag:lag", "Show the lag of every group."),
    reset_offsets=("groups.reset_offsets:reset_offsets", "Reset the offsets of a group."),
    delete=("groups.delete:delete", "Delete a group and its offsets."),
)
_group(
    "transactions",
    "List, describe and abort transactions.",
    list=("transactions.list:list_transactions", "List the transactional ids."),
    describe=("transactions.describe:describe", "Show a transaction and its partitions."),
    hanging=("transactions.hanging:hanging", "Find hanging transactions."),
    abort=("transactions.abort:abort", "Abort the open transaction of a producer."),
)
_group(
    "pipeline",
    "Check and run pipelines on Spark.",
    init=("pipelines.init:init", "Write a first pipeline for a topic."),
    run=("pipelines.run:run", "Run a pipeline."),
    group=("pipelines.group:group", "Run several pipelines, and restart those that fail."),
    status=("pipelines.status:status", "Show which pipelines run, and their progress."),
    validate=("pipelines.validate:validate", "Find what is wrong with a pipeline."),
    preview=(
        "pipelines.preview:preview",
        "Run every step on a few records, and print what comes out.",
    ),
    test=("pipelines.run_tests:run_tests", "Run the tests of pipelines."),
    graph=("pipelines.graph:graph", "Draw a pipeline, in text or as SVG."),
    plan=(
        "pipelines.plan:plan",
        "Show what the next run would do, and what has changed since the last.",
    ),
    backfill=("pipelines.backfill:backfill", "Replay a range into a sink, without duplicates."),
    reset=("pipelines.reset:reset", "Restart a pipeline from any offset."),
    declarative=("pipelines.declarative:declarative", "Run a Spark Declarative Pipelines project."),
)
_group(
    "table",
    "Topics as Delta and Iceberg tables.",
    sync=("tables.sync:sync", "Copy the records of a topic into a table."),
    versions=("tables.versions:versions", "List the latest versions of a table."),
    at=("tables.at:at", "Find the version that has a record."),
    check=("tables.check:check", "Prove that a table has every record once."),
    compact=("tables.compact:compact", "Merge small files into larger ones."),
    vacuum=("tables.vacuum:vacuum", "Remove files that no version needs."),
)

demo = _group(
    "demo",
    "Three nodes under load: kill one, lose nothing.",
    pipeline=("demo.pipeline:pipeline", "A broker, a load and a pipeline that counts it."),
)
demo.default(failover)
demo.help_epilogue = f"Example: {EXAMPLES['demo']}"


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code."""
    try:
        result = app(
            arguments, exit_on_error=False, print_error=False, result_action="return_value"
        )
        sys.stdout.flush()
    except CycloptsError as error:
        return _fail(f"{error} Try `{_command_of(arguments)} --help`.", ExitCode.USAGE)
    except ManyErrors as error:
        return max(_fail(message, error.exit_code) for message in error.messages)
    except CommandError as error:
        return _fail(str(error), error.exit_code)
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        _forget_stdout()
        return ExitCode.BROKEN_PIPE
    except OSError as error:  # Of a path that was given.
        where = "" if error.filename is None else f"{error.filename}: "
        return _fail(f"{where}{(error.strerror or str(error)).lower()}", ExitCode.FAILED)
    return result if isinstance(result, int) else ExitCode.OK


def main() -> None:
    sys.exit(run(sys.argv[1:]))


def _fail(message: str, exit_code: ExitCode) -> int:
    sys.stderr.write(f"ottla: {' '.join(message.split())}\n")
    return exit_code


def _command_of(arguments: Sequence[str]) -> str:
    chain, _, _ = app.parse_commands(arguments)
    return " ".join(("ottla", *chain))


def _forget_stdout() -> None:
    """The reader has gone; keep the interpreter from flushing to it once more at its end."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, sys.stdout.fileno())
