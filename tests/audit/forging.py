"""Copies of runs with other numbers, whose digests fit these: what an audit has to find by the numbers alone."""

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from zarr.codecs import BloscCodec


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]


def read_json(path: Path) -> dict[str, Any]:
    value = json.loads(path.read_text())
    value.pop("digest", None)
    return value


def write_json(path: Path, value: dict[str, Any]) -> None:
    compact = json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
    path.write_text(json.dumps({**value, "digest": digest(compact)}, sort_keys=True))


class Forged:
    """A copy of a run that is written to; `seal` makes its digests fit."""

    def __init__(self, source: Path, root: Path) -> None:
        shutil.copytree(source, root)
        self.root, self.plan = root, read_json(root / "plan.json")
        self.n_points, self.block_rows = (self.plan["dimensions"][name] for name in ("n_points", "block_rows"))

    def group(self, stage: str) -> Path:
        return self.root / "stages" / stage / self.plan["keys"][stage]

    def path(self, stage: str, name: str) -> Path:
        return self.group(stage) / "arrays" / name

    def read(self, stage: str, name: str) -> np.ndarray:
        return np.asarray(zarr.open_array(self.path(stage, name), mode="r")[...])

    def write(self, stage: str, name: str, values: np.ndarray) -> None:
        """Write values in the place of an array, of any length."""
        old = zarr.open_array(self.path(stage, name), mode="r")
        attributes, chunks, dtype = old.attrs.asdict(), old.chunks, old.dtype
        values = np.asarray(values).astype(dtype)
        if values.shape != old.shape:
            chunks = tuple(max(1, length) for length in values.shape)
        shutil.rmtree(self.path(stage, name))
        shuffle = "shuffle" if dtype.itemsize > 1 else "noshuffle"
        codec = BloscCodec(typesize=dtype.itemsize, cname="lz4", clevel=5, shuffle=shuffle, blocksize=0)
        # What is equal to the fill value is written all the same, as runs do.
        made = zarr.create_array(
            self.path(stage, name), shape=values.shape, chunks=chunks, dtype=dtype, compressors=codec,
            fill_value=-1 if dtype.kind == "i" else np.nan if dtype.kind == "f" else np.iinfo(dtype).max,
            attributes=attributes, config={"write_empty_chunks": True},
        )  # fmt: skip
        made[...] = values

    def change(self, stage: str, name: str, act: Callable[[np.ndarray], np.ndarray]) -> None:
        """Write what a function makes of an array in its place."""
        self.write(stage, name, act(self.read(stage, name).copy()))

    def claim(self, stage: str, **certificates: Any) -> None:
        """Write other certificates into the record of a stage."""
        record = read_json(self.group(stage) / "complete.json")
        record["certificates"] |= certificates
        write_json(self.group(stage) / "complete.json", record)

    def blocks(self, stage: str, step: str = "block-") -> list[str]:
        """Return the folders of the parts of a stage, in order."""
        return sorted(path.name for path in self.path(stage, "").glob(f"{step}*"))

    def lists(self) -> tuple[str, str]:
        """Return the paths of the graph's neighbours and distances."""
        last = int(self.read("neighbors", "last_round"))
        return f"round_{last}/indices", f"round_{last}/distances"

    def seal(self) -> Path:
        """Make digests of objects, marks, records and inputs fit what is stored; return the run."""
        contents = {}
        for stage in self.plan["keys"]:
            record = read_json(self.group(stage) / "complete.json")
            for unit, entry in record["units"].items():
                arrays = {key.removesuffix("/zarr.json") for key in entry if key.endswith("/zarr.json")}
                keys = {key for key in entry if self.path(stage, key).is_file()}
                for array in arrays:  # chunks of a row array are those of its blocks' units
                    of_blocks = any(
                        key.startswith(f"{array}/c/")
                        for other in record["units"].values()
                        if other is not entry
                        for key in other
                    )
                    if not of_blocks:
                        keys |= {
                            str(one.relative_to(self.path(stage, "")))
                            for one in self.path(stage, array).rglob("*")
                            if one.is_file()
                        }
                bytes_of = {key: self.path(stage, key).read_bytes() for key in keys}
                record["units"][unit] = {key: [len(found), digest(found), ""] for key, found in bytes_of.items()}
                if (self.group(stage) / "marks" / f"{unit}.json").exists():
                    write_json(self.group(stage) / "marks" / f"{unit}.json", record["units"][unit])
            write_json(self.group(stage) / "complete.json", record)
            entries = {key: found for entry in record["units"].values() for key, (_, found, _) in entry.items()}
            contents[stage] = digest("\n".join(sorted(f"{key} {found}" for key, found in entries.items())).encode())
        for stage in self.plan["keys"]:
            path = self.group(stage) / "inputs.json"
            inputs = read_json(path)
            write_json(path, {name: contents.get(name, found) for name, found in inputs.items()})
        return self.root
