"""Reads a pipeline file, which is YAML, into the model, with every problem visible in the file."""

import re
from collections.abc import Mapping
from pathlib import Path

from pyspark_ottla.pipeline.dataset_sections import read_sources, read_steps, validate_inputs
from pyspark_ottla.pipeline.document import Document, Section, Text, read_document
from pyspark_ottla.pipeline.model import Pipeline
from pyspark_ottla.pipeline.paths import resolve_path
from pyspark_ottla.pipeline.problems import PipelineError
from pyspark_ottla.pipeline.sink_sections import read_sinks
from pyspark_ottla.security_options import default_servers

DEFAULT_SERVERS = "localhost:9092"

_KEYS = (
    "name",
    "bootstrap-servers",
    "checkpoints",
    "dead-letter-topic",
    "variables",
    "lineage",
    "spark",
    "sources",
    "steps",
    "sinks",
    "tests",
)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,49}")
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")


def load_pipeline(
    path: Path,
    *,
    variables: Mapping[str, str] | None = None,
    bootstrap_servers: str = "",
    checkpoints: str = "",
) -> Pipeline:
    """Raises PipelineError for an invalid file. Arguments override the file."""
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
        raise PipelineError.at(path, 0, f"cannot be read: {reason}") from None
    document = Document()
    root = read_document(text, document)
    pipeline = None
    if root is not None:
        document.variables = _variables(root, variables or {})
        pipeline = _pipeline(root, path, bootstrap_servers, checkpoints)
    if pipeline is None or document.problems:
        raise PipelineError(path, document.problems)
    return pipeline


def _variables(root: Section, given: Mapping[str, str]) -> dict[str, str]:
    section = root.section("variables", "variables")
    defaults = {} if section is None else section.plain()
    for name in given:
        if name not in defaults:
            known = ", ".join(defaults) or "none"
            root.note("variables", f"there is no variable {name} to set; there are: {known}")
    for name, value in list(defaults.items()):
        if not value and name not in given and section is not None:
            section.note(name, f"{name} has no value; give --set {name}=...")
            defaults[name] = name  # Avoids follow-up problems.
    return defaults | dict(given)


def _pipeline(root: Section, path: Path, bootstrap_servers: str, checkpoints: str) -> Pipeline:
    root.note_unknown(_KEYS)
    name = root.text("name", is_needed=True)
    if name and not _NAME.fullmatch(name):
        root.note("name", f"name is {name!r}; it has 1 to 50 letters, digits, '_' and '-'")
    sources = read_sources(root, path.parent)
    steps = read_steps(root)
    sinks = read_sinks(root, path.parent)
    validate_inputs(root.document, sources, steps, sinks)
    dead_letters = root.text("dead-letter-topic", default=f"{name}.dead-letter")
    if "dead-letter-topic" in root and not _TOPIC.fullmatch(dead_letters):
        root.note("dead-letter-topic", f"{dead_letters!r} is not a name of a topic")
    # Arguments are relative to where the command runs, and Spark may run elsewhere.
    directory = (
        resolve_path(Path(), checkpoints)
        if checkpoints
        else resolve_path(path.parent, root.text("checkpoints") or "checkpoints")
    )
    return Pipeline(
        path=path,
        name=str(name),
        bootstrap_servers=bootstrap_servers
        or str(root.text("bootstrap-servers", default=default_servers() or DEFAULT_SERVERS)),
        checkpoints=f"{directory.rstrip('/')}/{name}",
        dead_letter_topic=Text(dead_letters, dead_letters.line),
        spark_settings=root.mapping("spark"),
        sources=sources,
        steps=steps,
        sinks=sinks,
        lineage=_lineage(root, path.parent),
    )


def _lineage(root: Section, directory: Path) -> str:
    target = root.text("lineage")
    if not target or target.startswith(("topic:", "http://", "https://")):
        topic = target.removeprefix("topic:")
        if target.startswith("topic:") and not _TOPIC.fullmatch(topic):
            root.note("lineage", f"{topic!r} is not a name of a topic")
        return str(target)
    return resolve_path(directory, target.removeprefix("file:"))
