from dataclasses import replace

import pytest

from pyspark_ottla.pipeline.shape import Shape, find_changes

BEFORE = Shape(
    sources=[["orders", "orders"]],
    state=["Aggregate by window(60)"],
    columns={"customer": "string", "amount": "double"},
    sink={"kind": "topic", "target": "totals", "mode": "append", "key": "customer"},
    steps={"per_minute": "select customer\nfrom orders\ngroup by window(at, '1 minute')"},
)
FIVE = {"per_minute": BEFORE.steps["per_minute"].replace("1 minute", "5 minutes")}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"state": ["Aggregate by window(300)"], "steps": FIVE},
            "its state was made by another query (step per_minute had"
            " \"group by window(at, '1 minute')\" and has \"group by window(at, '5 minutes')\")",
        ),
        ({"state": ["Aggregate", "Join"]}, "its state was made by another query"),
        (
            {"sources": [["payments", "payments"], ["orders", "orders"]]},
            "it read orders and now reads payments, orders, so the offsets of its checkpoint do"
            " not fit",
        ),
        (
            {"sources": [["orders", "taps"]]},
            "source orders no longer reads orders, whose offsets are then forgotten",
        ),
        (
            {"sink": BEFORE.sink | {"target": "sums"}},
            "it wrote to topic totals and now writes to topic sums: what was written stays in topic"
            " totals, and only what comes now goes to topic sums",
        ),
        ({"sink": BEFORE.sink | {"mode": "update"}}, "its mode was append and is update"),
        ({"sink": BEFORE.sink | {"key": ""}}, "its key was customer and is none"),
    ],
)
def test_what_does_not_go_with_the_checkpoint(changes: dict[str, object], message: str) -> None:
    found = find_changes(BEFORE, replace(BEFORE, **changes))  # type: ignore[arg-type]
    assert [change.message for change in found if not change.is_safe] == [message]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"columns": BEFORE.columns | {"city": "string"}}, "new column city string"),
        ({"columns": {"customer": "string"}}, "column amount is gone"),
        (
            {"columns": BEFORE.columns | {"amount": "int"}},
            "column amount was double and is int",
        ),
        (
            {"sources": [["orders", "orders", "taps"]]},
            "source orders reads taps as well, from the beginning",
        ),
        ({"steps": FIVE}, None),
    ],
)
def test_what_goes_on(changes: dict[str, object], message: str | None) -> None:
    found = find_changes(BEFORE, replace(BEFORE, **changes))  # type: ignore[arg-type]
    assert [change.message for change in found] == ([message] if message else [])
    assert all(change.is_safe for change in found)
