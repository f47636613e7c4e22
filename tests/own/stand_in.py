"""Packages that are not there, empty: libraries import them for data and pictures that no model here needs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
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


class _Finder(MetaPathFinder, Loader):
    def __init__(self, roots: tuple[str, ...]) -> None:
        self.roots = roots

    def find_spec(self, name, path=None, target=None):
        return ModuleSpec(name, self, is_package=True) if name.split(".")[0] in self.roots else None

    def create_module(self, spec):
        return _Module(spec.name)

    def exec_module(self, module):
        pass


def stand_in(*roots: str) -> _Finder:
    """From now on these packages import, empty, where they are not installed."""
    sys.meta_path.append(finder := _Finder(roots))  # after those that find what is installed
    return finder


@contextmanager
def empty(*roots: str) -> Iterator[None]:
    """`stand_in` within."""
    finder = stand_in(*roots)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
