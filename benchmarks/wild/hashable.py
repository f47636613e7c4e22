"""What fairseq 0.12 needs to import under a Python of today."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def hashable_dataclasses() -> Iterator[None]:
    """Within, dataclass instances hash: fairseq has them as defaults, which Python 3.11 refuses unless they do."""
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
