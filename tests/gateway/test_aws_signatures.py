"""Requests with AWS signatures, made by the library of its clients."""

import datetime as dt
from pathlib import Path

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from ottla.gateway.aws_signatures import (
    InvalidSignature,
    SignedRequest,
    is_signed,
    read_users,
    signer_of,
)

USERS = {"alice": "correct horse: battery", "bob": "x"}
BODY = b'{"QueueName":"q"}'


def signed(
    user: str = "alice",
    password: str = USERS["alice"],
    url: str = "http://localhost:8080/0000/q?b=2&a=%20x",
    **changes: str,
) -> SignedRequest:
    headers = {
        "X-Amz-Target": "AmazonSQS.CreateQueue",
        "Content-Type": "application/x-amz-json-1.0",
    }
    request = AWSRequest("POST", url, headers=headers, data=BODY)
    SigV4Auth(Credentials(user, password), "sqs", "eu-central-1").add_auth(request)
    found = {name.lower().encode(): value.encode() for name, value in request.headers.items()}
    found[b"host"] = b"localhost:8080"
    found |= {name.replace("_", "-").encode(): value.encode() for name, value in changes.items()}
    path, _, query = url.removeprefix("http://localhost:8080").partition("?")
    return SignedRequest("POST", path, query, found, BODY)


def now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


def refusal(request: SignedRequest, at: dt.datetime | None = None) -> str:
    with pytest.raises(InvalidSignature) as refused:
        signer_of(request, USERS, at or now())
    return refused.value.code


def test_whoever_signed_is_known() -> None:
    request = signed()
    assert is_signed(request.headers)
    assert signer_of(request, USERS, now()) == "alice"
    assert signer_of(signed(url="http://localhost:8080/"), USERS, now()) == "alice"


def test_another_secret_or_user_is_refused() -> None:
    assert refusal(signed(password="wrong")) == "SignatureDoesNotMatch"
    assert refusal(signed(user="bob")) == "SignatureDoesNotMatch"
    assert refusal(signed(user="nobody")) == "InvalidClientTokenId"


def test_what_was_changed_on_the_way_is_refused() -> None:
    request = signed()
    assert refusal(request._replace(body=b'{"QueueName":"r"}')) == "SignatureDoesNotMatch"
    assert refusal(request._replace(path="/0000/r")) == "SignatureDoesNotMatch"
    assert refusal(request._replace(query="b=2")) == "SignatureDoesNotMatch"
    assert refusal(request._replace(method="PUT")) == "SignatureDoesNotMatch"
    assert refusal(signed(x_amz_target="AmazonSQS.DeleteQueue")) == "SignatureDoesNotMatch"
    assert refusal(signed(host="elsewhere")) == "SignatureDoesNotMatch"


def test_a_signature_of_another_time_is_refused() -> None:
    request = signed()
    assert signer_of(request, USERS, now() + dt.timedelta(minutes=14)) == "alice"
    assert refusal(request, now() + dt.timedelta(minutes=16)) == "SignatureDoesNotMatch"
    assert refusal(request, now() - dt.timedelta(minutes=16)) == "SignatureDoesNotMatch"


@pytest.mark.parametrize("header", ["AWS4-HMAC-SHA256", "AWS4-HMAC-SHA256 Credential=a", "Basic x"])
def test_half_a_signature_is_refused(header: str) -> None:
    assert refusal(signed(authorization=header)) == "IncompleteSignature"


def test_the_host_has_to_be_signed() -> None:
    request = signed()
    whole = request.headers[b"authorization"].decode()
    assert refusal(signed(authorization=whole.replace("host;", ""))) == "IncompleteSignature"
    assert refusal(signed(x_amz_date="yesterday")) == "IncompleteSignature"


def test_users_are_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "users"
    path.write_text("# those who sign\n\nalice:correct horse: battery\nbob:x\n")
    assert read_users(path) == USERS
    path.write_text("alice\n")
    with pytest.raises(ValueError, match="line 1"):
        read_users(path)
