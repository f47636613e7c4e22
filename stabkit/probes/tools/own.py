"""A probe from a file of the user's own: `./mine.py:TokenSpread`, a class as those here are.

What it records stands under `own-` and its name, so that no probe of a later version is taken for it. The contract that
it is to keep is tried by `training/contract.py`.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from stabkit.errors import UsageError
from stabkit.methods import own as files
from stabkit.probes.base import Probe
from stabkit.spec import Own

NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")


def probe(source: Own, texts: files.Texts) -> type[Probe]:
    """The class that a spec names, under its recorded name; raises UsageError for anything else."""
    return _class_of(files.text_of(source, texts), source.file, source.name)


@cache
def _class_of(text: str, file: str, name: str) -> type[Probe]:
    where = f"{file}:{name}"
    found: Any = files.named(text, file, name, kind="class of a Probe", of=lambda _, value: _is_probe(value))
    if not _is_probe(found):
        raise UsageError(f"{where} is not a subclass of stabkit.probes.base.Probe")
    if not NAME.fullmatch(str(getattr(found, "name", ""))):
        raise UsageError(f'{where}: its `name` must be lower-case letters, digits and _, like "token_spread"')
    if getattr(found, "watches", "") not in ("training", "probe"):
        raise UsageError(f'{where}: its `watches` must be "training" or "probe"')
    return type(name, (found,), {"name": f"own-{found.name}", "__module__": found.__module__})


def _is_probe(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, Probe) and value is not Probe
