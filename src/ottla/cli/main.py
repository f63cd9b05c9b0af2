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


def _group(name: str, text: str) -> App:
    return App(name=name, help=text, help_formatter=app.help_formatter)


def _command(parent: App, path: str, *, help: str, name: str | None = None) -> None:  # noqa: A002
    name = name or path.rpartition(":")[2].replace("_", "-")
    words = name if parent is app else f"{parent.name[0]} {name}"
    parent.command(path, name=name, help=help, help_epilogue=f"Example: {EXAMPLES[words]}")


app = App(
    name="ottla",
    version=__version__,
    help="A distributed message queue that speaks the Kafka protocol.",
    help_formatter=None if sys.stdout.isatty() else PlainHelp(),
    default_parameter=Parameter(negative=()),
)

_command(app, "ottla.cli.serve:serve", help="Start a broker.")
_command(app, "ottla.cli.gateway:gateway", help="Serve a cluster over HTTP.")
_command(app, "ottla.cli.produce:produce", help="Write records to a topic.")
_command(app, "ottla.cli.consume:consume", help="Read records of a topic.")
_command(app, "ottla.cli.dump:dump", help="Print log segments and indexes, offline.")

_command(
    app,
    "ottla.cli.probe:probe",
    help="Send records through every broker and back; report loss and latency.",
)

_command(
    app,
    "ottla.cli.doctor.doctor:doctor",
    help="Find problems, how bad they are, and how to repair them.",
)
_command(app, "ottla.cli.top:top", help="Watch nodes, topics and groups live.")

_command(
    app, "ottla.cli.rebalance:rebalance", help="Spread replicas and leaders evenly over the nodes."
)

_command(
    app, "ottla.cli.completion:completion", help="Print a completion script for bash, zsh or fish."
)

app.command(
    "ottla.cli.backups.app:backup_app",
    name="backup",
    help="Back up a cluster to a directory or an object store.",
)
_command(
    app,
    "ottla.cli.backups.restore:restore",
    help="Restore topics from a backup, with the same offsets.",
)

_command(
    app,
    "ottla.cli.backups.migrate:migrate",
    help="Move topics from a running Kafka cluster, with the same offsets.",
)

cluster = _group("cluster", "See whether a cluster is healthy, or try one out on this machine.")
_command(cluster, "ottla.cli.cluster.status:status", help="Show whether the cluster is healthy.")
_command(cluster, "ottla.cli.cluster.up:up", help="Start a cluster on this machine.")
app.command(cluster)

features = _group("features", "Show and raise the feature levels of a cluster.")
_command(
    features,
    "ottla.cli.features.list:list_features",
    name="list",
    help="List the features and their levels.",
)
_command(features, "ottla.cli.features.upgrade:upgrade", help="Raise features to a new level.")
app.command(features)

profile = _group("profile", "Name clusters, and choose the one to talk to.")
_command(profile, "ottla.cli.profiles.add:add", help="Add a named cluster.")
_command(profile, "ottla.cli.profiles.use:use", help="Choose the profile to use.")
_command(profile, "ottla.cli.profiles.list:list_profiles", name="list", help="List the profiles.")
_command(profile, "ottla.cli.profiles.remove:remove", help="Delete a profile.")
app.command(profile)

secure = _group("secure", "Create certificates and the configuration of a secured cluster.")
_command(secure, "ottla.cli.secure.init:init", help="Secure a cluster, or add nodes to it.")
_command(secure, "ottla.cli.secure.renew:renew", help="Renew the certificates of nodes.")
app.command(secure)

service = _group("service", "Run a broker as a service of this machine.")
_command(service, "ottla.cli.service.install:install", help="Write a systemd unit for a broker.")
app.command(service)

users = _group("users", "List, add and remove the users of a cluster.")
_command(users, "ottla.cli.users.list:list_users", name="list", help="List the users.")
_command(users, "ottla.cli.users.add:add", help="Add a user, or change a password.")
_command(users, "ottla.cli.users.remove:remove", help="Remove a user.")
app.command(users)

