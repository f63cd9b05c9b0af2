"""The results as tables: in the terminal and as a document for each suite."""

import datetime as dt
from collections.abc import Iterable

from rich.console import Console
from rich.table import Table

from benchmarks.results import SUBJECT, Requirement, Results, Row, Summary, Verdict

STYLES = {Verdict.MET: "green", Verdict.MISSED: "red", Verdict.NOT_MEASURED: "yellow"}
INTRODUCTION = """\
# Results of the {suite} suite

Written by `make bench`. Every figure is the median of its rounds, with the smallest and the largest
in brackets where there was more than one. The peers take turns within a round, under the same load
from a second process on the same machine; nothing is pinned to a core, broker and load share what
there is. The ratio is the median of the ratios of each round, and above 1 Ottla is better, whatever
the unit. The processor figure is the broker's user and system time per GB of message values.
Where coordinators are measured, flush ack has no ratio: Kafka does not flush its own topics.
"""
HTTP_INTRODUCTION = """\
# Results of the {suite} suite

Written by `make bench`. Every figure is the median of its rounds, with the smallest and the largest
in brackets where there was more than one. One gateway stands before one broker, on one machine with
the load. "Gateway alone" divides by the processor time of the gateway itself: a second of that is
one core of it, whatever else the machine does. The ratio is the median of the ratios of each round,
and above 1 Ottla is better.

RabbitMQ syncs a message before it confirms it; acknowledgements it neither syncs nor confirms. NATS
and ElasticMQ do not sync every message. Those two and RabbitMQ are called in their own protocols
(ElasticMQ in that of SQS), and wait for nobody in between. Karapace is left out: PyPI has none.
"""
INTRODUCTIONS = {"http": HTTP_INTRODUCTION}


def show(results: Results, console: Console) -> None:
    for scenario in results.scenarios():
        table = Table(title=scenario, title_justify="left")
        for index, heading in enumerate(_headings(results, scenario)):
            table.add_column(heading, justify="left" if index == 0 else "right")
        for row in results.rows(scenario):
            style = STYLES.get(results.verdict(row), "")
            table.add_row(*_cells(results, row), style=style)
        console.print(table)


def as_markdown(
    results: Results,
    facts: dict[str, str],
    remarks: Iterable[str] = (),
    introduction: str = INTRODUCTION,
) -> str:
    """`remarks` are what a reader must know before quoting a figure."""
    parts = [introduction, *(f"**{remark}**\n" for remark in remarks)]
    parts += [_facts_table(facts), _requirements_section(results)]
    for scenario in results.scenarios():
        rows = [_cells(results, row) for row in results.rows(scenario)]
        title = scenario[:1].upper() + scenario[1:]
        parts.append(f"## {title}\n\n" + markdown_table(_headings(results, scenario), rows))
    return "\n".join(parts)


def _requirements_section(results: Results) -> str:
    asked = [row for row in results.samples if row.requirement != Requirement()]
    rows = [
        [
            f"{row.scenario}: {row.label}",
            _requirement(row),
            _figure(results.summary(row, SUBJECT), row.unit),
            _ratio(results.ratio(row)),
            results.verdict(row).value,
        ]
        for row in asked
    ]
    headings = ["what", "asked", SUBJECT, "ratio", "verdict"]
    return "## What is asked of Ottla\n\n" + markdown_table(headings, rows)


def _requirement(row: Row) -> str:
    ratio_min, value_max, value_min, reference = row.requirement
    parts = [] if ratio_min is None else [f"ratio to {reference} >= {ratio_min:g}"]
    if value_max is not None:
        parts.append(f"<= {value_max:,g} {row.unit}")
    if value_min is not None:
        parts.append(f">= {value_min:,g} {row.unit}")
    return ", ".join(parts)


def _headings(results: Results, scenario: str) -> list[str]:
    peers = results.peers(scenario)
    others = [peer for peer in peers if peer != SUBJECT]
    return ["", *peers, *(f"ratio to {peer}" for peer in others)]


def _cells(results: Results, row: Row) -> list[str]:
    peers = results.peers(row.scenario)
    others = [peer for peer in peers if peer != SUBJECT]
    figures = [_figure(results.summary(row, peer), row.unit) for peer in peers]
    return [row.label, *figures, *(_ratio(results.ratio(row, peer)) for peer in others)]


def _figure(summary: Summary | None, unit: str) -> str:
    if summary is None:
        return "-"
    text = f"{_number(summary.median)} {unit}"
    if summary.rounds > 1:
        text += f" ({_number(summary.low)} - {_number(summary.high)})"
    return text


def _ratio(summary: Summary | None) -> str:
    if summary is None:
        return "-"
    text = f"{summary.median:.2f}"
    if summary.rounds > 1:
        text += f" ({summary.low:.2f} - {summary.high:.2f})"
    return text


def _number(value: float) -> str:
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _facts_table(facts: dict[str, str]) -> str:
    day = dt.datetime.now(dt.UTC).date().isoformat()
    return markdown_table(["", ""], [["date", day], *(list(pair) for pair in facts.items())])


def markdown_table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    headings = list(headings)
    rule = ["---"] + ["---:"] * (len(headings) - 1)
    if headings[-1] == "":
        rule = ["---"] * len(headings)
    lines = [headings, rule, *rows]
    escaped = (" | ".join(cell.replace("|", "\\|") for cell in line) for line in lines)
    return "".join(f"| {line} |\n" for line in escaped)
