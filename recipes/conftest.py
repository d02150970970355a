"""Fixtures: the servers that test.sh has started, and the generators."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

import pytest
from polyflake import Counter, Snowflake

Generator = Snowflake | Counter


def server(kind: str) -> SplitResult:
    return urlsplit(os.environ[f"RECIPES_{kind.upper()}"])


@contextmanager
def generator(kind: str, folder: Path) -> Iterator[Generator]:
    """Opens one of the generators that each recipe must accept."""
    store = f"sqlite://{folder}/store.db"
    with (
        Counter("orders", store=store)
        if kind == "counter"
        else Snowflake(lease=store)
        if kind == "lease"
        else Snowflake(node=7)
    ) as made:
        yield made


@pytest.fixture(params=["node", "lease", "counter"])
def ids(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Generator]:
    with generator(request.param, tmp_path) as made:
        yield made
