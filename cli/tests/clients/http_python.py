"""HTTP requests from Python's own library, including those that users of Leaf send."""

from __future__ import annotations

import http.client
import json
import os
import sys
import traceback
import urllib.request
from collections.abc import Callable
from urllib.error import HTTPError

SECRET = os.environ["SECRET"]
counts = {"passed": 0, "failed": 0}


def check(name: str, test: Callable[..., object], *arguments: object) -> None:
    try:
        test(*arguments)
        counts["passed"] += 1
    except Exception:
        counts["failed"] += 1
        print(f"FAILED: {name}")
        traceback.print_exc(file=sys.stdout)


def get(address: str, path: str, token: str | None) -> bytes:
    request = urllib.request.Request(f"http://{address}{path}")
    if token is not None:
        request.add_header("Authorization", f"Bearer {token}")
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.read()


def refused(status: int, error: str, address: str, path: str, token: str | None) -> None:
    try:
        given = get(address, path, token)
    except HTTPError as refusal:
        said = refusal.code, json.load(refusal)["error"]
    else:
        raise AssertionError(given)
    assert said == (status, error)


def ids(address: str, token: str | None) -> None:
    found = json.loads(get(address, "/v1/ids/snowflake?n=1000", token))["ids"]
    numbers = [int(text) for text in found]
    assert len(numbers) == 1000
    assert numbers == sorted(set(numbers))
    assert numbers[0] > 2**53
    parts = json.loads(get(address, f"/v1/decode/{numbers[-1]}", token))
    assert parts["id"] == found[-1]
    eight = get(address, "/v1/ids/large?n=2&format=bytes", token)
    first, second = (int.from_bytes(eight[at : at + 8], "big") for at in (0, 8))
    assert first + 1 == second > 2**62


def leaf(address: str, token: str | None) -> None:
    first, second = (int(get(address, "/api/snowflake/get/order", token)) for _ in range(2))
    assert 2**53 < first < second
    first, second = (int(get(address, "/api/segment/get/orders", token)) for _ in range(2))
    assert 0 < first < second


def errors(address: str, token: str | None) -> None:
    for n in (0, -1, 2**60):
        refused(400, "invalid_option", address, f"/v1/ids/orders?n={n}", token)
    refused(404, "unknown_generator", address, "/v1/ids/other", token)
    refused(404, "unknown_generator", address, "/api/segment/get/other", token)
    if token is not None:
        for wrong in (None, "", "wrong", token + "x"):
            for path in ("/v1/ids/orders", "/api/snowflake/get/x", "/v1/decode/1", "/metrics"):
                refused(401, "unauthorized", address, path, wrong)


def one_connection(address: str, token: str | None) -> None:
    connection = http.client.HTTPConnection(address, timeout=60)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    connection.connect()
    port = connection.sock.getsockname()[1]
    seen = set()
    for _ in range(200):
        connection.request("GET", "/api/segment/get/orders", headers=headers)
        seen.add(connection.getresponse().read())
        assert connection.sock.getsockname()[1] == port
    assert len(seen) == 200
    connection.close()


def main() -> None:
    for name, token in (("OPEN_HTTP", None), ("CLOSED_HTTP", SECRET)):
        for test in (ids, leaf, errors, one_connection):
            check(f"{name}: {test.__name__}", test, os.environ[name], token)
    print(f"{counts['passed']} passed, {counts['failed']} failed")
    sys.exit(counts["failed"] > 0)


main()
