"""Views by prefix and by file."""

import pytest

from manykernels.tables.column_views import Views, read_views

NAMES = ["age", "lab_hb", "lab_crp", "scan:left", "scan:right", "age [years]", "zip.code"]


@pytest.fixture
def write(tmp_path):
    def write(text):
        path = tmp_path / "views.toml"
        path.write_text(text)
        return str(path)

    return write


class TestPrefix:
    def test_two_columns_are_a_view(self):
        assert read_views("prefix").assign(NAMES) == {
            "lab": ["lab_hb", "lab_crp"],
            "scan": ["scan:left", "scan:right"],
            "other": ["age", "age [years]", "zip.code"],
        }

    def test_a_prefix_that_is_called_other(self):
        assert read_views("prefix").assign(["other_a", "other_b", "c"]) == {"other": ["other_a", "other_b", "c"]}

    def test_no_prefix(self):
        with pytest.raises(ValueError, match="views='prefix' needs columns such as rna_1 and rna_2"):
            read_views("prefix").assign(["age", "city", "lab_hb", "_x", "_y"])


class TestFile:
    def test_names_patterns_and_the_rest(self, write):
        views = read_views(write('[views]\nblood = ["lab_*"]\nbody = ["age [years]", "scan:*", "lab_hb"]\n'))
        assert views.assign(NAMES) == {
            "blood": ["lab_hb", "lab_crp"],
            "body": ["scan:left", "scan:right", "age [years]"],
            "other": ["age", "zip.code"],
        }
        assert views.kinds_of(NAMES) == {}

    def test_a_view_whose_columns_are_taken_is_noted(self, write):
        views = read_views(write('[views]\nall = ["*"]\nblood = ["lab_*"]\n'))
        assert views.notes(views.assign(NAMES)) == [
            "View 'blood' has no columns: they are in earlier views, or left out."
        ]
        assert read_views("prefix").notes({"lab": NAMES}) == []

    def test_a_view_whose_columns_are_not_used_is_none(self, write):
        views = read_views(write('[views]\nblood = ["lab_*"]\nbody = ["age"]\n'))
        assert views.assign(["age"]) == {"body": ["age"]}

    def test_kinds_alone_make_no_views(self, write):
        views = read_views(write('[columns]\n"zip.code" = "category"\nlab_hb = "text"\n"lab_*" = "ignore"\n'))
        assert not views.wanted
        assert views.assign(NAMES) == {}
        assert views.kinds_of(NAMES) == {"lab_hb": "text", "lab_crp": "ignore", "zip.code": "category"}

    def test_names_that_are_not_there(self):
        with pytest.raises(ValueError, match=r"names 'lab_h', but the table has no such .*\(did you mean 'lab_hb'\?\)"):
            Views(kinds={"lab_h": "text"}).kinds_of(NAMES)
        with pytest.raises(ValueError, match=r"names 'rna_\*', but the table has no such column"):
            Views(patterns={"rna": ["rna_*"]}).kinds_of(NAMES)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "must have the parts .views. and .columns., or one of them; it is empty"),
            ("[view]\na = []\n", "it has .view."),
            ("views = 3\n", "as tables"),
            ("[views]\n", "must say something in .views., which is empty"),
            ('[views]\na = ["a"]\n[columns]\n', "must say something in .columns., which is empty"),
            ('[views]\nlab = "lab_*"\n', "must give view 'lab' a list of columns"),
            ("[views]\nlab = []\n", "must give view 'lab' a list of columns"),
            ('[columns]\nzip = "code"\n', "must call column 'zip' one of number, boolean, .*ignore; got 'code'"),
            ('[columns]\nzip.code = "text"\n', "names with dots need quotes"),
            ("[views\n", "is not a TOML file"),
        ],
    )
    def test_bad_files(self, write, text, message):
        with pytest.raises(ValueError, match=message):
            read_views(write(text))

    @pytest.mark.parametrize(("given", "problem"), [("absent.toml", "no such file"), ("suffix", "got 'suffix'")])
    def test_no_file(self, given, problem):
        with pytest.raises(ValueError, match=f"^views must be 'prefix' or a file that ends in .toml; .*{problem}"):
            read_views(given)
