"""The entry point: what goes wrong is one red line and an exit code."""

from __future__ import annotations

import io
import os
import sys
from typing import Any

import typer

from stabkit.cli import console, grammar
from stabkit.cli.app import app
from stabkit.errors import Interrupted, StabkitError, StoreError


def main() -> None:
    """The entry point: every StabkitError and every slip of the command line is one red line and its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that cannot show ‖ΔF‖ gets its code
    sys.argv[1:] = grammar.joined(sys.argv[1:])
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
    return grammar.meant(" ".join(str(error.format_message()).split()))
