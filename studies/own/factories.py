"""Cases of the corpus as factories that `stabkit probe` takes: `studies.own.factories:case_197`.

The text of the letters lies where STABKIT_MULTI30K says, else in `../shared/data/multi30k`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from studies.own.design import cases
from studies.own.training import factory

DATA = Path(os.environ.get("STABKIT_MULTI30K", "../shared/data/multi30k"))


def __getattr__(name: str) -> Callable[[int], Any]:
    """A case by its number; raises AttributeError for what is none."""
    number = name.removeprefix("case_")
    found = [case for case in cases() if number.isdigit() and name == f"case_{case.number:03d}"]
    if not found:
        raise AttributeError(f"there is no {name}; a case is case_000 to case_{sum(1 for _ in cases()) - 1}")
    return factory(found[0], DATA)
