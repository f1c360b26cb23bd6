"""Integers and texts as a page holds them: compressed, in base64."""

import base64
import gzip
import json

import numpy as np

SHOWN_LETTERS = 120  # of a text


def packed(values: np.ndarray) -> str:
    """Return little-endian integers as compressed bytes in base64, all first bytes before all second ones.

    Bytes of one kind next to each other compress better: the high ones of positions are alike, the low ones noise.
    """
    columns = values.reshape(len(values), -1)
    planes = np.ascontiguousarray(columns.T).astype(columns.dtype.newbyteorder("<")).view(np.uint8)
    planes = planes.reshape(columns.shape[1], len(values), columns.dtype.itemsize).transpose(0, 2, 1)
    return base64.b64encode(gzip.compress(np.ascontiguousarray(planes).tobytes(), 6, mtime=0)).decode()


def packed_texts(values: np.ndarray) -> str:
    """Return the beginnings of texts (N,) as a compressed list of JSON in base64."""
    found = [text if len(text) <= SHOWN_LETTERS else f"{text[: SHOWN_LETTERS - 1]}…" for text in values.tolist()]
    encoded = json.dumps(found, ensure_ascii=False).encode("utf-8", "replace")
    return base64.b64encode(gzip.compress(encoded, 6, mtime=0)).decode()
