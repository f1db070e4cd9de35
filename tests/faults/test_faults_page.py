"""docs/faults.md is what the tests saw: a row a test, none left out."""

from fault_table import PAGE, planned, rows_of


def test_the_page_has_a_row_a_test():
    assert [tuple(cells[:2]) for cells in rows_of(PAGE)] == planned()
    assert len(planned()) >= 20


def test_every_row_says_what_came_of_it():
    for action, _, seen, seconds, lost in rows_of(PAGE):
        assert seen and lost and float(seconds) >= 0, action
