"""deploy/helm/ottla: linted and rendered by helm, and compared with Kubernetes' own schemas.

helm: `go install helm.sh/helm/v3/cmd/helm@v3.16.4`. Schemas: `pip install kubernetes-validate`.
"""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from ottla.node.config import load_config
from ottla.node.serve_settings import ServeSettings

REPOSITORY = Path(__file__).parents[2]
CHART = REPOSITORY / "deploy" / "helm" / "ottla"
MANIFESTS = REPOSITORY / "deploy" / "kubernetes"
KUBERNETES = "1.31"
CASES = sorted(path.name.removesuffix("-values.yaml") for path in (CHART / "ci").iterdir())


def helm(*arguments: str | Path, check: bool = True) -> "subprocess.CompletedProcess[str]":
    found = shutil.which("helm")
    if found is None:
        pytest.skip("there is no helm here")
    return subprocess.run(
        [found, *map(str, arguments)], capture_output=True, text=True, check=check
    )


def template(case: str, *arguments: str) -> str:
    values = CHART / "ci" / f"{case}-values.yaml"
    options = ("--namespace=queues", f"--kube-version={KUBERNETES}", "-f", values)
    return helm("template", "ottla", CHART, *options, *arguments).stdout


def documents(text: str) -> list[dict[str, Any]]:
    return [each for each in yaml.safe_load_all(text) if each]


def of_kind(text: str, kind: str) -> Iterator[dict[str, Any]]:
    return (each for each in documents(text) if each["kind"] == kind)


@pytest.mark.parametrize("case", CASES)
def test_helm_finds_nothing_wrong(case: str) -> None:
    helm("lint", "--strict", CHART, "-f", CHART / "ci" / f"{case}-values.yaml")


@pytest.mark.parametrize("case", CASES)
def test_what_is_rendered_is_as_kubernetes_has_it(case: str) -> None:
    validate = pytest.importorskip(
        "kubernetes_validate", reason="kubernetes-validate is not installed"
    )
    found = documents(template(case))
    assert {each["kind"] for each in found} >= {"StatefulSet", "Service", "PodDisruptionBudget"}
    for each in found:
        if each["kind"] != "ServiceMonitor":  # Of the Prometheus operator.
            validate.validate(each, KUBERNETES, strict=True)


def _relative(schemas: Path, directory: Path) -> Path:
    """The schemas, with references between files, as kubeconform resolves them."""
    rewritten = directory / "schemas"
    rewritten.mkdir()
    for path in schemas.glob("*.json"):
        text = path.read_text().replace('"/api/_definitions.json#', '"_definitions.json#')
        schema = json.loads(text)
        schema.pop("$id", None)  # A base address that would resolve the references.
        (rewritten / path.name).write_text(json.dumps(schema))
    return rewritten


@pytest.mark.parametrize("case", CASES)
def test_kubeconform_agrees(case: str, tmp_path: Path) -> None:
    tool = shutil.which("kubeconform")
    if tool is None:
        pytest.skip("there is no kubeconform here")
    validate = pytest.importorskip(
        "kubernetes_validate", reason="kubernetes-validate, whose schemas are used, is missing"
    )
    schemas = Path(validate.__file__).parent / "kubernetes-json-schema"
    (version,) = sorted(schemas.glob(f"v{KUBERNETES}.*-local-strict"))[-1:]
    rendered = tmp_path / "rendered.yaml"
    rendered.write_text(template(case))
    location = f"{_relative(version, tmp_path)}/{{{{.ResourceKind}}}}{{{{.KindSuffix}}}}.json"
    options = ["-strict", "-skip", "ServiceMonitor", "-schema-location", location]
    subprocess.run([tool, *options, rendered], check=True)


@pytest.mark.parametrize("case", CASES)
def test_brokers_take_the_configuration(case: str, tmp_path: Path) -> None:
    (config,) = of_kind(template(case), "ConfigMap")
    path = tmp_path / "broker.yaml"
    path.write_text(config["data"]["broker.yaml"])
    load_config(ServeSettings(config_file=path), {})


def test_a_choice_between_locked_and_open_has_to_be_made() -> None:
    version = f"--kube-version={KUBERNETES}"
    refused = helm("template", "ottla", CHART, version, check=False)
    assert refused.returncode
    assert "set tls.secretName" in refused.stderr
    values = "--set=insecure=true,tls.secretName=certificates"
    both = helm("template", "ottla", CHART, version, values, check=False)
    assert "exclude each other" in both.stderr


def test_a_new_cluster_is_begun_by_the_first_broker_alone() -> None:
    def script(*arguments: str) -> str:
        (brokers,) = of_kind(template("insecure", *arguments), "StatefulSet")
        return str(brokers["spec"]["template"]["spec"]["containers"][0]["args"][0])

    def started(script: str, ordinal: int) -> str:
        """The words after the shell has parsed them."""
        asked = script.replace("exec ottla serve", "echo")
        done = subprocess.run(
            ["sh", "-ec", asked],
            env={"HOSTNAME": f"ottla-{ordinal}", "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    first, second = (started(script(), ordinal) for ordinal in (0, 1))
    assert "--id 1 " in first
    assert "--new-cluster" in first
    assert "--join" not in first
    assert "--id 2 " in second
    assert "--new-cluster" not in second
    assert "--join ottla-0.ottla-headless.queues.svc:9092" in second
    again = started(script("--set=newCluster=false"), 0)
    assert "--new-cluster" not in again
    assert "--join ottla-1.ottla-headless.queues.svc:9092" in again


def test_the_plain_manifests_are_what_the_chart_renders() -> None:
    assert template("insecure") == (MANIFESTS / "ottla.yaml").read_text()
