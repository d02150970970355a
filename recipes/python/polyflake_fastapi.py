"""FastAPI: one generator for the lifetime of the application, for the handlers that ask for it.

app = FastAPI(lifespan=generator(lambda: Snowflake(lease="redis://redis.internal/0")))

@app.post("/orders")
def add(ids: Ids) -> Order:  # not async: taking an ID may wait
    return Order(id=ids.next_id())

@app.get("/node")
def node(ids: SnowflakeIds) -> int:  # a Snowflake, not a Counter
    return ids.node

`Order.id` is the SnowflakeID of polyflake_pydantic.py, which also suits path parameters. In models
for request bodies, use GivenID from the same file, since FastAPI parses the JSON.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Annotated, Any

from anyio.to_thread import run_sync
from fastapi import Depends, FastAPI, Request
from polyflake import Counter, IdGenerator, Snowflake


def generator(
    make: Callable[[], Snowflake | Counter],
) -> Callable[[FastAPI], AbstractAsyncContextManager[dict[str, Any]]]:
    """A lifespan: opens the generator when the application starts, closes it at shutdown."""

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[dict[str, Any]]:
        # In a thread, because a lease or a counter waits for its store.
        with await run_sync(make) as ids:
            yield {"ids": ids}

    return lifespan


def _ids(request: Request) -> IdGenerator:
    ids: IdGenerator = request.state.ids
    return ids


def _snowflake(request: Request) -> Snowflake:
    ids: Snowflake = request.state.ids
    return ids


Ids = Annotated[IdGenerator, Depends(_ids)]
SnowflakeIds = Annotated[Snowflake, Depends(_snowflake)]
