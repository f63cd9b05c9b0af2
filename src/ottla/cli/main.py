"""The `ottla` command."""

from cyclopts import App

app = App(name="ottla", help="A distributed message queue that speaks the Kafka protocol.")


def main() -> None:
    app()
