"""The entry point: what goes wrong is one red line and an exit code. Lists are typed with commas or with spaces:
`--depths 6 18` is `--depths 6,18`."""

from __future__ import annotations

import difflib
import io
import os
import re
import sys
from collections.abc import Sequence
from typing import Any

import typer

from stabkit.cli import console
from stabkit.cli.app import app
from stabkit.errors import Interrupted, StabkitError, StoreError

NUMBERS = ("depths", "seeds", "lr", "hidden", "widths", "warmup", "max-tokens", "predict", "alpha-scale", "beta-scale")
"""Options that take a list of numbers."""
NAMES = ("models", "probes")
"""Options that take a list of names."""
NUMBER = re.compile(r"[\d.]+(e[+-]?\d+)?([x.,:]+[\d.]+(e[+-]?\d+)?)*", re.IGNORECASE)
NAME = re.compile(r"[A-Za-z][\w+-]*(\.py)?(:[\w.=+-]+)*")
POSSIBLE = re.compile(r"No such option: (?P<typed>\S+)(?: \(Possible options: (?P<near>.*)\))?(?P<rest>.*)")


def main() -> None:
    """The entry point: every StabkitError and every slip of the command line is one red line and its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that cannot show ‖ΔF‖ gets its code
    sys.argv[1:] = joined(sys.argv[1:])
    try:
        code = app(standalone_mode=False)
        if code == 130:
            console.error("interrupted")  # typer turns an early Ctrl-C into a code of its own
    except typer.TyperException as error:
        if said := _sentence(error):  # `stabkit` alone has said its help
            console.error(said)
        code = 2
    except (StabkitError, Interrupted) as error:
        console.error(error)
        code = error.exit_code
    except (typer.Abort, KeyboardInterrupt):
        console.error("interrupted")
        code = 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader left; say nothing more
        code = 0
    except OSError as error:
        console.error(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}")
        code = StoreError.exit_code
    sys.exit(code)


def _sentence(error: Any) -> str:
    if type(error).__name__ == "MissingParameter" and (lacks := error.param):
        return f"{lacks.metavar or lacks.name.upper()} is missing: {lacks.help[:1].lower()}{lacks.help[1:]}"
    return meant(" ".join(str(error.format_message()).split()))


def joined(arguments: Sequence[str]) -> list[str]:
    """The arguments with the items of such lists joined: what follows an option and looks like another item of it."""
    whole: list[str] = []
    left = list(arguments)
    while left:
        word = left.pop(0)
        whole.append(word)
        option = word.removeprefix("--")
        form = NUMBER if option in NUMBERS else NAME if option in NAMES else None
        if not word.startswith("--") or form is None or not left or left[0].startswith("-"):
            continue
        items = [left.pop(0)]
        while left and form.fullmatch(left[0]):
            items.append(left.pop(0))
        whole.append(",".join(item.strip(",") for item in items) if len(items) > 1 else items[0])
    return whole


def meant(message: str) -> str:
    """`no option --depth; did you mean --depths?` of what typer says of an option that there is not."""
    found = POSSIBLE.fullmatch(message)
    if not found:
        extra = message.removeprefix("Got unexpected extra")
        hint = "give it after its option, as in --models deepnorm; --help lists them"
        return f"no place for the{extra}: {hint}" if extra != message else message
    typed, names = found["typed"], (found["near"] or "").split(", ")
    near = difflib.get_close_matches(typed, names, n=1, cutoff=0.7)
    then = f"did you mean {near[0]}?" if near else "--help lists what there is"
    return f"no option {typed}; {then}{found['rest']}"
