"""`ottla pipeline test`: run the tests of pipelines."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from ottla.cli.errors import CommandError
from ottla.cli.output import print_json, print_line
from ottla.cli.parameters import AsJson
from ottla.cli.pipelines.options import DEFAULT_OPTIONS, Files, PipelineOptions, spark_errors

if TYPE_CHECKING:
    from pyspark_ottla.pipeline.case_run import Outcome


def run_tests(
    files: Files,
    /,
    *,
    only: str = "",
    junit: Path | None = None,
    options: PipelineOptions = DEFAULT_OPTIONS,
    as_json: AsJson = False,
) -> None:
    """Run the tests of pipelines on a real Spark; no broker is needed.

    They are in NAME.test.yaml next to NAME.yaml, or under `tests:` in the pipeline. Exits with 1
    if one fails.

    Args:
        only: Only tests whose names contain this text.
        junit: File to write the results to, as JUnit XML.
    """
    pipelines = [options.load(file) for file in files]
    with spark_errors():
        from pyspark_ottla.pipeline.case_run import run_case
        from pyspark_ottla.pipeline.cases import find_cases

        chosen = {
            pipeline.path: [case for case in find_cases(pipeline) if only in case.name]
            for pipeline in pipelines
        }
        suites: list[tuple[str, list[Outcome]]] = []
        session = options.open_session(pipelines[0], Path(os.devnull))
        try:
            for pipeline in pipelines:
                outcomes = []
                for case in chosen[pipeline.path]:
                    outcomes.append(run_case(session, pipeline, case))
                    if not as_json:
                        _print(outcomes[-1])
                suites.append((pipeline.name, outcomes))
        finally:
            session.stop()
    _report(suites, junit, as_json=as_json)


def _print(outcome: "Outcome") -> None:
    word = "failed" if outcome.failures else "passed"
    print_line(f"{word}  {outcome.case.path.name}  {outcome.case.name}  {outcome.seconds:.1f} s")
    for line in outcome.failures:
        print_line(f"    {line}")


def _report(
    suites: "list[tuple[str, list[Outcome]]]", junit: Path | None, *, as_json: bool
) -> None:
    if junit is not None:
        from pyspark_ottla.pipeline.junit import as_junit

        junit.write_text(as_junit(suites))
    outcomes = [outcome for _, each in suites for outcome in each]
    failed = sum(bool(outcome.failures) for outcome in outcomes)
    if as_json:
        tests = [
            {"pipeline": name, "test": each.case.name, "failures": each.failures}
            for name, found in suites
            for each in found
        ]
        print_json({"tests": tests, "failed": failed})
    if failed:
        raise CommandError(f"{failed} of {len(outcomes)} tests failed")
    if not as_json:
        print_line(f"{len(outcomes)} passed")
