"""Reading tables: each format, and each way in which a file can be wrong."""

import gzip
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import dump_svmlight_file

from manykernels.datasets import ParquetRows
from manykernels.tables.reading import READERS, is_libsvm, read_table, table_stem

PEOPLE = pd.DataFrame({"age": [31, 45], "city": ["Rome", "New York"], "smokes": [True, False]})


@pytest.fixture
def write(tmp_path):
    def write(name, content):
        path = tmp_path / name
        raw = content.encode() if isinstance(content, str) else content
        path.write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
        return path

    return write


class TestSeparated:
    @pytest.mark.parametrize("suffix", [".csv", ".tsv", ".csv.gz", ".tsv.gz", ".CSV"])
    def test_round_trip(self, tmp_path, suffix):
        path = tmp_path / f"people{suffix}"
        PEOPLE.to_csv(path, sep="\t" if "tsv" in suffix else ",", index=False)
        pd.testing.assert_frame_equal(read_table(path), PEOPLE)

    def test_semicolons(self, write):
        table = read_table(write("wine.csv", "acid;sugar, g\n7.4;1.9\n".replace(", g", "")))
        assert table.to_dict("list") == {"acid": [7.4], "sugar": [1.9]}

    def test_commas_in_numbers_where_semicolons_separate_values(self, write):
        table = read_table(write("wine.csv", "acid;sugar;name\n7,4;2;a,b\n;1,25;3\n"))
        assert table["acid"].isna().tolist() == [False, True]
        assert table["acid"][0] == 7.4
        assert table["sugar"].tolist() == [2.0, 1.25]
        assert table["name"].tolist() == ["a,b", "3"]

    def test_tabs(self, write):
        assert read_table(write("a.csv", "age\tcity\n31\tRome\n")).to_dict("list") == {"age": [31], "city": ["Rome"]}

    def test_missing_values_at_the_end_of_a_row_are_no_short_row(self, write):
        table = read_table(write("a.csv", 'age,city\n31,\n\n45,"New\nYork"\n  \n'))
        assert table["age"].tolist() == [31, 45]
        assert table["city"].isna().tolist() == [True, False]

    def test_spaces_and_byte_order_mark(self, write):
        table = read_table(write("a.csv", "\ufeffage, city\n31, Rome\n"))
        assert table.to_dict("list") == {"age": [31], "city": ["Rome"]}

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ("", "is empty"),
            ("a,b\n", "has 0 rows and 2 columns"),
            ("a,b\n1,2,3\n4,5,6\n", "more values, separated by commas, than its first line"),
            ("a,b\n1,2\n4,5,6\n", "line 3"),
            (b"a,b\n\xff\xfe,2\n", "must be text in UTF-8"),
        ],
    )
    def test_bad_content(self, write, content, message):
        with pytest.raises(ValueError, match=message):
            read_table(write("bad.csv", content))

    @pytest.mark.parametrize(
        "content",
        [
            '"weight, kg";height;y\n80,5;181;no\n',
            "weight;height;y\n80,5;181;no\n",
            "sep=;\na,b;height;y\n80,5;181;no\n",
            "weight|height|y\n80.5|181|no\n",
            '"sep=|"\nweight|height|y\n80.5|181|no\n',
        ],
    )
    def test_separators(self, write, content):
        assert read_table(write("people.csv", content)).to_numpy().tolist() == [[80.5, 181, "no"]]

    def test_the_separator_is_named_and_so_is_the_line(self, write):
        with pytest.raises(ValueError, match="line 3 has 1 values separated by bars, and the first line has 2 names"):
            read_table(write("a.csv", "sep=|\na|b\n1;2\n"))

    def test_codes_keep_their_zeros(self, write):
        table = read_table(write("a.csv", 'zip,n,"q",x,day\n0100,1,"01",0.5,2\n2000,10,"2 ",00.7,0\n,3,,03,1\n'))
        assert table["zip"].tolist()[:2] == ["0100", "2000"]
        assert table["zip"].isna()[2]
        assert table["q"].str.strip().tolist()[:2] == ["01", "2"]
        assert table.dtypes[["n", "x", "day"]].tolist() == [np.int64, np.float64, np.int64]

    @pytest.mark.parametrize(
        ("separator", "cells", "numbers"),
        [
            (",", ["$1,234.50", "-$3"], [1234.5, -3]),
            (",", ["45%", "7.5 %"], [45, 7.5]),
            (",", ["1,234", "999"], [1234, 999]),
            (";", ["1,5e+03", "2"], [1500, 2]),
            (";", ["12,5 €", "3 €"], [12.5, 3]),
        ],
    )
    def test_numbers_as_people_write_them(self, write, separator, cells, numbers):
        rows = "".join(f'"{cell}"{separator}a\n' for cell in cells)
        table = read_table(write("a.csv", f"n{separator}b\n{rows}"))
        assert table["n"].tolist() == numbers

    @pytest.mark.parametrize(
        "cells", [["45%", "0.45"], ["1.234,5", "3"], ["1,23", "4,567"], ["$5", "€5"], ["e5", "e6"]]
    )
    def test_what_is_no_such_number(self, write, cells):
        rows = "".join(f'"{cell}",a\n' for cell in cells)
        assert read_table(write("a.csv", f"n,b\n{rows}"))["n"].tolist() == cells

    @pytest.mark.parametrize("labels", [[10**30, 10**30 + 1], [12345678901234567890, -1], [10**18 + 1, 10**18 + 2]])
    def test_whole_numbers_are_not_rounded(self, write, labels):
        table = read_table(write("a.csv", "n,b\n" + "".join(f"{label},a\n" for label in labels)))
        assert [int(label) for label in table["n"]] == labels

    def test_no_compression(self, tmp_path):
        (tmp_path / "a.csv.gz").write_text("a,b\n1,2\n")
        with pytest.raises(ValueError, match="it is not a gzip file, or it is damaged"):
            read_table(tmp_path / "a.csv.gz")

    def test_broken_compression(self, tmp_path):
        path = tmp_path / "cut.csv.gz"
        path.write_bytes(gzip.compress(b"a,b\n1,2\n" * 1000)[:40])
        with pytest.raises(ValueError, match="cannot be read as csv: the compressed file ends too early"):
            read_table(path)


