"""An empty torchvision where there is none: libraries import it for datasets and pictures that no model here needs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


class _Anything(type):
    def __getattr__(cls, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything(name, (), {})


class _Empty(ModuleType):
    """Any name is a class that does nothing."""

    __path__: list[str] = []

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything(name, (), {})


class _Finder(MetaPathFinder, Loader):
    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names

    def find_spec(self, name, path, target=None):
        return ModuleSpec(name, self, is_package=True) if name.split(".")[0] in self.names else None

    def create_module(self, spec):
        return _Empty(spec.name)

    def exec_module(self, module):
        pass


@contextmanager
def empty(*names: str) -> Iterator[None]:
    """Within, these packages can be imported and hold nothing; those that are there are themselves."""
    finder = _Finder(names)
    sys.meta_path.append(finder)  # after those that find what is installed
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
