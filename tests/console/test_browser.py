"""The console in a real browser, with a real gateway and broker."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.gateway.browser import Browser
from tests.gateway.conftest import make_topic
from tests.gateway.gateway_process import PATIENT, GatewayProcess

pytestmark = pytest.mark.clients


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("browser")) as browser:
        yield browser


@pytest.fixture(scope="module")
def gateway(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path_factory.mktemp("gateway"), bootstrap) as process:
        yield process


@pytest.fixture
def topic(bootstrap: str) -> str:
    return make_topic(bootstrap)


def wait_for_text(browser: Browser, selector: str, text: str) -> None:
    browser.run_until_done(
        """
        const [selector, text] = arguments;
        const look = () => {
            const found = [...document.querySelectorAll(selector)];
            if (found.some((each) => each.innerText.includes(text))) done(true);
            else setTimeout(look, 20);
        };
        look();
        """,
        selector,
        text,
    )


def post(gateway: GatewayProcess, path: str, body: object) -> httpx.Response:
    answer = httpx.post(f"{gateway.url}{path}", json=body, timeout=PATIENT)
    answer.raise_for_status()
    return answer


def test_the_first_page_shows_the_cluster(browser: Browser, gateway: GatewayProcess) -> None:
    browser.open(gateway.url)
    cluster = httpx.get(f"{gateway.url}/cluster", timeout=PATIENT).json()
    wait_for_text(browser, "main", cluster["id"])
    wait_for_text(browser, "header nav a[aria-current]", "Overview")


def test_a_topic_shows_its_records_as_text(
    browser: Browser, gateway: GatewayProcess, topic: str
) -> None:
    markup = "<img src=x onerror='document.title = 1'>"
    post(gateway, "/publish", {"topic": topic, "message": markup, "key": "k"})
    browser.open(f"{gateway.url}/console/#/topics/{topic}")
    wait_for_text(browser, "td.value", markup)
    assert browser.run("return document.title") == "Ottla"


def test_the_form_publishes_and_following_shows_it(
    browser: Browser, gateway: GatewayProcess, topic: str
) -> None:
    browser.open(f"{gateway.url}/console/#/topics/{topic}")
    wait_for_text(browser, "button", "Follow")
    browser.run(
        """
        const find = (text) =>
            [...document.querySelectorAll("button")].find((each) => each.innerText === text);
        find("Follow").click();
        """
    )
    wait_for_text(browser, ".notice", "New records appear here.")
    browser.run(
        """
        const form = document.querySelector("textarea").form;
        form.querySelector("textarea").value = "from the form";
        form.requestSubmit();
        """
    )
    wait_for_text(browser, ".notice", "at offset 0")
    wait_for_text(browser, "td.value", "from the form")


def test_a_dead_letter_is_sent_again(browser: Browser, gateway: GatewayProcess, topic: str) -> None:
    letters = f"dlq.{topic}"
    configs = {"errors.deadletterqueue.topic.name": letters}
    httpx.patch(
        f"{gateway.url}/groups/{topic}/configs", json=configs, timeout=PATIENT
    ).raise_for_status()
    post(gateway, "/publish", {"topic": topic, "message": "spoiled"})
    queue = f"/queues/{topic}/{topic}"
    received = post(gateway, f"{queue}:receive", {"wait": 60}).json()["deliveries"]
    post(gateway, f"{queue}:reject", {"delivery": received[0]["delivery"]})
    browser.open(f"{gateway.url}/console/#/dead-letters")
    wait_for_text(browser, "td a", letters)
    browser.open(f"{gateway.url}/console/#/dead-letters/{letters}")
    wait_for_text(browser, "td", "spoiled")
    browser.run(
        """
        const buttons = [...document.querySelectorAll("td button")];
        buttons.find((each) => each.innerText === "Redrive").click();
        """
    )
    wait_for_text(browser, ".notice", "Sent 1 letter again.")
    again = post(gateway, f"{queue}:receive", {"wait": 60}).json()["deliveries"]
    assert [each["value"] for each in again] == ["spoiled"]


def test_the_page_says_when_nobody_answers_and_goes_on(
    browser: Browser, bootstrap: str, topic: str, tmp_path: Path
) -> None:
    with GatewayProcess(tmp_path, bootstrap) as gateway:
        browser.open(f"{gateway.url}/console/#/topics")
        wait_for_text(browser, "td a", topic)
        gateway.kill()
        wait_for_text(browser, "#connection", "No answer")
        wait_for_text(browser, "td a", topic)
        late = make_topic(bootstrap)
        gateway.start()
        wait_for_text(browser, "td a", late)
        assert browser.run("return document.getElementById('connection').innerText") == ""