class TestParquet:
    def test_round_trip_keeps_types(self, tmp_path):
        table = PEOPLE.assign(city=PEOPLE["city"].astype("category"))
        table.to_parquet(tmp_path / "people.parquet")
        pd.testing.assert_frame_equal(read_table(tmp_path / "people.parquet"), table)

    def test_an_index_with_a_name_is_a_column(self, tmp_path):
        PEOPLE.set_index("city").to_parquet(tmp_path / "people.parquet")
        assert read_table(tmp_path / "people.parquet")["city"].tolist() == ["Rome", "New York"]

    def test_bad_content(self, write):
        with pytest.raises(ValueError, match="cannot be read as parquet: it is not a Parquet file, or it is damaged"):
            read_table(write("bad.parquet", "age,city\n"))

    def test_without_pyarrow(self, write, monkeypatch):
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        with pytest.raises(ValueError, match=r'it needs pyarrow: pip install "manykernels\[parquet\]"'):
            read_table(write("people.parquet", "age,city\n"))
        with pytest.raises(ImportError, match=r'need pyarrow: pip install "manykernels\[parquet\]"'):
            ParquetRows(write("people.parquet", ""))


ARFF = """\
% people
@RELATION 'some people'

@attribute age NUMERIC
@attribute 'home town' {Rome, 'New York', "O'Hare"}
@attribute note string
@attribute born date "yyyy-MM-dd"
@data
31, 'New York', 'it\\'s, well, fine', 1990-05-01
?, "O'Hare", plain, 1980-01-31
% a comment
40, ?, ?, ?
"""


