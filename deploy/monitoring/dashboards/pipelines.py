"""Pipelines: Spark pipelines."""

from typing import Final

from deploy.monitoring.dashboards.panels import Dashboard, Panel

PIPELINES: Final = Dashboard(
    "ottla-pipelines",
    "Ottla: Spark pipelines",
    (
        Panel(
            "Running and failed",
            "1 while a sink's query runs; 1 after it failed.",
            {
                "{{pipeline}} {{sink}}, running": "ottla_pipeline_running",
                "{{pipeline}} {{sink}}, failed": "ottla_pipeline_failed",
            },
            alert="OttlaPipelineFailed",
            needs="pipelines",
        ),
        Panel(
            "Rows in and out",
            "Per second.",
            {
                "{{pipeline}} {{sink}}, in": "rate(ottla_pipeline_rows_in_total[$interval])",
                "{{pipeline}} {{sink}}, out": "rate(ottla_pipeline_rows_out_total[$interval])",
            },
            "cps",
            needs="pipelines",
        ),
        Panel(
            "Lag in records",
            "Records in the topics that a sink's query has not read yet.",
            {"{{pipeline}} {{sink}}": "ottla_pipeline_lag_records"},
            alert="OttlaGroupLag",
            needs="pipelines",
        ),
        Panel(
            "Batch",
            "Duration of the last batch.",
            {"{{pipeline}} {{sink}}": "ottla_pipeline_batch_duration_seconds"},
            "s",
            needs="pipelines",
        ),
        Panel(
            "State",
            "Memory used by the state of steps.",
            {"{{pipeline}} {{sink}}": "ottla_pipeline_state_bytes"},
            "bytes",
            needs="pipelines",
        ),
        Panel(
            "Refused rows",
            "Rows that fail an expectation, per second.",
            {
                "{{pipeline}} {{dataset}} {{expectation}}": (
                    "rate(ottla_pipeline_rows_refused_total[$interval])"
                )
            },
            "cps",
            needs="pipelines",
        ),
    ),
)
