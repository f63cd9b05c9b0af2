"""The ends of TLS connections, which uvicorn does not report."""

import asyncio
import ssl
from pathlib import Path

import pytest
import uvloop
from tests.network.locked import stored
from tests.network.peer import until

from ottla.gateway.tls_ends import report_ends


@pytest.mark.parametrize("garbage", [True, False])
def test_a_connection_that_ends_is_reported_also_if_its_handshake_failed(
    tmp_path: Path, garbage: bool
) -> None:
    certificate = stored(tmp_path).keystore_location
    ends: list[None] = []

    async def main() -> None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate)
        report_ends(context, lambda: ends.append(None))
        server = await asyncio.start_server(
            lambda _, writer: writer.close(), "127.0.0.1", 0, ssl=context
        )
        port = server.sockets[0].getsockname()[1]
        tls = None
        if not garbage:
            tls = ssl.create_default_context()
            tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls)
        assert ends == []
        if garbage:
            writer.write(bytes(1000))
        await reader.read()
        writer.close()
        await until(lambda: len(ends) == 1)
        server.close()

    uvloop.run(main())
