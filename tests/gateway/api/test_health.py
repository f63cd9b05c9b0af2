from pathlib import Path

import httpx
from tests.gateway.gateway_process import GatewayProcess


def test_a_gateway_with_its_cluster_is_ready(http: httpx.Client) -> None:
    assert http.get("/health").json() == {"status": "ok"}
    answer = http.get("/ready").json()
    assert answer["status"] == "ok"
    assert answer["brokers"]


def test_a_gateway_without_its_cluster_lives_and_is_not_ready(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path, "127.0.0.1:1") as gateway:
        assert httpx.get(f"{gateway.url}/health").status_code == httpx.codes.OK
        answer = httpx.get(f"{gateway.url}/ready")
        assert answer.status_code == httpx.codes.SERVICE_UNAVAILABLE
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.headers["retry-after"] == "1"
        assert "127.0.0.1:1" in answer.json()["detail"]
        assert gateway.stop() == 0
