"""Options from a TOML file, and the options of a command as one.

models = "post-ln,deepnorm"     # as on the command line
depths = [6, 18]                # or as a list
lr = 5e-4
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stabkit.errors import UsageError, nearest
from stabkit.outside import document

LARGEST = 20_000
"""Bytes: a configuration file is a page long."""


def read(path: Path, options: Mapping[str, str]) -> dict[str, Any]:
    """{parameter: text} from a file whose keys are option names; raises UsageError on anything else.

    `options` maps a command's option names to its parameters; of two names of one parameter a file has one.
    """
    try:
        entries = tomllib.loads(document("--config", str(path), LARGEST))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--config: {path} is not TOML: {error}") from error
    parameters = {
        option: parameter for option, parameter in options.items() if parameter not in ("config", "print_config")
    }
    values: dict[str, Any] = {}
    first: dict[str, str] = {}
    for key, value in entries.items():
        name = key.replace("_", "-")
        if name not in parameters:
            raise UsageError(
                f"--config: {path} has an option {key!r} that this command does not{nearest(name, parameters)}"
            )
        if parameters[name] in values:
            raise UsageError(
                f"--config: {path} has {first[parameters[name]]!r} and {key!r}, which are one option: keep one"
            )
        first[parameters[name]] = key
        values[parameters[name]] = _text(path, key, value)
    return values


def write(params: Mapping[str, Any]) -> str:
    """The options as TOML that `read` takes."""
    import json

    return "".join(
        f"{name.replace('_', '-')} = {json.dumps(value, ensure_ascii=False)}\n"
        for name, value in sorted(params.items())
    )


def _text(path: Path, key: str, value: Any) -> Any:
    if isinstance(value, list) and all(isinstance(item, (str, int, float)) for item in value):
        return ",".join(str(_text(path, key, item)) for item in value)
    if isinstance(value, (str, bool)):
        return value
    if isinstance(value, int) and abs(value) < 10**18 or isinstance(value, float):
        return str(value)
    raise UsageError(f"--config: {path}: {key[:80]} must be a string, a number, true, false or a list of these")
