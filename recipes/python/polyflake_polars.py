"""Polars: a namespace of expressions that decode a column of IDs, lazily and in parallel.

orders.with_columns(made=pl.col("id").snowflake.time(Layout("twitter")))
orders.filter(pl.col("id").snowflake.field(Layout("twitter"), "worker") == 7)

The expressions only shift and mask. Unlike `Layout.decode`, they do not refuse numbers that are not
IDs of the layout.
"""

from __future__ import annotations

import polars as pl
from polyflake import Layout


@pl.api.register_expr_namespace("snowflake")
class Snowflakes:
    """The times and fields of IDs. A negative number raises an error."""

    def __init__(self, ids: pl.Expr) -> None:
        self._ids = ids.cast(pl.UInt64)

    def _bits(self, shift: int, bits: int) -> pl.Expr:
        return (self._ids // (1 << shift) % (1 << bits)).cast(pl.Int64)

    def time(self, layout: Layout) -> pl.Expr:
        """When each ID was made: the start of its tick, in UTC."""
        ticks = self._bits(layout.timestamp_shift, layout.timestamp_bits)
        return (ticks * layout.tick_ms + layout.epoch_ms).cast(pl.Datetime("ms", "UTC"))

    def field(self, layout: Layout, name: str) -> pl.Expr:
        """`timestamp`, `sequence`, or one of the node's fields."""
        [field] = [field for field in layout.fields if field.name == name]
        return self._bits(field.shift, field.bits)
