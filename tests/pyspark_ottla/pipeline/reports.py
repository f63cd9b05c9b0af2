"""Batch reports in Spark's format."""

from typing import Any


def report(batch_id: int = 0, *, rows: int = 100, **changes: Any) -> dict[str, Any]:
    return {
        "timestamp": f"2026-01-01T00:00:{batch_id:02}.000Z",
        "batchId": batch_id,
        "durationMs": {"triggerExecution": 500},
        "sources": [
            {
                "numInputRows": rows,
                "endOffset": '{"orders": {"0": 60, "1": 40}}',
                "latestOffset": '{"orders": {"0": 70, "1": 45, "2": 5}}',
            }
        ],
        "stateOperators": [{"numRowsTotal": 7, "memoryUsedBytes": 4096}],
        "observedMetrics": {
            "rows.out": {"rows": 30},
            "expect.orders": {"positive": 4, "_bad_value": 1},
        },
    } | changes
