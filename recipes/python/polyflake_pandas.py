"""pandas: an accessor that decodes a column of IDs, with the package's own vectorised decoder.

orders["made"] = orders["id"].snowflake.time(Layout("twitter"))
orders["worker"] = orders["id"].snowflake.field(Layout("twitter"), "worker")

A number that is not an ID of the layout raises an error, as in `Layout.decode`.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from polyflake import DecodedAll, Layout


@pd.api.extensions.register_series_accessor("snowflake")
class Snowflakes:
    """The times and fields of IDs."""

    def __init__(self, ids: pd.Series[int]) -> None:
        if ids.dtype.kind not in "iu":
            raise AttributeError(f"IDs are a column of 64-bit integers, not of {ids.dtype}")
        self._ids = ids

    def decoded(self, layout: Layout) -> DecodedAll:
        return layout.decode_all(np.ascontiguousarray(self._ids))

    def time(self, layout: Layout) -> pd.Series[pd.Timestamp]:
        """When each ID was made: the start of its tick, in UTC."""
        times = np.asarray(self.decoded(layout).timestamps_ms).view("datetime64[ms]")
        return pd.Series(times, self._ids.index).dt.tz_localize("UTC")

    def field(self, layout: Layout, name: str) -> pd.Series[int]:
        """One of the node's fields."""
        return pd.Series(np.asarray(self.decoded(layout).fields[name]), self._ids.index)
