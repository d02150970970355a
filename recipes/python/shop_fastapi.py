"""For the tests: a strictly typed application."""

from __future__ import annotations

from fastapi import FastAPI
from polyflake import Snowflake
from polyflake_fastapi import SnowflakeIds, generator
from polyflake_pydantic import SnowflakeID
from pydantic import BaseModel

app = FastAPI(lifespan=generator(lambda: Snowflake(node=7)))


class Order(BaseModel):
    id: SnowflakeID
    node: int


@app.post("/orders")
def add(ids: SnowflakeIds) -> Order:
    return Order(id=ids.next_id(), node=ids.node)
