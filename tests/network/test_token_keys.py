import asyncio
import base64
import time
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path

import jwt
import pytest
from tests.network.token_issuer import AUDIENCE, ISSUER, TokenIssuer, write_keys

from ottla.network.token_keys import JWKS_BYTES_MAX, KeysUnavailable, TokenConfig, TokenKeys
from ottla.security.errors import AuthenticationFailed

ONE = TokenIssuer()
TWO = TokenIssuer("two", "RS256")


@pytest.fixture
def config(tmp_path: Path) -> TokenConfig:
    url = write_keys(tmp_path / "keys.json", ONE, TWO)
    return TokenConfig(url, ISSUER, (AUDIENCE, "other"), scopes=("write",))


def loaded(config: TokenConfig) -> TokenKeys:
    keys = TokenKeys(config)
    keys.load()
    return keys


@pytest.mark.parametrize("issuer", [ONE, TWO], ids=lambda issuer: issuer.algorithm)
def test_a_good_token_says_who_it_is_and_for_how_long(
    config: TokenConfig, issuer: TokenIssuer
) -> None:
    verified = loaded(config).verify(issuer.token("ann", scope="read write"))
    assert verified.name == "ann"
    assert 600_000 < verified.expires_in_ms <= 631_000


def test_the_name_and_the_scopes_may_be_in_other_claims(config: TokenConfig) -> None:
    keys = loaded(replace(config, name_claim="email", scope_claim="scp"))
    token = ONE.token(email="ann@example.com", scp=["write"])
    assert keys.verify(token).name == "ann@example.com"


def without_signature(token: str) -> str:
    header = base64.urlsafe_b64encode(b'{"alg":"none","kid":"one"}').rstrip(b"=").decode()
    return f"{header}.{token.split('.')[1]}."


def signed_with_the_public_key() -> str:
    """An attack that lets the token choose the kind of key."""
    secret = ONE.jwk()["x"].encode()
    payload = {"sub": "ann", "iss": ISSUER, "aud": AUDIENCE, "exp": time.time() + 60}
    return jwt.encode({**payload, "scope": "write"}, secret, "HS256", headers={"kid": "one"})


BAD_TOKENS = {
    "empty": "",
    "no token": "no token",
    "expired": ONE.token(scope="write", valid_s=-31),
    "not yet": ONE.token(scope="write", nbf=time.time() + 3600),
    "another issuer": ONE.token(scope="write", iss="https://elsewhere.example.com"),
    "another audience": ONE.token(scope="write", aud="another"),
    "another scope": ONE.token(scope="read"),
    "no scope": ONE.token(),
    "no name": ONE.token("", scope="write"),
    "changed": ONE.token(scope="write")[:-8] + "AAAAAAAA",
    "another key of the same id": TokenIssuer().token(scope="write"),
    "an unknown key": TokenIssuer("unknown").token(scope="write"),
    "no signature": without_signature(ONE.token(scope="write")),
    "signed with the public key": signed_with_the_public_key(),
}


@pytest.mark.parametrize("what", BAD_TOKENS)
def test_a_token_that_is_not_good_is_refused(config: TokenConfig, what: str) -> None:
    with pytest.raises(AuthenticationFailed):
        loaded(config).verify(BAD_TOKENS[what])


def test_a_token_may_be_a_little_late(config: TokenConfig) -> None:
    assert loaded(config).verify(ONE.token(scope="write", valid_s=-20)).name == "ann"


def test_tokens_without_a_signature_count_only_where_that_is_said(config: TokenConfig) -> None:
    keys = TokenKeys(TokenConfig(unsecured=True))
    assert keys.verify(without_signature(ONE.token())).name == "ann"
    with pytest.raises(AuthenticationFailed):
        keys.verify(without_signature(ONE.token(valid_s=-31)))
    assert TokenConfig().problem() is not None
    assert TokenConfig("ftp://example.com/keys").problem() is not None
    assert config.problem() is None


@pytest.mark.parametrize(
    "content", [b"", b"[]", b'{"keys": []}', b'{"keys": [{"kty": "oct", "k": "c2VjcmV0"}]}']
)
def test_keys_that_are_none_are_refused_and_the_others_stay(
    config: TokenConfig, tmp_path: Path, content: bytes
) -> None:
    keys = loaded(config)
    (tmp_path / "keys.json").write_bytes(content)
    with pytest.raises(KeysUnavailable):
        keys.load()
    assert keys.verify(ONE.token(scope="write")).name == "ann"


def test_a_huge_answer_is_refused(config: TokenConfig, tmp_path: Path) -> None:
    (tmp_path / "keys.json").write_bytes(b" " * (JWKS_BYTES_MAX + 1))
    with pytest.raises(KeysUnavailable):
        TokenKeys(config).load()


def test_a_new_key_is_fetched_when_a_token_names_it(config: TokenConfig, tmp_path: Path) -> None:
    async def main() -> None:
        keys = TokenKeys(replace(config, backoff_ms=1, backoff_ms_max=5))
        (tmp_path / "keys.json").unlink()
        new = TokenIssuer("new")
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(1) as threads:
            watching = asyncio.create_task(keys.watch(threads))
            for issuers in ((ONE,), (ONE, new)):
                write_keys(tmp_path / "keys.json", *issuers)
                token = issuers[-1].token(scope="write")
                while True:
                    try:
                        await loop.run_in_executor(None, keys.verify, token)
                        break
                    except AuthenticationFailed:
                        await asyncio.sleep(0.001)
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)

    asyncio.run(main())


def test_a_login_waits_for_the_first_attempt_to_fetch_the_keys(config: TokenConfig) -> None:
    """A broker serves before it has the keys, and refused early clients."""
    keys = TokenKeys(config)
    with ThreadPoolExecutor(1) as threads:
        login = threads.submit(keys.verify, ONE.token("ann", scope="write"))
        assert not wait([login], 0.2).done
        keys.load()
        assert login.result(60).name == "ann"
