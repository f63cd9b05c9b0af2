import time
from email.utils import parsedate_to_datetime

import httpx


def test_what_is_not_there_is_a_problem(http: httpx.Client) -> None:
    answer = http.get("/no/such/path")
    assert answer.status_code == httpx.codes.NOT_FOUND
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["status"] == httpx.codes.NOT_FOUND
    assert http.put("/health").status_code == httpx.codes.METHOD_NOT_ALLOWED


def test_request_ids_are_echoed_or_made(http: httpx.Client) -> None:
    mine = http.get("/health", headers={"X-Request-Id": "mine"})
    assert mine.headers.get_list("x-request-id") == ["mine"]
    made = {http.get("/health").headers["x-request-id"] for _ in range(3)}
    assert len(made) == 3


def test_answers_have_the_date(http: httpx.Client) -> None:
    begun = int(time.time())
    sent = parsedate_to_datetime(http.get("/health").headers["date"]).timestamp()
    assert begun <= sent <= time.time()


def test_other_origins_are_not_let_in(http: httpx.Client) -> None:
    answer = http.get("/health", headers={"Origin": "http://elsewhere.example"})
    assert "access-control-allow-origin" not in answer.headers


def test_pages_of_other_sites_are_refused(http: httpx.Client) -> None:
    """Without CORS they could not read, but still send."""
    body = '{"topic": "orders", "message": "x"}'
    for origin in ("http://elsewhere.example", "null", "http://localhost.elsewhere.example"):
        headers = {"Origin": origin, "Content-Type": "text/plain"}
        assert http.post("/publish", content=body, headers=headers).status_code == 403
    own = {"Origin": str(http.base_url).rstrip("/")}
    assert http.get("/health", headers=own).status_code == httpx.codes.OK
