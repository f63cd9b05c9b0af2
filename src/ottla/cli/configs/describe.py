"""`ottla configs describe`: configuration values and where they come from."""

from typing import Final

from kio.schema.describe_configs.v4.response import DescribeConfigsResourceResult

from ottla.cli.broker_call import BrokerCall, bootstrap_broker, check
from ottla.cli.broker_configs import describe_configs
from ottla.cli.configs.resource import NO_SUBJECT, Subject
from ottla.cli.connection import DEFAULT_CONNECTION, Connection
from ottla.cli.errors import CommandError
from ottla.cli.output import print_json, print_line, print_rows
from ottla.cli.parameters import AsJson, Flag

_DEFAULT: Final = 5
_SOURCES: Final = {
    1: "dynamic_topic_config",
    2: "dynamic_broker_config",
    3: "dynamic_default_broker_config",
    4: "static_broker_config",
    _DEFAULT: "default_config",
    7: "dynamic_client_metrics_config",
    8: "group_config",
}


def describe(
    *,
    subject: Subject = NO_SUBJECT,
    all_: Flag = False,
    connection: Connection = DEFAULT_CONNECTION,
    as_json: AsJson = False,
) -> None:
    """Show configuration values.

    Args:
        all_: Also show keys with their default value.
    """
    subject.resource()  # What is wrong with it is told before a broker is asked.
    with bootstrap_broker(connection) as broker:
        configs = described(broker, subject)
    rows = [
        _row(configs[name])
        for name in sorted(configs)
        if all_ or configs[name].config_source != _DEFAULT
    ]
    if as_json:
        print_json(rows)
    elif rows:
        print_rows(("key", "value", "source"), rows)
    else:
        print_line(f"only defaults for {subject}; --all shows them")


def described(broker: BrokerCall, subject: Subject) -> dict[str, DescribeConfigsResourceResult]:
    """By key. A broker is asked itself: nobody else knows what its file and environment say."""
    if subject.broker is None or subject.broker == broker.node_id:
        kind, name = subject.resource()
        (result,) = describe_configs(broker, kind, [name])
        check(result.error_code, str(subject), result.error_message)
        return {config.name: config for config in result.configs}
    node = broker.node(subject.broker)
    if node.fenced:
        raise CommandError(
            f"node {node.node_id} is not running, and only it knows its configuration; start it, or"
            " see what is set for all nodes with --all-brokers"
        )
    with broker.beside(node) as own:
        return described(own, subject)


def _row(config: DescribeConfigsResourceResult) -> dict[str, object]:
    return {
        "key": config.name,
        "value": "(hidden)" if config.is_sensitive else config.value,
        "source": _SOURCES.get(config.config_source, "unknown_config"),
        "read_only": config.read_only,
    }
