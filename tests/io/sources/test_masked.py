"""Masked values are gaps by every way in which they come: refused with their place, or NaN; never read as data."""

import dask.array as da
import numpy as np
import pytest

import scalemani as sm
from scalemani.errors import DataError
from scalemani.io.sources import open_points

VALUES = np.random.default_rng(0).normal(size=(300, 4)) * 100
MASK = np.zeros((300, 4), bool)
MASK[205, 2] = MASK[9, 0] = MASK[9, 3] = True
LEAVE_OUT = {"points.missing": "leave-out"}


def of_objects(masked):
    column = np.empty(len(masked), object)
    column[:] = list(masked)
    return column


def hidden(masked):
    """A Dask array of masked blocks that says nothing of masks."""
    chunks = da.from_array(np.arange(300)[:, np.newaxis], chunks=(70, 1))
    blocks = chunks.map_blocks(
        lambda rows: masked[rows.ravel()], dtype=masked.dtype, meta=np.empty((0, 0), masked.dtype)
    )
    return da.Array(blocks.dask, blocks.name, (blocks.chunks[0], (4,)), dtype=masked.dtype, meta=np.empty((0, 0)))


FORMS = {
    "array": lambda masked: masked,
    "columns first": lambda masked: masked.T.copy().T,
    "view": lambda masked: np.ma.concatenate([masked, masked])[:300],
    "list of rows": list,
    "tuple of rows": tuple,
    "column of rows": of_objects,
    "dask": lambda masked: da.from_array(masked, chunks=(70, 4)),
    "dask, columns apart": lambda masked: da.from_array(masked, chunks=(110, 3)),
    "dask, one chunk": lambda masked: da.from_array(masked, chunks=(300, 4)),
    "dask, masked later": lambda masked: da.ma.masked_array(da.from_array(masked.data, chunks=(70, 4)), masked.mask),
    "dask, untold": hidden,
}


@pytest.mark.filterwarnings("ignore:overflow encountered in cast")  # NumPy's fill value of masked float16
@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", ">f4", "i2", "u1", "i8", "?"])
@pytest.mark.parametrize("form", FORMS)
def test_masked_values_are_refused_with_their_place_or_nan(form, dtype):
    values = np.abs(VALUES).astype(dtype) if np.dtype(dtype).kind == "u" else VALUES.astype(dtype)
    given = FORMS[form](np.ma.masked_array(values, MASK))
    with pytest.raises(DataError, match=r"3 masked values in rows \[0, 300\), the first in row 9, column 0"):
        open_points(given).read(0, 300)
    if form == "dask, untold" and np.dtype(dtype).kind in "iub" and np.dtype(dtype).itemsize < 4:
        with pytest.raises(DataError, match="says that its values are"):  # a type without NaN was promised
            open_points(given, gaps=True).read(0, 300)
        return
    source = open_points(given, gaps=True)
    for step in (300, 77):
        found = np.concatenate([source.read(row, min(row + step, 300)) for row in range(0, 300, step)])
        assert np.array_equal(np.isnan(found), MASK)
        assert np.array_equal(found[~MASK], values[~MASK])
    whole = FORMS[form](np.ma.masked_array(values, np.zeros_like(MASK)))
    assert np.array_equal(open_points(whole).read(0, 300), values)


@pytest.mark.parametrize("form", [*FORMS, "objects"])
def test_estimators_leave_them_out(form):
    given = (FORMS | {"objects": lambda masked: masked.astype(object)})[form](np.ma.masked_array(VALUES, MASK))
    with pytest.raises(DataError, match="masked values"):
        sm.LandmarkPCA(n_landmarks=20).fit(given)
    model = sm.LandmarkPCA(n_landmarks=20, settings=LEAVE_OUT).fit(given)
    assert np.flatnonzero(np.isnan(model.embedding_[:, 0])).tolist() == [9, 205]
    assert model.certificates_["duplicates"]["columns_with_gaps"] == "0 (1), 2 (1), 3 (1)"
    assert np.array_equal(model.transform(given), model.embedding_, equal_nan=True)


