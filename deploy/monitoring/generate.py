"""Writes the rules for Prometheus and the dashboards for Grafana: `make monitoring`.

The source is alerts.py and dashboards/ next to this file; do not edit the output by hand.
"""

import json
from pathlib import Path
from typing import Any, Final

import yaml
from deploy.monitoring.alerts import ALERTS, Alert
from deploy.monitoring.dashboards.catalogue import DASHBOARDS
from deploy.monitoring.dashboards.panels import Dashboard, Panel

DIRECTORY: Final = Path(__file__).parent
_RUNBOOKS: Final = "docs/runbooks.md"
_SOURCE: Final = {"type": "prometheus", "uid": "${source}"}
_WIDTH: Final = 12  # A dashboard has 24 columns.
_HEIGHT: Final = 8


def files() -> dict[str, str]:
    """The generated files, by their path from this directory."""
    dashboards = {
        f"grafana/{each.uid}.json": json.dumps(_dashboard(each), indent=2) + "\n"
        for each in DASHBOARDS
    }
    rules = {"groups": [{"name": "ottla", "rules": [_rule(alert) for alert in ALERTS]}]}
    return {
        "prometheus/rules.yml": _yaml(rules),
        "prometheus/rules-test.yml": _yaml(_rule_tests()),
        **dashboards,
    }


def _yaml(document: object) -> str:
    head = "# Made by `make monitoring`; do not edit it by hand.\n"
    return head + str(yaml.safe_dump(document, sort_keys=False, width=100))


def _rule(alert: Alert) -> dict[str, Any]:
    return {
        "alert": alert.name,
        "expr": alert.expression,
        "for": alert.lasting,
        "labels": {"severity": alert.severity},
        "annotations": {
            "summary": alert.summary,
            "runbook": f"{_RUNBOOKS}#{alert.anchor}",
        },
    }


def _rule_tests() -> dict[str, Any]:
    return {
        "rule_files": ["rules.yml"],
        "evaluation_interval": "1m",
        "tests": [_rule_test(alert) for alert in ALERTS],
    }


def _rule_test(alert: Alert) -> dict[str, Any]:
    firing = f'count(ALERTS{{alertname="{alert.name}",alertstate="firing"}})'
    return {
        "name": alert.name,
        "interval": "1m",
        "input_series": [
            {"series": series, "values": values} for series, values in alert.example.items()
        ],
        "promql_expr_test": [
            {"expr": firing, "eval_time": "1m", "exp_samples": []},
            {
                "expr": firing,
                "eval_time": f"{alert.after_m}m",
                "exp_samples": [{"labels": "{}", "value": 1}],
            },
        ],
    }


def _dashboard(dashboard: Dashboard) -> dict[str, Any]:
    variables = [
        {"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus"},
        {
            "name": "runbooks",
            "label": "Address of the runbooks",
            "type": "textbox",
            "query": _RUNBOOKS,
            "current": {"text": _RUNBOOKS, "value": _RUNBOOKS},
        },
        *(_variable(name, metric) for name, metric in dashboard.variables.items()),
    ]
    return {
        "uid": dashboard.uid,
        "title": dashboard.title,
        "tags": ["ottla"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "15s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": variables},
        "links": [
            {"type": "dashboards", "title": "Ottla", "tags": ["ottla"], "asDropdown": True},
        ],
        "panels": [_panel(index, panel) for index, panel in enumerate(dashboard.panels)],
    }


def _variable(name: str, metric: str) -> dict[str, Any]:
    return {
        "name": name,
        "type": "query",
        "datasource": _SOURCE,
        "query": f"label_values({metric}, {name})",
        "refresh": 2,
        "includeAll": True,
        "multi": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
    }


def _panel(index: int, panel: Panel) -> dict[str, Any]:
    links = []
    if panel.alert:
        url = f"${{runbooks}}#{panel.alert.lower()}"
        links.append({"title": "What to do", "url": url, "targetBlank": True})
    return {
        "id": index + 1,
        "type": "timeseries",
        "title": panel.title,
        "description": panel.text,
        "datasource": _SOURCE,
        "gridPos": {
            "x": index % 2 * _WIDTH,
            "y": index // 2 * _HEIGHT,
            "w": _WIDTH,
            "h": _HEIGHT,
        },
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "options": {
            "legend": {"displayMode": "list", "placement": "bottom"},
            "tooltip": {"mode": "multi"},
        },
        "links": links,
        "targets": [
            {
                "refId": chr(ord("A") + number),
                "datasource": _SOURCE,
                "expr": expression.replace("$interval", "$__rate_interval"),
                "legendFormat": legend,
            }
            for number, (legend, expression) in enumerate(panel.queries.items())
        ],
    }


def main() -> None:
    for name, text in files().items():
        path = DIRECTORY / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


if __name__ == "__main__":
    main()
