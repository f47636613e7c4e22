"""Cases of the corpus as factories that `stabkit probe` takes: `studies.own.factories:case_197`.

The text of the letters lies where STABKIT_MULTI30K says, else in `../shared/data/multi30k`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from studies.own.design import CASES, cases
from studies.own.training import factory

DATA = Path(os.environ.get("STABKIT_MULTI30K", "../shared/data/multi30k"))


def __getattr__(name: str) -> Callable[[int], Any]:
    """A case by its number; raises AttributeError for what is none."""
    found = re.fullmatch(r"case_(\d{3})", name)
    if found is None or int(found[1]) >= CASES:
        raise AttributeError(f"there is no {name}; a case is case_000 to case_{CASES - 1}")
    case = next(case for case in cases() if case.number == int(found[1]))
    return factory(case, DATA)
