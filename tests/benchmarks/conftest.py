"""A run of Ottla alone, shared by the tests of a module."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks.bench import QUICK, Bench
from benchmarks.peers.ottla import Ottla
from benchmarks.peers.peer import Flush, Server


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    peer = Ottla(warm_seconds=0, python=Path(sys.executable))
    bench = Bench([peer], [], QUICK, tmp_path_factory.mktemp("bench"), lambda _: None)
    yield bench
    bench.close()


@pytest.fixture
def server(bench: Bench) -> Server:
    return bench.server(bench.peers[0], Flush.OS)
