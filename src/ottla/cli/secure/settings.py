"""The files of `ottla secure init`, and how each client library spells the same login."""

import ipaddress
from pathlib import Path
from typing import Final

from ottla.network.security_config import STANDARD_AUTHORIZER
from ottla.protocol.addresses import Address

NODES_USER: Final = "ottla-node"
_RULES: Final = f"RULE:^CN=[^,]*,OU=ottla-nodes$/{NODES_USER}/,DEFAULT"
_LOGIN_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"


def _listening(host: str) -> str:
    """On all interfaces, but for loopback addresses: each may be a node of the same machine."""
    try:
        is_loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_loopback = False
    return host if is_loopback else ""


def broker_yaml(node_id: int, host: str, port: int, first: str | None) -> str:
    """`first` is the node that the others join; None for that one."""
    join = (
        ""
        if first is None
        else f"controller.quorum.bootstrap.servers: {Address(first, port + 1)}\n"
    )
    own = _listening(host)
    return f"""\
# Made by `ottla secure init`. Files are found beside this one.
node.id: {node_id}

# Clients log in on the first listener; nodes show each other their certificates on the second.
listeners: SASL_SSL://{Address(own, port)},NODES://{Address(own, port + 1)}
advertised.listeners: SASL_SSL://{Address(host, port)},NODES://{Address(host, port + 1)}
listener.security.protocol.map: SASL_SSL:SASL_SSL,NODES:SSL
inter.broker.listener.name: NODES
{join}
ssl.keystore.location: node.pem
ssl.truststore.location: ca.pem
listener.name.nodes.ssl.client.auth: required
listener.name.nodes.ssl.principal.mapping.rules: "{_RULES}"
sasl.enabled.mechanisms: SCRAM-SHA-512,SCRAM-SHA-256,PLAIN
# Who may do what: everything for the administrator and the nodes, for others what ACLs say.
authorizer.class.name: {STANDARD_AUTHORIZER}
super.users: User:admin;User:{NODES_USER}
initial.users.file: users.json

log.dirs: data
"""


def client_properties(host: str, port: int, user: str, password: str) -> str:
    """For Java, Kafka's tools and --command-config."""
    login = f'{_LOGIN_MODULE} required username="{user}" password="{password}";'
    return f"""\
bootstrap.servers={Address(host, port)}
security.protocol=SASL_SSL
sasl.mechanism=SCRAM-SHA-512
sasl.jaas.config={login}
ssl.truststore.type=PEM
ssl.truststore.location=ca.pem
"""


def client_settings(directory: Path, host: str, port: int, user: str) -> str:
    """For a person to copy; the password is in a file, and not printed."""
    server, folder = Address(host, port), directory.absolute()
    return f"""
The password of {user} is in {folder}/admin.password.

ottla command:
  ottla topics list --command-config {folder}/admin.properties

Java, and Kafka's tools (--command-config); run them in {folder}:
  {folder}/admin.properties

confluent-kafka:
  {{"bootstrap.servers": "{server}", "security.protocol": "SASL_SSL",
   "sasl.mechanism": "SCRAM-SHA-512", "sasl.username": "{user}", "sasl.password": PASSWORD,
   "ssl.ca.location": "{folder}/ca.pem"}}

kafka-python:
  bootstrap_servers="{server}", security_protocol="SASL_SSL", sasl_mechanism="SCRAM-SHA-512",
  sasl_plain_username="{user}", sasl_plain_password=PASSWORD, ssl_cafile="{folder}/ca.pem"

aiokafka:
  bootstrap_servers="{server}", security_protocol="SASL_SSL", sasl_mechanism="SCRAM-SHA-512",
  sasl_plain_username="{user}", sasl_plain_password=PASSWORD,
  ssl_context=ssl.create_default_context(cafile="{folder}/ca.pem")

Spark (format "ottla"):
  .option("kafka.bootstrap.servers", "{server}").option("kafka.security.protocol", "SASL_SSL")
  .option("kafka.sasl.mechanism", "SCRAM-SHA-512").option("kafka.sasl.username", "{user}")
  .option("kafka.sasl.password", PASSWORD).option("kafka.ssl.truststore.type", "PEM")
  .option("kafka.ssl.truststore.location", "{folder}/ca.pem")
"""
