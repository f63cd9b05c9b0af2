import base64

import pytest

from ottla.gateway.core.webhook_signatures import new_secret, parse_secret, sign


def test_the_example_of_the_specification() -> None:
    secret = parse_secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    headers = sign(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    assert headers == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


def test_a_new_secret_is_read() -> None:
    assert len(parse_secret(new_secret())) == 32
    assert new_secret() != new_secret()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "whsec_",
        "whsec_***",
        "whsec_" + base64.b64encode(b"x" * 23).decode(),
        "whsec_" + base64.b64encode(b"x" * 65).decode(),
    ],
)
def test_what_is_no_secret_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="webhook secret"):
        parse_secret(text)
