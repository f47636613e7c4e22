"""Options of a command that trains → what is asked for; nothing is trained."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from stabkit.options import grids, landscape, transfer
from stabkit.options.commands import OPTIONS, Options
from stabkit.options.grids import Making
from stabkit.running.request import Request

READ: Mapping[type[Options], Callable[[Any, Making], Request]] = {
    OPTIONS["sweep"]: grids.sweep,
    OPTIONS["ablate"]: grids.ablate,
    OPTIONS["landscape"]: landscape.landscape,
    OPTIONS["transfer"]: lambda asked, making: transfer.of_methods(asked, making).request,  # at the lowest rate
}


def request(asked: Options, making: Making = lambda what: None) -> Request:
    """The request of these options; `making` is told of what takes seconds. Raises UsageError, TooManyRuns."""
    return READ[type(asked)](asked, making)


def request_of(command: str, options: Mapping[str, Any], making: Making = lambda what: None) -> Request:
    """Of a command by its name, with these options and the others at their defaults."""
    return request(OPTIONS[command](**options), making)
