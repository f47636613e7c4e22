"""Whether what was read from a file is of the types that its class says: a checksum vouches for bytes alone."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")


def typed(value: T) -> T:
    """The dataclass as it is; raises TypeError, naming the field, where a value is of another type than it says."""
    own: Any = type(value)
    for name, kind in _hints(own).items():
        if not _is(getattr(value, name), kind):
            raise TypeError(f"{name} is {repr(getattr(value, name))[:60]}, not {getattr(kind, '__name__', kind)}")
    return value


def read(kind: type[T], body: Mapping[str, Any]) -> T:
    """A dataclass of plain JSON: objects are dataclasses, lists tuples, "nan" and "inf" numbers; what is not there has
    its default. Raises TypeError, KeyError or ValueError for what is none."""
    if not isinstance(body, Mapping):
        raise TypeError(f"no {kind.__name__} but a {type(body).__name__}")
    of: Any = kind
    hints = _hints(of)
    return typed(kind(**{name: _read(value, hints[name]) for name, value in body.items()}))


def _read(value: Any, kind: Any) -> Any:
    origin, of = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return value if value is None else _read(value, next(one for one in of if one is not type(None)))
    if origin is tuple and isinstance(value, (list, tuple)):
        return tuple(_read(own, of[0]) for own in value)
    if isinstance(origin, type) and issubclass(origin, Mapping) and isinstance(value, Mapping):
        return {name: _read(own, of[1]) for name, own in value.items()}
    if kind is float and (type(value) is int or value in ("nan", "inf", "-inf")):
        return float(value)
    return read(kind, value) if is_dataclass(kind) and isinstance(kind, type) else value


@cache
def _hints(kind: Any) -> Mapping[str, Any]:
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}


def _is(value: Any, kind: Any) -> bool:
    """Whether a value is of a type: numbers, texts, dataclasses, and tuples, mappings, unions and literals of them."""
    origin, of = get_origin(kind), get_args(kind)
    if kind is Any:
        return True
    if origin is Literal:
        return value in of
    if origin in (Union, types.UnionType):
        return any(_is(value, one) for one in of)
    if origin is tuple:
        kinds = of[:1] * len(value) if of[1:] == (...,) and isinstance(value, tuple) else of
        return isinstance(value, tuple) and len(value) == len(kinds) and all(map(_is, value, kinds))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return isinstance(value, Mapping) and all(_is(k, of[0]) and _is(v, of[1]) for k, v in value.items())
    if kind is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if is_dataclass(kind):
        return type(value) is kind and typed(value) is value
    return value is None if kind in (None, type(None)) else isinstance(value, origin or kind)
