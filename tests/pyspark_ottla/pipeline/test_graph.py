import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from tests.fork_server import REPOSITORY

from pyspark_ottla.pipeline.file import load_pipeline
from pyspark_ottla.pipeline.graph import as_svg, as_text

EXAMPLES = REPOSITORY / "examples" / "pipelines"


def test_a_tree_from_each_source() -> None:
    assert as_text(load_pipeline(EXAMPLES / "orders-per-minute.yaml")).splitlines() == [
        "orders  (topic orders)",
        "├─ per_minute  (sql)",
        "│  └─ totals  (topic orders-per-minute)",
        "└─ dead-letter-orders  (topic orders-per-minute.dead-letter)",
    ]


def test_a_step_of_two_sources_stands_under_both_and_a_sink_may_have_its_name() -> None:
    assert as_text(load_pipeline(EXAMPLES / "join.yaml")).splitlines() == [
        "orders  (topic orders)",
        "└─ paid  (sql)",
        "   └─ paid  (topic paid-orders)",
        "payments  (topic payments)",
        "└─ paid  (sql)",
        "   └─ paid  (topic paid-orders)",
    ]


def test_names_in_comments_and_texts_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(
        "name: p\nsources:\n  one: {topic: one}\n  two: {topic: two}\nsteps:\n"
        "  last:\n    sql: |\n      -- not two\n      select 'two' as name from One\n"
        "sinks:\n  out: {from: last, topic: out}\n"
    )
    assert as_text(load_pipeline(path)).endswith("two  (topic two)")


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*[!t].yaml")), ids=lambda path: path.stem)
def test_every_example_has_a_drawing(path: Path) -> None:
    if path.name.endswith(".test.yaml"):
        return
    drawing = ET.fromstring(as_svg(load_pipeline(path)))
    names = [text.text for text in drawing.iter("{http://www.w3.org/2000/svg}text")]
    assert set(load_pipeline(path).sinks) <= set(names)
