"""redis-py, with both versions of the protocol, with and without a token."""

from __future__ import annotations

import asyncio
import os
import sys
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import redis
import redis.asyncio
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, ResponseError
from redis.retry import Retry

SECRET = os.environ["SECRET"]
DECODED = "1541815603606036480"
counts = {"passed": 0, "failed": 0}


def check(name: str, test: Callable[..., object], *arguments: object) -> None:
    try:
        test(*arguments)
        counts["passed"] += 1
    except Exception:
        counts["failed"] += 1
        print(f"FAILED: {name}")
        traceback.print_exc(file=sys.stdout)


def place(name: str) -> dict[str, object]:
    host, port = os.environ[name].rsplit(":", 1)
    return {"host": host, "port": int(port), "socket_timeout": 60}


def raises(kind: type[Exception], part: str, call: Callable[[], object]) -> None:
    try:
        given = call()
    except kind as error:
        said = str(error)
    else:
        raise AssertionError(f"{given!r} instead of {kind.__name__}: {part}")
    assert part in said, said


def numbers(client: redis.Redis) -> None:
    first, second = client.incr("snowflake"), client.incr("snowflake")
    assert 2**53 < first < second < 2**63
    # If numbers were rounded to doubles, consecutive ones would not differ by 1.
    assert client.incr("large") + 1 == client.incr("large") > 2**62
    last = client.incrby("orders", 10)
    assert client.incr("orders") > last >= 10


def commands_of_its_own(client: redis.Redis, protocol: int) -> None:
    run = client.execute_command
    several = run("PF.NEXT", "snowflake", 5)
    assert len(several) == 5
    assert several == sorted(set(several))
    assert run("PF.NEXT", "orders") < run("PF.NEXT", "orders")
    assert len(run("PF.NEXT", "uuid")) == 36
    wide = run("PF.NEXT", "wide")
    assert isinstance(wide, str)
    assert int(wide) >= 2**63
    assert int(run("INCR", "wide")) > int(wide)
    assert run("PF.SEQ", "inbox", "alice") + 1 == run("PF.SEQ", "inbox", "alice")
    decoded = run("PF.DECODE", DECODED)
    if protocol == 2:
        decoded = dict(zip(decoded[::2], decoded[1::2], strict=True))
    assert decoded["id"] == DECODED
    assert decoded["node"] == 378
    assert decoded["time"] == "2022-06-28T16:07:40.105Z"
    again = run("PF.DECODE", several[0])
    assert str(several[0]) in (again if protocol == 2 else again.values())


def pipelines(client: redis.Redis) -> None:
    pipe = client.pipeline(transaction=False)
    for _ in range(500):
        pipe.incr("snowflake").incr("orders").execute_command("PF.NEXT", "large", 2)
    replies = pipe.execute()
    ids, orders = replies[::3], replies[1::3]
    pairs = [number for pair in replies[2::3] for number in pair]
    assert ids == sorted(set(ids))
    assert len(ids) == 500
    assert orders == sorted(set(orders))
    assert len(orders) == 500
    assert pairs == sorted(set(pairs))
    assert len(pairs) == 1000
    pipe.incr("orders").incr("other").incr("orders")
    before, error, after = pipe.execute(raise_on_error=False)
    assert before < after
    assert isinstance(error, ResponseError)


def errors(client: redis.Redis) -> None:
    raises(ResponseError, "unknown_generator", lambda: client.incr("other"))
    raises(ResponseError, "are not consecutive", lambda: client.incrby("snowflake", 2))
    raises(ResponseError, "unknown command 'get'", lambda: client.get("orders"))
    raises(ResponseError, "unknown command", lambda: client.pipeline().incr("orders").execute())
    for n in (0, -1, 2**60):
        raises(ResponseError, f"n is {n}; it takes", lambda n=n: client.incrby("orders", n))
        call = lambda n=n: client.execute_command("PF.NEXT", "orders", n)  # noqa: E731
        raises(ResponseError, f"n is {n}; it takes", call)
    assert client.incr("orders") > 0


def what_clients_ask(client: redis.Redis) -> None:
    assert client.ping()
    assert client.echo("é") == "é"
    assert client.client_getname() == "test"
    assert client.client_setname("again")
    assert client.client_getname() == "again"
    assert client.client_id() >= 0
    info = client.info()
    assert info["redis_version"].startswith("7.")
    assert info["loading"] == 0
    assert client.info("server")["redis_mode"] == "standalone"
    assert client.command_count() > 10
    assert client.command()["incr"]["arity"] == 2
    assert client.execute_command("HELLO")[0 if client_protocol(client) == 2 else "server"]
    assert client.select(0)
    raises(ResponseError, "out of range", lambda: client.select(1))


def client_protocol(client: redis.Redis) -> int:
    return int(client.connection_pool.connection_kwargs["protocol"])


def pools(options: dict[str, object]) -> None:
    pool = redis.ConnectionPool(max_connections=8, health_check_interval=1, **options)
    client = redis.Redis(connection_pool=pool)
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda _: client.incr("orders"), range(1000)))
    assert len(set(found)) == 1000
    client.close()
    pool.disconnect()


async def asynchronous(options: dict[str, object]) -> None:
    async with redis.asyncio.Redis(**options) as client:
        found = await asyncio.gather(*(client.incr("snowflake") for _ in range(50)))
        assert len(set(found)) == 50
        [error] = await asyncio.gather(client.incr("other"), return_exceptions=True)
        assert isinstance(error, ResponseError)
        assert "unknown_generator" in str(error)


def tokens(options: dict[str, object]) -> None:
    # By default, the client tries a wrong token ten times.
    options = {**options, "retry": Retry(NoBackoff(), 0)}
    for wrong in ("wrong", SECRET + "x", SECRET[:-1]):
        client = redis.Redis(**{**options, "password": wrong})
        raises(AuthenticationError, "invalid username-password", lambda c=client: c.incr("orders"))
    client = redis.Redis(**{**options, "password": None})
    raises(AuthenticationError, "uthenticat", lambda: client.incr("orders"))
    assert redis.Redis(**{**options, "username": "anybody"}).incr("orders") > 0


def main() -> None:
    for protocol in (2, 3):
        for name, password in (("OPEN", None), ("CLOSED", SECRET)):
            options = {**place(name), "password": password, "protocol": protocol}
            options |= {"decode_responses": True, "client_name": "test", "db": 0}
            client = redis.Redis(**options)
            of = f"RESP{protocol}, {name.lower()}"
            check(f"{of}: numbers", numbers, client)
            check(f"{of}: commands of its own", commands_of_its_own, client, protocol)
            check(f"{of}: pipelines", pipelines, client)
            check(f"{of}: errors", errors, client)
            check(f"{of}: what clients ask", what_clients_ask, client)
            check(f"{of}: pools", pools, options)
            check(f"{of}: asyncio", lambda o=options: asyncio.run(asynchronous(o)))
            if password:
                check(f"{of}: tokens", tokens, options)
            client.close()
    print(f"{counts['passed']} passed, {counts['failed']} failed")
    sys.exit(counts["failed"] > 0)


main()
