"""Records are named tuples at run time, without typing."""

import pytest

from postrender.record import Record


class Point(Record):
    """A point."""

    x: int
    y: int = 2

    @property
    def sum(self) -> int:
        return self.x + self.y


def test_a_record_is_a_named_tuple():
    assert Point(1) == (1, 2)
    assert repr(Point(1, y=3)) == "Point(x=1, y=3)"
    assert Point(1)._replace(x=5).sum == 7
    assert Point.__doc__ == "A point."
    assert Point._fields == ("x", "y")


def test_a_record_is_immutable():
    with pytest.raises(AttributeError):
        Point(1).x = 2
