"""What lets old packages import here: stand-ins for dependencies that no audited forward pass touches."""

from __future__ import annotations

import dataclasses
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from types import ModuleType


class _Names(type):
    """A class whose every attribute is itself."""

    def __getattr__(cls, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return cls

    def __getitem__(cls, key: object) -> type:
        return cls

    def __setitem__(cls, key: object, value: object) -> None:
        pass


def _nothing(name: str) -> type:
    def call(self, *args, **kwargs):
        return args[0] if args else None

    return _Names(name, (), {"__init__": lambda self, *a, **k: None, "__call__": call})


class InterpolationMode(Enum):
    """torchvision's, which timm makes a table of."""

    NEAREST = "nearest"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"


class _Module(ModuleType):
    """A module in which every name is a class of its own that does nothing."""

    __path__: list[str] = []

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        setattr(self, name, made := InterpolationMode if name == "InterpolationMode" else _nothing(name))
        return made


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, roots: tuple[str, ...]) -> None:
        self.roots = roots

    def find_spec(self, name, path=None, target=None):
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if name.split(".")[0] in self.roots else None

    def create_module(self, spec):
        return _Module(spec.name)

    def exec_module(self, module) -> None:
        pass


def stand_in(*roots: str) -> None:
    """From now on these packages import, empty, where they are not installed."""
    sys.meta_path.append(_Finder(roots))


@contextmanager
def hashable_dataclasses() -> Iterator[None]:
    """fairseq 0.12 has dataclass instances as defaults, which Python 3.11 refuses unless they hash."""
    process = dataclasses._process_class

    def hashable(cls, *args, **kwargs):
        made = process(cls, *args, **kwargs)
        if made.__hash__ is None:
            made.__hash__ = object.__hash__
        return made

    dataclasses._process_class = hashable
    try:
        yield
    finally:
        dataclasses._process_class = process
