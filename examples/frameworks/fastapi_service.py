"""A FastAPI service that publishes: an order is accepted once the brokers have it.

uvicorn fastapi_service:app
curl localhost:8000/orders --json '{"customer": "anna", "amount": 12}'
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request
from pydantic import BaseModel

from ottla.client.aio import Producer


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with Producer() as producer:  # For the broker at OTTLA_BOOTSTRAP_SERVER.
        app.state.producer = producer
        yield


app = FastAPI(lifespan=lifespan)


class Order(BaseModel):
    customer: str
    amount: int


@app.post("/orders", status_code=202)
async def place_order(order: Order, request: Request) -> dict[str, int | str]:
    sent = await request.app.state.producer.send(
        "orders", json.dumps(order.model_dump()), key=order.customer
    )
    written = await sent
    return {"partition": written.partition, "offset": written.offset}