tokens = _group("tokens", "Create, list, renew and expire delegation tokens.")
_command(tokens, "ottla.cli.tokens.list:list_tokens", name="list", help="List the tokens.")
_command(tokens, "ottla.cli.tokens.create:create", help="Create a token to log in with.")
_command(tokens, "ottla.cli.tokens.renew:renew", help="Renew a token.")
_command(tokens, "ottla.cli.tokens.expire:expire", help="Expire a token, now or later.")
app.command(tokens)

acls = _group("acls", "List, add and remove access control entries: who may do what.")
_command(acls, "ottla.cli.acls.list:list_acls", name="list", help="List who may do what.")
_command(acls, "ottla.cli.acls.add:add", help="Allow or deny operations on resources.")
_command(acls, "ottla.cli.acls.remove:remove", help="Remove access control entries.")
app.command(acls)

quotas = _group("quotas", "List, set and remove the quotas of clients.")
_command(quotas, "ottla.cli.quotas.list:list_quotas", name="list", help="List the quotas.")
_command(quotas, "ottla.cli.quotas.set:set_quotas", name="set", help="Set quotas.")
_command(quotas, "ottla.cli.quotas.remove:remove", help="Remove quotas.")
app.command(quotas)

node = _group("node", "List, drain, undrain and remove the nodes of a cluster.")
_command(
    node, "ottla.cli.nodes.list:list_nodes", name="list", help="List the nodes of the cluster."
)
_command(node, "ottla.cli.nodes.drain:drain", help="Move all replicas off a node.")
_command(node, "ottla.cli.nodes.undrain:undrain", help="Let a drained node take replicas again.")
_command(node, "ottla.cli.nodes.wait:wait", help="Wait until nodes are active and in sync.")
_command(node, "ottla.cli.nodes.remove:remove", help="Remove a stopped node from the cluster.")
app.command(node)

metadata = _group("metadata", "Repair the metadata of a cluster, offline.")
_command(
    metadata,
    "ottla.cli.metadata.recover:recover",
    help="Let one node continue when the other voters are lost.",
)
app.command(metadata)

reassignments = _group("reassignments", "Watch and cancel reassignments.")
_command(
    reassignments,
    "ottla.cli.reassignments.list:list_reassignments",
    name="list",
    help="List the reassignments in progress.",
)
_command(reassignments, "ottla.cli.reassignments.watch:watch", help="Show progress.")
_command(reassignments, "ottla.cli.reassignments.cancel:cancel", help="Cancel all reassignments.")
app.command(reassignments)

topics = _group("topics", "Create, list, describe, alter and delete topics.")
_command(topics, "ottla.cli.topics.create:create", help="Create a topic.")
_command(topics, "ottla.cli.topics.list:list_topics", name="list", help="List the topics.")
_command(
    topics, "ottla.cli.topics.describe:describe", help="Show partitions, offsets and replicas."
)
_command(
    topics, "ottla.cli.topics.unhealthy:unhealthy", help="Show only partitions with a problem."
)
_command(topics, "ottla.cli.topics.verify:verify", help="Compare the replicas of partitions.")
_command(topics, "ottla.cli.topics.disk:disk", help="Show the disk usage of each topic.")
_command(
    topics,
    "ottla.cli.topics.elect_leaders:elect_leaders",
    help="Elect the preferred leaders.",
)
_command(
    topics, "ottla.cli.topics.delete_records:delete_records", help="Remove the oldest records."
)
_command(topics, "ottla.cli.topics.alter:alter", help="Add partitions to a topic.")
_command(
    topics,
    "ottla.cli.topics.reassign:reassign_topic",
    name="reassign",
    help="Change the replicas of a topic.",
)
_command(topics, "ottla.cli.topics.delete:delete", help="Delete topics with all their records.")
app.command(topics)

