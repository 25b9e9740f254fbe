"""Immutable records: what passes between modules.

A record is a named tuple: its fields are its class's annotations, it compares by value and prints well.
`typing` stays out of the running program (it costs more to import than all our records together), so the type
checker sees `typing.NamedTuple` and the interpreter a class statement that makes a `collections.namedtuple`.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NamedTuple as Record
else:
    from collections import namedtuple

    def _made(name, space):
        fields = list(space.get("__annotations__", ()))
        defaults = [space[field] for field in fields if field in space]
        record = namedtuple(name, fields, defaults=defaults, module=space["__module__"])
        for key, value in space.items():
            if key not in fields and key not in _OURS:
                setattr(record, key, value)
        return record

    # What a class statement puts into its namespace by itself, and what a named tuple has made already.
    _OURS = {"__module__", "__qualname__", "__annotations__", "__firstlineno__", "__static_attributes__"}

    class _Base:
        def __mro_entries__(self, _):
            return (_Root,)

    class _Maker(type):
        def __new__(cls, name, _, space):
            return type.__new__(cls, name, (), space) if name == "_Root" else _made(name, space)

    class _Root(metaclass=_Maker):
        pass

    Record = _Base()

__all__ = ["Record"]
