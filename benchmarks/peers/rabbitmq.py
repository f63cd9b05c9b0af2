"""RabbitMQ, one node, from Debian's packages, which are unpacked and not installed.

Queues are durable and messages persistent: a confirmed message is synced. Acknowledgements are
neither confirmed nor synced, which is in its favor.
"""

import shlex
from pathlib import Path

from benchmarks.debian import unpack
from benchmarks.peers.guest import Guest
from benchmarks.peers.peer import Flush, Unavailable
from benchmarks.processes import free_port

ERLANG = ("base", "crypto", "eldap", "inets", "mnesia", "os-mon", "parsetools", "public-key")
ERLANG_MORE = ("runtime-tools", "ssl", "syntax-tools", "tools", "xmerl", "asn1")
DEBIAN_ROOT = "/usr/lib/erlang"
# Erlang's name server would stay behind as a daemon; here it ends with the broker.
SCRIPT = """\
epmd & names=$!
trap 'kill $broker; wait $broker' TERM
{server} & broker=$!
wait $broker
kill $names
"""


class RabbitMq(Guest):
    name = "rabbitmq"

    def __init__(self) -> None:
        self._home = Path()

    def prepare(self, cache: Path) -> None:
        self._home = cache / "rabbitmq"
        if (self._home / "ready").exists():
            return
        unpack(self._home, "rabbitmq-server", *(f"erlang-{part}" for part in ERLANG + ERLANG_MORE))
        root = self._home / "usr" / "lib" / "erlang"
        start = root / "bin" / "erl"
        start.write_text(start.read_text().replace(DEBIAN_ROOT, str(root)))
        (self._home / "ready").touch()

    def settings(self) -> dict[str, str]:
        version = self._server().parents[1].name.rpartition("-")[2]
        return {"RabbitMQ": f"{version}, a durable queue with persistent messages, defaults"}

    def command(self, directory: Path, port: int, flush: Flush) -> list[str]:
        del flush  # Confirmed messages are synced.
        (erlang,) = (self._home / "usr" / "lib" / "erlang").glob("erts-*")
        settings = {
            "PATH": f"{erlang.parent / 'bin'}:{erlang / 'bin'}:/usr/bin:/bin",
            "HOME": directory,  # For the cookie.
            "ERL_EPMD_PORT": free_port(),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODENAME": "bench@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": port,
            "RABBITMQ_DIST_PORT": free_port(),
            "RABBITMQ_MNESIA_BASE": directory,
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_LOG_BASE": directory,
            "RABBITMQ_CONFIG_FILE": directory / "rabbitmq",
            "RABBITMQ_ENABLED_PLUGINS_FILE": directory / "plugins",
        }
        words = [f"{name}={value}" for name, value in settings.items()]
        script = SCRIPT.format(server=shlex.quote(str(self._server())))
        return ["env", *words, "sh", "-c", script]

    def _server(self) -> Path:
        for found in self._home.glob("usr/lib/rabbitmq/lib/*/sbin/rabbitmq-server"):
            return found
        raise Unavailable("RabbitMQ's package has no server")
