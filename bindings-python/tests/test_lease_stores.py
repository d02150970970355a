"""Nodes leased from each kind of server, started by coordination/examples/store_server.rs."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from polyflake import LeaseLostError, LeaseUnavailableError, SequenceExhaustedError, Snowflake
from support import HOLDER, holds_the_node_of_its_ids, program, until

# Turns a wait that never ends into a failure.
pytestmark = pytest.mark.timeout(300)

ROOT = Path(__file__).resolve().parents[2]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
STORE_SERVER = TARGET / "debug/examples/store_server"
COMMANDS = {
    "redis": ["redis-server", "redis-cli"],
    # Debian installs each version in its own folder.
    "postgres": [*map(str, Path("/usr/lib/postgresql").glob("*/bin/postgres")), "postgres"][:1],
    "mariadb": ["mariadbd", "openssl"],
    "etcd": ["etcd", "etcdctl", "curl"],
}


class Server:
    """A server on a free port, which stops when this process exits for any reason."""

    def __init__(self, kind: str) -> None:
        self.process = subprocess.Popen(
            [STORE_SERVER, kind],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.url = self.line()
        self.password = "secret-of-polyflake"
        assert self.password in self.url

    def address(self, parameters: str) -> str:
        return f"{self.url}?init=always&{parameters}"

    def line(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline().rstrip("\n")
        assert line, "it says why on stderr"
        return line

    def tell(self, word: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()
        assert self.line() == word


@pytest.fixture(scope="module", params=COMMANDS)
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    for command in [str(STORE_SERVER), *COMMANDS[request.param]]:
        if shutil.which(command) is None:
            pytest.skip(f"no {command}")
    made = Server(request.param)
    yield made
    made.process.communicate()
    assert made.process.returncode == 0


def test_two_processes_have_two_nodes(server: Server) -> None:
    address = server.address("namespace=two&nodes=4-5&ttl=10m&wait=20s")
    with program(HOLDER, address) as one, program(HOLDER, address) as two:
        (first, its), (second, others) = one.told(), two.told()
        assert {first, second} == {4, 5}
        assert len({*its, *others}) == 2000
        with pytest.raises(LeaseUnavailableError, match="all 2 "):
            Snowflake(lease=address.replace("wait=20s", "wait=0s"))


def test_close_frees_the_only_node(server: Server) -> None:
    address = server.address("namespace=only&nodes=0-0&ttl=10m&wait=20s")
    with program(HOLDER, address) as holder:
        node, earlier = holder.told()
        assert node == 0
        holder.go()
        assert holder.told() == "closed"
    with program(HOLDER, address) as successor:
        node, later = successor.told()
        assert node == 0
        assert max(earlier) < min(later)


def test_a_wrong_password(server: Server) -> None:
    address = server.address("wait=1m").replace(server.password, "hunter2")
    refused = r"127\.0\.0\.1.*([Aa]uthentication failed|Access denied)"
    with pytest.raises(LeaseUnavailableError, match=refused) as caught:
        Snowflake(lease=address)
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_server_is_killed_and_comes_back(server: Server) -> None:
    address = server.address("namespace=killed&ttl=3s&wait=2m&nodes=964-979")
    ids = Snowflake(lease=address, max_wait_ms=120_000)
    issued = ids.next_ids(100)
    server.tell("kill")
    bound = 0
    lost: list[LeaseLostError] = []
    while not lost:
        lease = ids.lease
        assert lease is not None
        bound = max(bound, lease.bound_ms)
        try:
            issued.append(ids.try_next_id())
        except LeaseLostError as error:
            lost.append(error)
        except SequenceExhaustedError:
            pass
        time.sleep(0.001)
    assert server.password not in str(lost[0])
    # IDs were issued up to the bound, and none past it.
    assert time.time() * 1000 > bound - 100
    assert all(ids.decode(id_).timestamp_ms < bound for id_ in issued)
    until(lambda: ids.stats.lease_losses >= 1)
    server.tell("start")
    issued += [ids.next_id(), *ids.next_ids(1000)]
    assert len(set(issued)) == len(issued)
    assert issued == sorted(issued)
    until(lambda: holds_the_node_of_its_ids(ids))
    ids.close()
