"""Updates what docs/compatibility.md says of the APIs:

python -m ottla.cli.api_reference docs/compatibility.md
"""

import sys
from pathlib import Path
from typing import Final

from kio.schema.index import api_key_map, schema_name_map

from ottla.handlers.api import Api, HotApi
from ottla.handlers.table import API_TABLE

_SERVED: Final = "| key | API | versions | in Kafka 4.3 |\n| --- | --- | --- | --- |\n"
_NOT_SERVED: Final = (
    "ApiVersions does not list these, and requests for them close the connection:\n\n"
)


def updated(document: str) -> str:
    before, table = document.split(_SERVED)
    between = table[table.index("\n\n") : table.index(_NOT_SERVED)]
    served = "\n".join(_row(API_TABLE[key]) for key in sorted(API_TABLE))
    others = (_camel(api_key_map[key]) for key in sorted(api_key_map) if key not in API_TABLE)
    return f"{before}{_SERVED}{served}{between}{_NOT_SERVED}{', '.join(others)}.\n"


def _row(api: Api) -> str:
    claim = ""
    if isinstance(api, HotApi) and api.claimed_low != api.low:
        claim = f" (claimed from {api.claimed_low})"
    kafka = "not in Kafka"
    if api.key in api_key_map:
        versions = sorted(schema_name_map[api_key_map[api.key]])
        kafka = _range(versions[0], versions[-1])
    return f"| {api.key} | {api.name} | {_range(api.low, api.high)}{claim} | {kafka} |"


def _range(low: int, high: int) -> str:
    return str(low) if low == high else f"{low}-{high}"


def _camel(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(updated(path.read_text()))
