"""Runs the methods of a blocking client in a dedicated thread."""

import asyncio
import functools
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Concatenate, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
Client = TypeVar("Client", bound="InThread")


class InThread:
    """An asyncio client that delegates to the client `blocking`."""

    def __init__(self, blocking: Any) -> None:
        self.blocking = blocking
        self._executor = ThreadPoolExecutor(1, "ottla-client")

    async def call(self, function: Callable[..., R], *arguments: Any, **options: Any) -> R:
        """Calls run one at a time: a blocking client is not thread-safe."""
        work = functools.partial(function, self.blocking, *arguments, **options)
        return await asyncio.get_running_loop().run_in_executor(self._executor, work)

    def end(self) -> None:
        self._executor.shutdown(wait=False)


def in_thread(
    method: Callable[Concatenate[Any, P], R],
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]:
    """An awaitable version of the blocking client's method."""

    @functools.wraps(method)
    async def call(self: InThread, /, *arguments: P.args, **options: P.kwargs) -> R:
        return await self.call(method, *arguments, **options)

    return call


def in_thread_chained(
    method: Callable[Concatenate[Any, P], object],
) -> Callable[Concatenate[Client, P], Coroutine[Any, Any, Client]]:
    """Like `in_thread`, for a method that returns its client: returns the asyncio client."""

    @functools.wraps(method)
    async def call(self: Client, /, *arguments: P.args, **options: P.kwargs) -> Client:
        await self.call(method, *arguments, **options)
        return self

    return call
