"""The keys of a batch's records, as numbers: enough to tell which records share one."""

from ottla.records.batch import Buffer
from ottla.records.decoder import iterate_records
from ottla.records.errors import RecordError


def key_numbers(content: Buffer, position: int) -> dict[int, int]:
    """By offset, for records with a key; empty for an unreadable batch.

    Different keys can have the same number. Numbers are valid only in this process.
    """
    try:
        return {
            record.offset: hash(record.key)
            for record in iterate_records(content, position)
            if record.key is not None
        }
    except RecordError:
        return {}
