"""A JSON Schema (draft 2020-12) made from a document's type.

    str, bool, int, None   their names in JSON
    float                  a number, or "nan", "inf", "-inf" (`results/records.py`: jsonable)
    Literal, X | Y         const or enum, anyOf
    list, tuple, Mapping   array, array of a fixed length, object of any names
    TypedDict, dataclass   an object under $defs, without other names; NotRequired names may be missing
    Annotated[…, D]        the dataclass D without the fields that are at their defaults
    Any                    anything

A docstring, of a class or below a field, is its description.
"""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
import types
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from itertools import pairwise
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from stabkit.report.json_document import SCHEMA

DRAFT = "https://json-schema.org/draft/2020-12/schema"
PLAIN: Mapping[Any, str] = {str: "string", bool: "boolean", int: "integer", type(None): "null"}
NUMBER = {"anyOf": [{"type": "number"}, {"enum": ["nan", "inf", "-inf"]}]}
Schema = dict[str, Any]


def schema(document: Any, name: str, title: str) -> Schema:
    """Of a TypedDict, or of a union of them."""
    defs: dict[str, Schema] = {}
    body = _object(document, defs) if is_typeddict(document) else _of(document, defs)
    head = {"$schema": DRAFT, "$id": f"urn:{SCHEMA.replace('/', ':')}:{name}", "title": title}
    return {**head, **body, "$defs": dict(sorted(defs.items()))}


def _of(kind: Any, defs: dict[str, Schema]) -> Schema:
    """Of any type; objects are put into `defs`."""
    origin, args = get_origin(kind), get_args(kind)
    if kind is Any:
        return {}
    if kind in PLAIN:
        return {"type": PLAIN[kind]}
    if kind is float:
        defs["number"] = NUMBER
        return {"$ref": "#/$defs/number"}
    if origin is Literal:
        return {"const": args[0]} if len(args) == 1 else {"enum": list(args)}
    if origin in (Union, types.UnionType):
        return {"anyOf": [_of(arg, defs) for arg in args]}
    if origin is Annotated:
        return _named(args[1], defs, sparse=True)
    if origin is tuple and args[-1] is not ...:
        return {"type": "array", "prefixItems": [_of(arg, defs) for arg in args], "items": False, "minItems": len(args)}
    if origin in (list, tuple, Sequence):
        return {"type": "array", "items": _of(args[0], defs)}
    if origin in (dict, Mapping):
        names = {} if args[0] is str else {"propertyNames": _of(args[0], defs)}
        return {"type": "object", **names, "additionalProperties": _of(args[1], defs)}
    if is_typeddict(kind) or is_dataclass(kind):
        return _named(kind, defs)
    raise TypeError(f"no JSON Schema of {kind}")


def _named(kind: Any, defs: dict[str, Schema], *, sparse: bool = False) -> Schema:
    name = f"Sparse{kind.__name__}" if sparse else kind.__name__
    if name not in defs:
        defs[name] = _object(kind, defs, sparse=sparse)
    return {"$ref": f"#/$defs/{name}"}


def _object(kind: Any, defs: dict[str, Schema], *, sparse: bool = False) -> Schema:
    """Of a TypedDict or a dataclass; `sparse`: without the fields that are at their defaults."""
    hints, optional = get_type_hints(kind, include_extras=True), set[str]()
    if is_dataclass(kind):
        entries = fields(kind)
        hints = {entry.name: hints[entry.name] for entry in entries}
        if sparse:
            optional = {e.name for e in entries if e.default is not MISSING or e.default_factory is not MISSING}
    properties, told = {}, _described(kind)
    for name, hint in hints.items():
        if get_origin(hint) is NotRequired:
            optional.add(name)
            (hint,) = get_args(hint)
        properties[name] = {**_of(hint, defs), **({"description": told[name]} if name in told else {})}
    doc = vars(kind).get("__doc__")
    return {
        **({"description": _line(doc)} if doc else {}),
        "type": "object",
        "properties": properties,
        "required": [name for name in hints if name not in optional],
        "additionalProperties": False,
    }


def _described(kind: Any) -> dict[str, str]:
    """{field: the docstring below it}, those of its bases included."""
    try:
        (node,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    except (OSError, TypeError):  # a TypedDict that is no class statement
        return {}
    assert isinstance(node, ast.ClassDef)
    module = vars(sys.modules[kind.__module__])
    described: dict[str, str] = {}
    for base in node.bases:
        if isinstance(base, ast.Name) and base.id != "TypedDict":
            described |= _described(module[base.id])
    for field, below in pairwise(node.body):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                described[name] = _line(text)
    return described


def _line(text: str) -> str:
    return " ".join(text.split())
