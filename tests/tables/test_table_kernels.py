"""Which kernels the command makes for a table."""

from collections import Counter

import pytest

from manykernels.kernels import Gaussian, Linear, Overlap, Polynomial
from manykernels.tables.encoder import Block
from manykernels.tables.table_kernels import ALL, MAX_KERNELS, make_kernels


def block(name, kind, *outputs):
    return Block(name, kind, list(outputs), {name: list(outputs)})


AGE, CITY, PLAN = block("age", "number", 0), block("city", "category", 1, 2), block("plan", "category", 3, 4, 5)
SMOKES = block("smokes", "boolean", 6)
SINCE = Block("since", "date", [7, 8, 9], {"since": [7], "month of since": [8, 9]})
NOTE = Block("note", "text", [10, 11, 12], {"words of note": [10], "3-letter pieces of note": [11, 12]})


def numbers(count):
    return [block(f"c{number}", "number", number) for number in range(count)]


def own(kernels, label):
    return [kernel for kernel in kernels if kernel.label == label]


def widths(kernels):
    return [kernel.width for kernel in kernels if isinstance(kernel, Gaussian)]


class TestKindsOfColumns:
    def test_numbers(self):
        kernels, note = make_kernels([AGE, CITY])
        assert note == ""
        ages = own(kernels, "age")
        assert all(kernel.columns == [0] and kernel.group == "age" for kernel in ages)
        assert widths(ages) == [2.0**e for e in range(-3, 7)]
        assert [kernel.degree for kernel in ages if isinstance(kernel, Polynomial)] == [1, 2, 3]

    def test_categories_are_compared_one_by_one_and_together(self):
        kernels, _ = make_kernels([AGE, CITY, PLAN])
        overlaps = {kernel.label: kernel for kernel in kernels if isinstance(kernel, Overlap)}
        assert {label: (kernel.count, kernel.columns) for label, kernel in overlaps.items()} == {
            "all categories": (2, [1, 2, 3, 4, 5]),
            "city": (1, [1, 2]),
            "plan": (1, [3, 4, 5]),
        }
        assert own(kernels, "city") == [overlaps["city"]]

    def test_flags_need_one_kernel(self):
        assert [type(kernel) for kernel in own(make_kernels([AGE, SMOKES])[0], "smokes")] == [Gaussian]

    def test_so_do_numbers_of_two_values(self):
        member = Block("member", "number", [1], {"member": [1]}, two_valued=True)
        assert [type(kernel) for kernel in own(make_kernels([AGE, member])[0], "member")] == [Gaussian]
        assert len(make_kernels([member])[0]) == 1

    def test_dates_have_a_trend_and_circles(self):
        kernels, _ = make_kernels([AGE, SINCE])
        assert all(kernel.columns == [7] for kernel in own(kernels, "since"))
        assert all(kernel.columns == [8, 9] for kernel in own(kernels, "month of since"))
        assert {kernel.group for kernel in kernels} == {ALL, "age", "since"}

    def test_text_has_words_and_pieces_and_is_not_mixed_with_the_rest(self):
        kernels, _ = make_kernels([AGE, CITY, NOTE])
        texts = [kernel for kernel in kernels if kernel.group == "note"]
        assert [(type(kernel), kernel.columns, kernel.label) for kernel in texts] == [
            (Linear, [10], "words of note"),
            (Linear, [11, 12], "3-letter pieces of note"),
        ]
        assert all(kernel.columns == [0, 1, 2] for kernel in own(kernels, "all columns but text"))
        assert not own(kernels, ALL)

    @pytest.mark.parametrize(("alone", "count"), [(AGE, 13), (CITY, 1), (NOTE, 2), (SMOKES, 1)])
    def test_one_column_is_all_there_is(self, alone, count):
        kernels, _ = make_kernels([alone])
        assert len(kernels) == count
        assert {kernel.group for kernel in kernels} == {alone.name}


def test_all_together_have_the_kernels_of_a_number():
    joint = own(make_kernels(numbers(10))[0], ALL)
    assert all(kernel.columns == list(range(10)) for kernel in joint)
    assert widths(joint) == [2.0**e for e in range(-3, 7)]
    assert len(joint) == 13


@pytest.mark.parametrize("reserved", [ALL, "all columns but text", "all categories"])
def test_columns_that_are_called_as_all_are(reserved):
    same = block(reserved, "number", 13)
    kernels, _ = make_kernels([same, AGE, CITY, PLAN, NOTE])
    assert all(kernel.columns == [13] for kernel in own(kernels, reserved))
    if reserved == ALL:
        assert {kernel.group for kernel in kernels if len(kernel.columns) > 3} == {"all features together"}


class TestManyColumns:
    @pytest.mark.parametrize(("columns", "size"), [(152, 13), (153, 4), (496, 4), (497, 1), (19_987, 1), (19_988, 0)])
    def test_get_fewer_kernels_each(self, columns, size):
        kernels, note = make_kernels(numbers(columns))
        assert len(kernels) == 13 + size * columns
        assert len(kernels) <= MAX_KERNELS or size <= 1
        assert bool(note) == (size < 13)

    def test_the_shorter_list(self):
        kernels, note = make_kernels(numbers(200))
        assert Counter(kernel.group for kernel in kernels)[ALL] == 13
        c7 = own(kernels, "c7")
        assert [type(kernel) for kernel in c7] == [Linear, Gaussian, Gaussian, Gaussian]
        assert all(kernel.columns == [7] for kernel in c7)
        assert "200 columns would make 2613 kernels: each number or date gets a linear kernel and 3" in note


class TestViews:
    def test_each_view_is_a_group(self):
        views = {"person": ["age", "city", "plan"], "contact": ["since", "note"], "habit": ["plan"]}
        kernels, note = make_kernels([AGE, CITY, PLAN, SINCE, NOTE], views)
        assert note == ""
        assert Counter(kernel.group for kernel in kernels) == {"person": 14, "contact": 15, "habit": 1}
        overlap = next(kernel for kernel in kernels if isinstance(kernel, Overlap) and kernel.group == "person")
        assert (overlap.count, overlap.columns, overlap.label) == (2, [1, 2, 3, 4, 5], "person")
        assert own(kernels, "contact")[0].columns == [7, 8, 9]
        assert [kernel.label for kernel in kernels if isinstance(kernel, Linear)] == [
            "words of note",
            "3-letter pieces of note",
        ]

    def test_a_view_that_is_called_as_all_are(self):
        kernels, _ = make_kernels([AGE, CITY], {ALL: ["age"], "b": ["city"]})
        assert Counter(kernel.group for kernel in kernels) == {ALL: 13, "b": 1}

    def test_a_view_of_categories(self):
        kernels, _ = make_kernels([CITY, PLAN], {"a": ["city", "plan"]})
        assert Counter(type(kernel) for kernel in kernels) == {Gaussian: 10, Polynomial: 3, Overlap: 1}

    def test_a_view_of_one_number_has_the_kernels_of_a_number(self):
        kernels, _ = make_kernels([AGE, CITY], {"a": ["age"], "b": ["city"]})
        assert Counter(kernel.group for kernel in kernels) == {"a": 13, "b": 1}
