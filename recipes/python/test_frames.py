"""The recipes for Polars and pandas: a column's values equal those of `decode` for each ID."""

from __future__ import annotations

import random

import numpy as np
import pandas as pd
import polars as pl
import polyflake_pandas  # noqa: F401 (it registers itself)
import polyflake_polars  # noqa: F401
import pytest
from polyflake import PRESETS, Decoded, InvalidIdError, Layout


def some(layout: Layout) -> list[Decoded]:
    """The first and last ID, and random ones in between."""
    random.seed(layout.epoch_ms)
    last = 2 ** min(layout.total_bits, 63) - 1
    numbers = [0, last, *(random.randint(0, last) for _ in range(2000))]
    # Only those whose time fits a datetime.
    return [made for made in map(layout.decode, numbers) if made.time is not None]


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("unsigned", [False, True])
def test_polars(preset: str, unsigned: bool) -> None:
    layout = Layout(preset)
    made = some(layout)
    frame = pl.DataFrame(
        {"id": [one.id for one in made]}, {"id": pl.UInt64 if unsigned else pl.Int64}
    )
    column = pl.col("id").snowflake
    names = [field.name for field in layout.fields if field.name not in ("timestamp", "sequence")]
    seen = (
        frame.lazy()
        .select(
            time=column.time(layout),
            sequence=column.field(layout, "sequence"),
            **{name: column.field(layout, name) for name in names},
        )
        .collect()
    )
    assert seen["time"].dtype == pl.Datetime("ms", "UTC")
    assert seen["time"].to_list() == [one.time for one in made]
    assert seen["sequence"].to_list() == [one.sequence for one in made]
    for name in names:
        assert seen[name].to_list() == [one.fields[name] for one in made]


def test_polars_keeps_nulls_and_refuses_negative_numbers() -> None:
    layout = Layout("twitter")
    time = pl.col("id").snowflake.time(layout)
    frame = pl.DataFrame({"id": [None, 1541815603606036480]})
    seen = frame.select(time)["id"].to_list()
    assert seen == [None, layout.decode(1541815603606036480).time]
    with pytest.raises(pl.exceptions.InvalidOperationError):
        pl.DataFrame({"id": [-1]}).select(time)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_pandas(preset: str, dtype: str) -> None:
    layout = Layout(preset)
    made = some(layout)
    # A view with gaps, so that its index is not the default one. The columns keep that index.
    ids = pd.Series([one.id for one in made], dtype=dtype)[::2]
    made = made[::2]
    times = ids.snowflake.time(layout)
    assert times.index.equals(ids.index)
    assert str(times.dtype) == "datetime64[ms, UTC]"
    assert times.dt.to_pydatetime().tolist() == [one.time for one in made]
    for name in made[0].fields:
        assert ids.snowflake.field(layout, name).tolist() == [one.fields[name] for one in made]


def test_pandas_refuses_what_is_no_id() -> None:
    with pytest.raises(InvalidIdError):
        pd.Series([1, -1]).snowflake.time(Layout("twitter"))
    with pytest.raises(AttributeError, match="float64"):
        _ = pd.Series([1.0, np.nan]).snowflake
