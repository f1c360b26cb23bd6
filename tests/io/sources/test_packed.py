"""Arrays packed by the CF conventions, as xarray and netCDF do: numbers are unpacked, and gaps are no numbers."""

import numpy as np
import pytest
import zarr

from scalemani.errors import DataError
from scalemani.io.sources import open_points

xarray = pytest.importorskip("xarray")
h5py = pytest.importorskip("h5py")
pytestmark = pytest.mark.filterwarnings("ignore:saving variable", "ignore:Consolidated metadata")

VALUES = np.random.default_rng(0).normal(size=(200, 6))
PACKED = {"dtype": "int16", "scale_factor": 0.001, "add_offset": 1.0, "_FillValue": -32768}
ENCODINGS = [
    PACKED,
    {"dtype": "int16", "scale_factor": 0.01, "_FillValue": -9999},
    {"dtype": "int32", "scale_factor": 1e-6},
    {"dtype": "int8", "_FillValue": -100},
    {"dtype": "float32", "_FillValue": 9.969209968386869e36},
    {"dtype": "uint16", "add_offset": -10, "missing_value": 65535},
]


def with_gaps(values):
    gaps = values.copy()
    gaps[3, 2] = gaps[90, 0] = np.nan
    return gaps


def write(folder, values, encoding, zarr_format):
    given = xarray.Dataset({"v": (("cell", "band"), values)})
    given.to_zarr(folder, encoding={"v": encoding}, zarr_format=zarr_format)
    return f"{folder}::v"


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_values_are_those_that_xarray_reads(tmp_path, encoding, zarr_format):
    source = open_points(write(f"{tmp_path}/cube.zarr", VALUES, encoding, zarr_format))
    expected = xarray.open_zarr(f"{tmp_path}/cube.zarr").v.values
    found = np.concatenate([source.read(0, 77), source.read(77, 200)])
    assert np.array_equal(found, expected)
    if "scale_factor" not in encoding and "add_offset" not in encoding:
        assert found.dtype == encoding["dtype"]


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("encoding", [one for one in ENCODINGS if "_FillValue" in one or "missing_value" in one])
def test_gaps_are_refused_with_their_first_row(tmp_path, encoding, zarr_format):
    source = open_points(write(f"{tmp_path}/cube.zarr", with_gaps(VALUES), encoding, zarr_format))
    with pytest.raises(DataError, match=r"_FillValue.* 1 values .*row 90, column 0"):
        source.read(80, 100)
    assert source.read(100, 200).shape == (100, 6)


def test_a_declared_fill_value_is_a_number_where_it_does_not_occur(tmp_path):
    array = zarr.create_array(f"{tmp_path}/plain.zarr", data=np.arange(12).reshape(4, 3), fill_value=5)
    assert np.array_equal(open_points(array).read(0, 4), np.arange(12).reshape(4, 3))


def test_hdf5_has_the_same_attributes(tmp_path):
    stored = np.rint((VALUES - 1.0) / 0.001).astype(np.int16)
    with h5py.File(tmp_path / "cube.h5", "w") as file:
        file["v"] = stored
        for name in ("scale_factor", "add_offset", "_FillValue"):
            file["v"].attrs[name] = np.array([PACKED[name]])
    found = open_points(f"{tmp_path}/cube.h5::v").read(0, 200)
    assert np.array_equal(found, stored * 0.001 + 1.0)


def test_attributes_that_cannot_be_applied_are_refused(tmp_path):
    for number, attributes in enumerate(({"add_offset": "far"}, {"scale_factor": [1.0, 2.0]}, {"_FillValue": "none"})):
        array = zarr.create_array(f"{tmp_path}/{number}.zarr", data=np.arange(12, dtype=np.int16).reshape(4, 3))
        array.attrs.update(attributes)
        with pytest.raises(DataError, match=next(iter(attributes))):
            open_points(array)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_variables_of_a_dataset_are_the_points_that_they_hold(tmp_path, zarr_format):
    write(f"{tmp_path}/cube.zarr", VALUES, PACKED, zarr_format)
    for opened in (xarray.open_zarr(f"{tmp_path}/cube.zarr"), xarray.open_zarr(f"{tmp_path}/cube.zarr", chunks=None)):
        assert np.array_equal(open_points(opened["v"]).read(0, 200), opened.v.values)
        assert np.array_equal(open_points(opened["v"].T.T[20:70]).read(5, 30), opened.v.values[25:50])


@pytest.mark.parametrize("fill", [-1, 255, None])
def test_integers_are_read_with_the_sign_that_is_declared(tmp_path, fill):
    bytes_of = np.arange(800).reshape(200, 4) % 250
    with h5py.File(tmp_path / "old.h5", "w") as file:
        data = file.create_dataset("v", data=bytes_of.astype(np.uint8).view(np.int8))
        data.attrs.update(
            {"_Unsigned": "true"} if fill is None else {"_Unsigned": np.bytes_("true"), "_FillValue": fill}
        )
        found = open_points(data)
        assert np.array_equal(found.read(0, 200), bytes_of.astype(np.uint8))
        data[7, 1] = -1
        if fill is not None:
            with pytest.raises(DataError, match="row 7, column 1"):
                found.read(0, 200)
    array = zarr.create_array(f"{tmp_path}/signed.zarr", data=np.array([[200, 1], [2, 3]], np.uint8))
    array.attrs["_Unsigned"] = "false"
    assert np.array_equal(open_points(array).read(0, 2), [[-56, 1], [2, 3]])


def test_variables_of_netcdf4_are_unpacked_by_it_and_masked(tmp_path):
    netcdf = pytest.importorskip("netCDF4")
    with netcdf.Dataset(tmp_path / "cube.nc", "w") as file:
        file.createDimension("cell", 200)
        file.createDimension("band", 6)
        variable = file.createVariable("v", "i2", ("cell", "band"), fill_value=-32768)
        variable.scale_factor = 0.001
        variable[:] = VALUES
        source = open_points(variable)
        assert np.array_equal(source.read(20, 90), np.asarray(variable[20:90]))
        variable[90, 3] = np.ma.masked
        with pytest.raises(DataError, match=r"1 masked values.*row 90, column 3"):
            source.read(20, 200)
        found = open_points(variable, gaps=True).read(0, 200)
        assert np.argwhere(np.isnan(found)).tolist() == [[90, 3]]
