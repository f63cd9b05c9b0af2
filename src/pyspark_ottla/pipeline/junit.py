"""Test results as JUnit XML, which every CI reads."""

import xml.etree.ElementTree as ET
from collections.abc import Sequence

from pyspark_ottla.pipeline.case_run import Outcome


def as_junit(suites: Sequence[tuple[str, Sequence[Outcome]]]) -> str:
    """`suites` maps pipeline names to test results."""
    root = ET.Element("testsuites")
    for name, outcomes in suites:
        suite = ET.SubElement(
            root,
            "testsuite",
            name=name,
            tests=str(len(outcomes)),
            failures=str(sum(bool(each.failures) for each in outcomes)),
            time=f"{sum(each.seconds for each in outcomes):.3f}",
        )
        for each in outcomes:
            case = ET.SubElement(
                suite,
                "testcase",
                classname=name,
                name=each.case.name,
                file=str(each.case.path),
                line=str(each.case.line),
                time=f"{each.seconds:.3f}",
            )
            if each.failures:
                failure = ET.SubElement(case, "failure", message=each.failures[0])
                failure.text = "\n".join(each.failures)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"
