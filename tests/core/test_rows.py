"""Which data are those of Dask: what counts is what they hold."""

from manykernels.core.rows import bare_dask, is_dask
from tests.estimators.test_containers import Container, X


def test_what_is_no_collection():
    wrapped = Container(X)
    for data in (X, X.tolist(), None, wrapped, Container):
        assert not is_dask(data)
        assert bare_dask(data) is data


def test_the_plan_of_a_dask_table_is_not_made():
    """It may take as long as reading the table."""

    class Table:
        def __dask_graph__(self):
            raise AssertionError("the plan was made")

    Table.__module__ = "dask.dataframe.core"
    assert is_dask(Table())
    assert not is_dask(Table)
