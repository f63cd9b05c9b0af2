"""Help for where no terminal draws it: plain lines, whose continuations are indented further."""

import textwrap
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cyclopts.help.formatters.plain import PlainFormatter

_CONTINUATION = " " * 8


class PlainHelp:
    """cyclopts' plain help, loaded when it is asked for: it imports rich."""

    def __call__(self, console: Any, options: Any, panel: Any) -> None:
        _formatter()(console, options, panel)

    def render_usage(self, console: Any, options: Any, usage: Any) -> None:
        _formatter().render_usage(console, options, usage)

    def render_description(self, console: Any, options: Any, description: Any) -> None:
        _formatter().render_description(console, options, description)


def _formatter() -> "PlainFormatter":
    from cyclopts.help.formatters.plain import PlainFormatter

    class Hanging(PlainFormatter):
        """A continuation at the margin would look like an option of its own."""

        def _print_plain(self, console: Any, text: str) -> None:
            if text.startswith(self.indent):
                text = textwrap.fill(
                    " ".join(text.split()),  # It comes wrapped and padded where it was long.
                    console.width,
                    initial_indent=self.indent,
                    subsequent_indent=_CONTINUATION,
                    break_on_hyphens=False,
                    break_long_words=False,
                )
            super()._print_plain(console, text)

    return Hanging()
