"""Tables of objects that cannot be used are refused before any work, as one kind of error."""

import datetime

import numpy as np
import pytest
import scipy.sparse as sp

import scalemani as sm
from scalemani.errors import DataError

ROWS = np.random.default_rng(0).random((60, 3))


def test_names_of_columns_are_looked_at_before_any_work(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(ROWS, columns=["a", 1, "b"])
    with pytest.raises(TypeError, match="string"):
        sm.LaplacianEigenmaps(store=tmp_path / "run").fit(frame)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "value", [object(), datetime.date(2026, 1, 1), None, 1j, 10**400, "a"], ids=lambda value: type(value).__name__
)
@pytest.mark.parametrize("kind", [list, lambda rows: np.array(rows, dtype=object)], ids=["lists", "objects"])
def test_what_is_no_number_among_objects_is_a_data_error(value, kind):
    rows = ROWS.astype(object)
    rows[7, 1] = value
    with pytest.raises(DataError):
        sm.LaplacianEigenmaps().fit(kind(rows.tolist()))


def test_names_of_sparse_columns_are_kept():
    pandas = pytest.importorskip("pandas")
    counts = sp.random(300, 40, density=0.1, format="csr", random_state=0)
    frame = pandas.DataFrame.sparse.from_spmatrix(counts, columns=[f"word{i}" for i in range(40)])
    model = sm.LaplacianEigenmaps(perplexity=10).fit(frame)
    assert list(model.feature_names_in_) == list(frame.columns)
    assert np.array_equal(model.embedding_, sm.LaplacianEigenmaps(perplexity=10).fit(counts).embedding_)
    assert np.array_equal(model.transform(frame[:5]), model.transform(counts[:5]))
    with pytest.raises(ValueError, match="feature names"):
        model.transform(frame.rename(columns={"word3": "word40"}))