class TestARFF:
    def test_types_quotes_and_missing_values(self, write):
        table = read_table(write("people.arff", ARFF))
        np.testing.assert_array_equal(table["age"], [31.0, np.nan, 40.0])
        assert table["home town"].tolist()[:2] == ["New York", "O'Hare"]
        assert table["home town"].isna().tolist() == [False, False, True]
        assert list(table["home town"].cat.categories) == ["Rome", "New York", "O'Hare"]
        assert table["note"][0] == "it's, well, fine"
        assert table["born"][1] == pd.Timestamp("1980-01-31")
        assert table["born"].isna()[2]

    def test_compressed(self, write):
        assert len(read_table(write("people.arff.gz", ARFF))) == 3

    @pytest.mark.parametrize(
        ("body", "message"),
        [
            ("@attribute a numeric\n@data\n", "has 0 rows"),
            ("@attribute a numeric\n", "no @data line"),
            ("@data\n1\n", "declares no @attribute"),
            ("@attribute a numeric\n@data\n1,2\n", "line 4 has 2 values for 1 attributes"),
            ("@attribute a numeric\n@data\n{0 1}\n", "line 4 is sparse"),
            ("@attribute a {x,y}\n@data\nz\n", "'a' has the value 'z'"),
            ("@attribute a numeric\n@data\nmany\n", "'a' has the value 'many', which is not a number"),
            ("@attribute a date\n@data\nsoon\n", "'a' has the value 'soon', which is not a date"),
            ("@attribute a relational\n@data\n1\n", "type 'relational'"),
            ("age,city\n", "line 2 should be @relation"),
        ],
    )
    def test_bad_content(self, write, body, message):
        with pytest.raises(ValueError, match=message):
            read_table(write("bad.arff", f"@relation r\n{body}"))


class TestLIBSVM:
    @pytest.mark.parametrize("suffix", [".svm", ".libsvm", ".svmlight", ".svm.gz"])
    def test_columns_carry_the_numbers_of_the_file(self, write, suffix):
        table = read_table(write(f"toy{suffix}", "+1 1:0.5 3:2\n-1 2:4 # a comment\n"))
        assert table.to_dict("list") == {
            "target": [1.0, -1.0],
            "f1": [0.5, 0.0],
            "f2": [0.0, 4.0],
            "f3": [2.0, 0.0],
        }

    def test_numbers_that_start_at_zero(self, tmp_path):
        X = np.array([[1.0, 0.0], [0.0, 3.0]])
        dump_svmlight_file(X, [0, 1], str(tmp_path / "zero.svm"), zero_based=True)
        table = read_table(tmp_path / "zero.svm")
        np.testing.assert_array_equal(table[["f0", "f1"]], X)

    @pytest.mark.parametrize(
        ("content", "message"),
        [("", "has 0 rows"), ("1 one:2\n", "number:value pairs"), ("1 1;2\n", "number:value pairs")],
    )
    def test_bad_content(self, write, content, message):
        with pytest.raises(ValueError, match=f"The table.*{message}"):
            read_table(write("bad.svm", content))

    def test_too_wide(self, write):
        with pytest.raises(ValueError, match="too many for a table"):
            read_table(write("wide.svm", "1 400000000:1\n"))


class TestPaths:
    def test_unknown_suffix_names_the_known_ones(self, write):
        with pytest.raises(ValueError, match=r"must end in one of \.csv.*got '.*people\.xlsx'"):
            read_table(write("people.xlsx", ""))

    def test_absent_file(self, tmp_path):
        with pytest.raises(ValueError, match="there is no such file"):
            read_table(tmp_path / "absent.csv")

    def test_folder(self, tmp_path):
        (tmp_path / "folder.csv").mkdir()
        with pytest.raises(ValueError, match="it is a folder"):
            read_table(tmp_path / "folder.csv")

    def test_repeated_names(self, tmp_path):
        # Spaces around names go, after which two of these are alike.
        (tmp_path / "twice.csv").write_text("a,a ,b\n1,2,3\n")
        with pytest.raises(ValueError, match="repeats a"):
            read_table(tmp_path / "twice.csv")

    @pytest.mark.parametrize("suffix", READERS)
    def test_stem(self, suffix):
        assert table_stem(f"folder/my.data{suffix}") == "my.data"

    def test_is_libsvm(self):
        assert is_libsvm("a.svm.gz")
        assert is_libsvm("a.LIBSVM")
        assert not is_libsvm("a.arff")