class Tensor:
    """What torch's tensors are to NumPy: an array of most of them, an error of the others."""

    def __init__(self, values, error=None, dtype="torch.float32", device="cpu", layout="torch.strided"):
        self.values, self.error, self.dtype, self.device, self.layout = values, error, dtype, device, layout
        self.shape = values.shape

    def detach(self):
        return self

    def __len__(self):
        return len(self.values)

    def __getitem__(self, rows):
        return Tensor(self.values[rows], self.error, self.dtype, self.device, self.layout)

    def __array__(self, dtype=None, copy=None):
        if self.error is not None:
            raise self.error
        return np.asarray(self.values, dtype)


@pytest.mark.parametrize(
    ("error", "properties", "line"),
    [
        (RuntimeError("Can't call numpy() on Tensor that requires grad."), {}, r"detach\(\)\.cpu\(\)\.numpy\(\)"),
        (TypeError("can't convert cuda:0 device type tensor"), {"device": "cuda:0"}, r"\.cpu\(\)"),
        (TypeError("Got unsupported ScalarType BFloat16"), {"dtype": "torch.bfloat16"}, r"\.float\(\)\.numpy"),
        (TypeError("can't convert Sparse layout tensor"), {"layout": "torch.sparse_coo"}, r"\.to_dense\(\)\.cpu"),
        (NotImplementedError("Cannot copy out of meta tensor; no data!"), {"device": "meta"}, "holds no values"),
    ],
)
def test_tensors_that_are_no_arrays_are_refused_with_the_line_to_write(error, properties, line):
    tensor = Tensor(VALUES, error, **properties)
    for given in (tensor, list(tensor)):
        with pytest.raises(DataError, match=line):
            open_points(given)
        with pytest.raises(DataError, match=line):
            sm.LandmarkPCA().fit(given)
    assert np.array_equal(open_points(Tensor(VALUES)).read(0, 300), VALUES)


def test_tensors_of_torch():
    torch = pytest.importorskip("torch", exc_type=ImportError)
    tensor = torch.tensor(VALUES)
    for given in (tensor, tensor.T.contiguous().T, list(tensor), tensor.half(), (tensor * 100).int()):
        assert np.array_equal(open_points(given).read(0, 300), np.stack([row.numpy() for row in given]))
    for refused in (
        tensor.requires_grad_(),
        tensor.to("meta"),
        tensor.detach().bfloat16(),
        tensor.detach().to_sparse(),
    ):
        with pytest.raises(DataError, match="tensor"):
            open_points(refused)


def test_numbers_that_numpy_has_from_other_libraries(tmp_path):
    types = pytest.importorskip("ml_dtypes")
    for kind in (types.bfloat16, types.float8_e4m3fn, types.int4):
        given = (VALUES / 50).astype(kind)
        given.tofile(tmp_path / "points.bin")
        mapped = np.memmap(tmp_path / "points.bin", dtype=kind, mode="r", shape=given.shape)
        for form in (given, list(given), da.from_array(given, chunks=(100, 4)), mapped, np.asfortranarray(given)):
            found = open_points(form).read(0, 300)
            assert found.dtype == np.float32
            assert np.array_equal(found, given.astype(np.float32))
    np.save(tmp_path / "points.npy", VALUES.astype(types.bfloat16))  # which NumPy stores as bytes without a type
    with pytest.raises(DataError, match=r"view\(ml_dtypes\.bfloat16\)"):
        open_points(tmp_path / "points.npy")


def test_masked_integers_that_lose_digits_beside_gaps_are_refused():
    values = np.ma.masked_equal(np.array([[1, 2], [3, 2**53 + 1], [5, 6]]), 6)
    with pytest.raises(DataError, match=r"row.* 1"):
        open_points(values, gaps=True)
    np.testing.assert_array_equal(open_points(values[::2], gaps=True).read(0, 2), [[1, 2], [5, np.nan]])
