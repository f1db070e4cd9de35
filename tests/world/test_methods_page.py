"""docs/methods.md is what the battery covers: every method in every placement, none left open."""

from rank_program import settings
from support_matrix import PAGE, YES, columns, facts, rows_of, write_columns

from suite.methods import METHODS


def test_the_page_is_of_the_battery():
    head, *rows = rows_of(PAGE)
    known = facts(settings({}))
    assert head[-len(columns()) :] == columns()
    assert [tuple(row[: -len(columns())]) for row in rows] == list(known.values())


def test_every_method_has_passed_everywhere():
    _, *rows = rows_of(PAGE)
    assert len(rows) == len(METHODS)
    for row in rows:
        assert row[-len(columns()) :] == [YES] * len(columns()), row[0]


def test_a_column_is_written_beside_the_others(tmp_path, monkeypatch):
    page = tmp_path / "methods.md"
    monkeypatch.setattr("support_matrix.PAGE", page)
    write_columns(settings({}), "virtual")
    write_columns(settings({}), "Horovod, 2")
    head, *rows = rows_of(page)
    passed = {name for name, cell in zip(head, rows[0], strict=True) if cell == YES}
    assert passed == {"virtual", "Horovod, 2"} and len(rows) == len(METHODS)
