"""Results as data frames: columns by name, written by narwhals for pandas, polars or pyarrow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from calibrant.dsl.errors import CalibrantError, short_repr
from calibrant.dsl.pictures import Picture, Pictured, table_picture


class Framed(Pictured):
    """A result or table as a data frame, a row for each of its parts."""

    @property
    def frame_columns(self) -> Mapping[str, Sequence[Any]]:
        """Columns of the frame by name."""
        raise NotImplementedError

    def to_frame(self, backend: str = "pandas") -> Any:
        """Return a data frame. backend: pandas, polars, pyarrow or another that narwhals (extra `frames`) writes."""
        columns = {name: list(values) for name, values in self.frame_columns.items()}
        try:
            narwhals = import_module("narwhals.stable.v2")
            types = {str: narwhals.String, int: narwhals.Int64, float: narwhals.Float64}
            schema = {name: types[kind] for name, kind in self.frame_types.items() if name in columns}
            return narwhals.from_dict(columns, schema or None, backend=backend).to_native()
        except ImportError as error:
            raise CalibrantError(
                f"a frame of {short_repr(backend)} needs narwhals (pip install 'calibrant[frames]') and that package:"
                f" {error}"
            ) from None
        except (ValueError, AttributeError):
            raise CalibrantError(f"backend is {short_repr(backend)}; allowed: pandas, polars, pyarrow, modin") from None

    def picture(self) -> Picture:
        """Return the first rows of the frame."""
        return table_picture(repr(self).strip("<>"), self.frame_columns)

    @property
    def frame_types(self) -> Mapping[str, type]:
        """Types of the columns (str, int, float), where they are the same in every frame; else those of the values."""
        return {}
