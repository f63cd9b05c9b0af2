"""Requests that Schemathesis generates from the OpenAPI document: every response is described."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.gateway.gateway_process import GatewayProcess

pytestmark = pytest.mark.process

# Streams do not end, and these two may wait a minute on request.
WITHOUT = r"stream|^/ws|:receive$|^/consume$"
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance"
CHECKS += ",response_schema_conformance"


def test_what_is_generated_is_answered_as_described(
    gateway: GatewayProcess, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"{gateway.url}/openapi.yaml"]
    command += ["--exclude-path-regex", WITHOUT, "--checks", CHECKS, "--phases", "coverage"]
    command += ["--request-timeout", "240", "--no-color"]
    found = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=500
    )
    assert found.returncode == 0, found.stdout[-8_000:] + found.stderr
