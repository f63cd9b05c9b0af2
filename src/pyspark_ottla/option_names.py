"""Known option names, and options of Spark's Kafka source that do not apply here.

Spark passes option names in lower case, so they are looked up that way.
"""

import difflib
from collections.abc import Iterable, Mapping

# By lower-case prefix, with the message.
_REFUSED = {
    "kafka.sasl.": "of SASL there are kafka.sasl.mechanism, jaas.config, username and password",
    "kafka.ssl.": "of TLS there are kafka.ssl.truststore., keystore. and key. in PEM",
    "kafka.auto.offset.reset": "give startingOffsets instead; a restart resumes where it stopped",
    "kafka.enable.auto.commit": "offsets are in the checkpoint; commitGroup shows them to others",
    "kafka.group.id": "the source is in no group; commitGroup is the group to commit offsets for",
    "groupidprefix": "the source is in no group; commitGroup is the group to commit offsets for",
    "kafka.key.deserializer": "keys are bytes",
    "kafka.value.deserializer": "values are bytes; valueFormat is for json, avro and string",
    "kafka.interceptor.classes": "this source has no Java classes",
    "kafka.": "this setting of Java's client has no meaning here",
    "minoffsetspertrigger": "the source has no lower limit; leave it out",
    "maxtriggerdelay": "the source has no lower limit of offsets; leave it out",
    "kafkaconsumer.": "kafka.default.api.timeout.ms is how long the source tries",
    "fetchoffset.": "kafka.default.api.timeout.ms is how long the source tries",
}


_OF_A_TABLE = "provider"  # Added by Spark to the options of a catalog table.


class OptionError(ValueError):
    """An option is missing, unknown, wrong, or in conflict with another."""


def validate_names(options: Mapping[str, str], known: Iterable[str]) -> None:
    """Every name must be a known one, in any case."""
    by_lower = {name.lower(): name for name in known}
    lower = [name.lower() for name in options]
    if _OF_A_TABLE in lower:
        raise OptionError(
            "Spark does not hand the options of a table on to a source in Python;"
            " CREATE TEMPORARY VIEW ... USING ottla OPTIONS (...) is read with its options"
        )
    for given in lower:
        if given not in by_lower:
            raise OptionError(_unknown(given, by_lower))


def _unknown(given: str, by_lower: Mapping[str, str]) -> str:
    nearest = difflib.get_close_matches(given, by_lower, n=1, cutoff=0.75)
    if nearest:
        return f"there is no option {given}; did you mean {by_lower[nearest[0]]}?"
    for beginning, reason in _REFUSED.items():
        if given.startswith(beginning):
            return f"option {given}: {reason}"
    return f"there is no option {given}; there are {', '.join(sorted(by_lower.values()))}"