configs = _group("configs", "Show and change the configuration of topics and brokers.")
_command(configs, "ottla.cli.configs.describe:describe", help="Show configuration values.")
_command(configs, "ottla.cli.configs.alter:alter", help="Change configuration values.")
app.command(configs)

groups = _group("groups", "List, describe, reset and delete consumer groups and share groups.")
_command(groups, "ottla.cli.groups.list:list_groups", name="list", help="List the groups.")
_command(groups, "ottla.cli.groups.describe:describe", help="Show members, offsets and lag.")
_command(groups, "ottla.cli.groups.lag:lag", help="Show the lag of every group.")
_command(
    groups, "ottla.cli.groups.reset_offsets:reset_offsets", help="Reset the offsets of a group."
)
_command(groups, "ottla.cli.groups.delete:delete", help="Delete a group and its offsets.")
app.command(groups)

transactions = _group("transactions", "List, describe and abort transactions.")
_command(
    transactions,
    "ottla.cli.transactions.list:list_transactions",
    name="list",
    help="List the transactional ids.",
)
_command(
    transactions,
    "ottla.cli.transactions.describe:describe",
    help="Show a transaction and its partitions.",
)
_command(
    transactions,
    "ottla.cli.transactions.hanging:hanging",
    help="Find hanging transactions.",
)
_command(
    transactions,
    "ottla.cli.transactions.abort:abort",
    help="Abort the open transaction of a producer.",
)
app.command(transactions)

pipeline = _group("pipeline", "Check and run pipelines on Spark.")
_command(pipeline, "ottla.cli.pipelines.init:init", help="Write a first pipeline for a topic.")
_command(pipeline, "ottla.cli.pipelines.run:run", help="Run a pipeline.")
_command(
    pipeline,
    "ottla.cli.pipelines.group:group",
    help="Run several pipelines, and restart those that fail.",
)
_command(
    pipeline,
    "ottla.cli.pipelines.status:status",
    help="Show which pipelines run, and their progress.",
)
_command(
    pipeline, "ottla.cli.pipelines.validate:validate", help="Find what is wrong with a pipeline."
)
_command(
    pipeline,
    "ottla.cli.pipelines.preview:preview",
    help="Run every step on a few records, and print what comes out.",
)
_command(
    pipeline,
    "ottla.cli.pipelines.run_tests:run_tests",
    name="test",
    help="Run the tests of pipelines.",
)
_command(pipeline, "ottla.cli.pipelines.graph:graph", help="Draw a pipeline, in text or as SVG.")
_command(
    pipeline,
    "ottla.cli.pipelines.plan:plan",
    help="Show what the next run would do, and what has changed since the last.",
)
_command(
    pipeline,
    "ottla.cli.pipelines.backfill:backfill",
    help="Replay a range into a sink, without duplicates.",
)
_command(pipeline, "ottla.cli.pipelines.reset:reset", help="Restart a pipeline from any offset.")
_command(
    pipeline,
    "ottla.cli.pipelines.declarative:declarative",
    help="Run a Spark Declarative Pipelines project.",
)
app.command(pipeline)

table = _group("table", "Topics as Delta and Iceberg tables.")
_command(table, "ottla.cli.tables.sync:sync", help="Copy the records of a topic into a table.")
_command(table, "ottla.cli.tables.versions:versions", help="List the latest versions of a table.")
_command(table, "ottla.cli.tables.at:at", help="Find the version that has a record.")
_command(table, "ottla.cli.tables.check:check", help="Prove that a table has every record once.")
_command(table, "ottla.cli.tables.compact:compact", help="Merge small files into larger ones.")
_command(table, "ottla.cli.tables.vacuum:vacuum", help="Remove files that no version needs.")
app.command(table)

demo = _group("demo", "Three nodes under load: kill one, lose nothing.")
demo.default(failover)
demo.help_epilogue = f"Example: {EXAMPLES['demo']}"
_command(
    demo, "ottla.cli.demo.pipeline:pipeline", help="A broker, a load and a pipeline that counts it."
)
app.command(demo)


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
