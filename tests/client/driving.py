"""Both clients behind one face: the asynchronous one is driven from here."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any

import fencepost as fp


class Driven:
    """An `AsyncClient` as if it blocked."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self.loop = asyncio.new_event_loop()
        self.client = self.loop.run_until_complete(self._made(*args, **options))

    @staticmethod
    async def _made(*args: Any, **options: Any) -> fp.AsyncClient:
        return fp.AsyncClient(*args, **options)

    def __getattr__(self, name: str) -> Any:
        return self._driven(getattr(self.client, name))

    def _driven(self, method: Any) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            found = method(*args, **options)
            if inspect.isawaitable(found):
                return self.loop.run_until_complete(self._awaited(found))
            return self._each(found) if hasattr(found, "aclose") else _DrivenMover(self, found)

        return call

    @staticmethod
    async def _awaited(found: Any) -> Any:
        return await found

    def _each(self, found: AsyncGenerator[Any, None]) -> Generator[Any, None, None]:
        try:
            while True:
                try:
                    yield self.loop.run_until_complete(anext(found))
                except StopAsyncIteration:
                    return
        finally:
            self.loop.run_until_complete(found.aclose())

    def __enter__(self) -> Driven:
        return self

    def __exit__(self, *_: object) -> None:
        self.loop.run_until_complete(self.client.close())
        self.loop.close()


class _DrivenMover:
    def __init__(self, driven: Driven, mover: Any) -> None:
        self._driven, self._mover = driven, mover

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._mover, name)
        return self._driven._driven(found) if callable(found) else found


KINDS: dict[str, Any] = {"blocking": fp.Client, "awaiting": Driven}
