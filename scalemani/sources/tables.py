"""Points in Parquet files: a coordinate a column or one column of lists, the files of a folder one after the other."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scalemani.errors import ConfigError, DataError
from scalemani.sources.arrow_columns import PointColumns, point_columns
from scalemani.sources.base import check_file, natural_order, optional_module
from scalemani.sources.batches import BatchedPoints
from scalemani.sources.bucket_files import BucketFile

BUFFER_BYTES = 2**16  # of each column that is read: without a buffer, and with one ahead, all of a row group is held
PAGE_BYTES = 2**20  # that writers fill by default
COPIES_OF_PAGES = 4  # as read, decompressed and decoded, and what the allocator keeps; measured


class ParquetPoints(BatchedPoints[Path | BucketFile]):
    """A Parquet file, or the files of a directory in natural order of their names (part.2 before part.10).

    The index column that pandas may have stored is left out. A part is a row group.
    """

    def __init__(self, path: Path | BucketFile, columns: tuple[str, ...] | None = None) -> None:
        self.path, self.asked = path, columns
        self.remote = isinstance(path, BucketFile)
        files: list[Any] = [path] if isinstance(path, BucketFile) or path.is_file() else parquet_files(path)
        parts, starts, found = [], [0], None
        for file in files:
            opened = open_parquet(file)
            own = point_columns(opened.schema_arrow, columns, str(file))
            found = found or own
            check_same(own, found, file, files[0])
            self.held_bytes = max(self.held_bytes, COPIES_OF_PAGES * bytes_of_pages(opened.metadata))
            for group in range(opened.metadata.num_row_groups):
                parts.append((file, group))
                starts.append(starts[-1] + opened.metadata.row_group(group).num_rows)
        assert found is not None  # of at least one file
        super().__init__(found, width_of(found, files), parts, starts, str(path))

    def __reduce__(self) -> tuple[type["ParquetPoints"], tuple[Path | BucketFile, tuple[str, ...] | None]]:
        return ParquetPoints, (self.path, self.asked)

    def batches(self, part: int) -> Iterator[Any]:
        """Yield the record batches of a row group."""
        path, group = self.parts[part]
        names = list(self.columns.names)
        return open_parquet(path).iter_batches(self.batch_rows, row_groups=[group], columns=names, use_threads=False)


def columns_of(member: str | None) -> tuple[str, ...] | None:
    """Return the columns named after `::`, separated by commas."""
    return tuple(name.strip() for name in member.split(",")) if member else None


def check_same(found: PointColumns, expected: PointColumns, path: Path | BucketFile, first: Path | BucketFile) -> None:
    """Refuse a file whose columns are not those of the first one.

    Parameters
    ----------
    found : its columns
    expected : those of the first one
    path : of the file
    first : the path of the first one
    """
    if found != expected:
        raise DataError(
            f"all files must have the same columns: {path} has {len(found.names)} that read as {found.dtype} "
            f"({', '.join(found.names[:5])}), {first} has {len(expected.names)} that read as {expected.dtype} "
            f"({', '.join(expected.names[:5])})"
        )


def width_of(columns: PointColumns, files: list[Any]) -> int:
    """Return the number of coordinates, that of the first list where the type does not tell it."""
    if not columns.lists:
        return len(columns.names)
    if columns.width is not None:
        return columns.width
    for path in files:
        for batch in open_parquet(path).iter_batches(1, columns=list(columns.names)):
            return int(columns.rows(batch, str(path)).shape[1])
    return 0


def bytes_of_pages(metadata: Any) -> int:
    """Return about how many bytes the pages of all columns of a file take of which one each is decoded at a time."""
    if not metadata.num_row_groups:
        return 0
    group = metadata.row_group(0)
    return sum(min(PAGE_BYTES, group.column(column).total_uncompressed_size) for column in range(group.num_columns))


def parquet_files(folder: Path) -> list[Path]:
    """Return the Parquet files below a directory; names that start with a dot or underscore are no data."""
    files = [
        path
        for path in folder.rglob("*.parquet")
        if not any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
    ]
    for path in files:
        check_file(path)
    if not files:
        raise ConfigError(f"{folder} holds no .parquet file: give a folder with some, or one file")
    return sorted(files, key=natural_order)


def open_parquet(path: Path | BucketFile) -> Any:
    """Open a Parquet file, or say that it is damaged."""
    arrow, parquet = optional_module("pyarrow", "parquet"), optional_module("pyarrow.parquet", "parquet")
    try:
        file = path.open(BUFFER_BYTES) if isinstance(path, BucketFile) else path
        opened = parquet.ParquetFile(file, buffer_size=BUFFER_BYTES, pre_buffer=False)
        opened.schema_arrow.names  # noqa: B018 - letters that are none come to light here
    except (OSError, UnicodeDecodeError, arrow.ArrowException) as error:
        raise DataError(f"{path} is no Parquet file, or is truncated or damaged: {error}") from error
    return opened
