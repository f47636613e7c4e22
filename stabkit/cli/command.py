"""A command made from a signature of the Python API: every option's name, type, default, help and panel stand there.

values        as texts, in the language of `options/ranges.py`; a bool is a flag
where from    the command line > the environment > a TOML file > the signature
given         what the API is called with: options that were named anywhere; defaults live in the signature alone
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import typer

from stabkit.options import ranges
from stabkit.options.option import OUT, PANELS, Argument, Option


@dataclass(frozen=True, kw_only=True, slots=True)
class Invocation:
    """A command as it was called."""

    command: str
    params: Mapping[str, Any]
    """Every option, as a text or a flag; arguments too."""
    given: Mapping[str, Any]
    """Those of them that the API takes and that were named: on the command line, in the environment or a TOML file."""
    typed: frozenset[str]
    """Those that the command line itself names."""

    def flag(self, name: str) -> bool:
        """Whether an option of the terminal's own is on."""
        return bool(self.params.get(name))


def _config(ctx: typer.Context, path: str | None) -> str | None:
    """Defaults from a TOML file: a key is an option's name; flags and the environment win over it."""
    if path is not None:
        from stabkit.cli import config

        options = {
            word[2:]: param.name
            for param in ctx.command.params
            for word in param.opts
            if param.name and word[:2] == "--"
        }
        ctx.default_map = {**(ctx.default_map or {}), **config.read(Path(path), options)}
    return path


def _flag(*names: str, help: str) -> Any:
    return Annotated[bool, typer.Option(*names, help=help, rich_help_panel=OUT, show_envvar=False)]


def _file(name: str, help: str) -> Any:
    return Annotated[str | None, typer.Option(name, help=help, metavar="FILE", rich_help_panel=OUT, show_envvar=False)]


TERMINAL: Mapping[str, tuple[Any, Any]] = {
    "json": (_flag("--json", help="Print one JSON document."), False),
    "quiet": (_flag("--quiet", "-q", help="No progress, no notes."), False),
    "dry_run": (_flag("--dry-run", help="Show the grid and its cost; train none of it."), False),
    "config": (
        Annotated[
            str | None,
            typer.Option(
                "--config",
                callback=_config,
                is_eager=True,
                help="TOML file of options; flags override it.",
                metavar="FILE",
                rich_help_panel=OUT,
                show_envvar=False,
            ),
        ],
        None,
    ),
    "print_config": (_flag("--print-config", help="Print the options as TOML and stop."), False),
    "strict": (_flag("--strict", help="Exit with 8 unless the model trains."), False),
    "strict_drift": (_flag("--strict", help="Exit with 7 where the best rate drifts."), False),
    "no_fail": (_flag("--no-fail", help="Never exit with 7."), False),
    "baseline": (
        _file(
            "--baseline",
            help="Exit with 7 only if worse than this: a new failing link, or 0.1 less probable.",
        ),
        None,
    ),
    "follow": (_flag("--follow", help="Read a running training's log again whenever it grows."), False),
    "png": (_file("--png", help="Also write the first figure of the page: .png, .svg or .pdf."), None),
    "update_baseline": (_flag("--update-baseline", help="Write --baseline anew."), False),
}
"""The options of the terminal alone: {name: (annotation, default)}."""
TRAINING = ("json", "quiet", "dry_run", "config", "print_config")
"""Those of what trains."""
PROBING = ("json", "quiet", "strict", "no_fail", "baseline", "update_baseline", "png")
FEW = 8
"""Of a command with so few options all stand in one panel."""


def command(
    app: typer.Typer, function: Callable[..., Any], terminal: tuple[str, ...] = TRAINING
) -> Callable[[Callable[[Invocation], None]], None]:
    """Add a command that calls a function of the API: decorates what is run."""
    taken, name = (
        [parameter.name for parameter in _parameters(function)],
        function.__name__.removesuffix("Options").lower(),
    )

    def decorate(run: Callable[[Invocation], None]) -> None:
        def called(ctx: typer.Context, **params: Any) -> None:
            source = {name: str(getattr(ctx.get_parameter_source(name), "name", "DEFAULT")) for name in params}
            run(
                Invocation(
                    command=name,
                    params=params,
                    given={name: params[name] for name in taken if source[name] != "DEFAULT"},
                    typed=frozenset(name for name in params if source[name] == "COMMANDLINE"),
                )
            )

        context = inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
        _add(app, name, function, [context, *_arranged(function, terminal)], called)

    return decorate


def direct(
    app: typer.Typer, terminal: tuple[str, ...] = (), name: str = ""
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add a command of the command line's own: decorates what is run, with its options as texts and these of the
    terminal."""

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        def called(**params: Any) -> None:
            function(**params)

        _add(app, name or function.__name__, function, _arranged(function, terminal), called)
        return function

    return decorate


def _add(
    app: typer.Typer,
    name: str,
    function: Callable[..., Any],
    parameters: list[inspect.Parameter],
    called: Callable[..., None],
) -> None:
    """As typer has it; the help is the first two paragraphs of the function's docstring."""
    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    paragraphs = inspect.cleandoc(function.__doc__ or "").split("\n\n")
    app.command(name, help="\n\n".join(paragraphs[:2]))(called)


def _arranged(function: Callable[..., Any], terminal: tuple[str, ...]) -> list[inspect.Parameter]:
    """The options of a function and these of the terminal, panel by panel."""
    terminals = [_parameter(name, *TERMINAL[name]) for name in terminal]
    parameters = sorted([*_parameters(function), *terminals], key=_rank)
    if sum(parameter.default is not parameter.empty for parameter in parameters) <= FEW:
        parameters = [_without_panel(parameter) for parameter in parameters]
    return parameters


def _rank(parameter: inspect.Parameter) -> int:
    """Arguments first, then panel by panel."""
    panel = getattr(get_args(parameter.annotation)[1], "rich_help_panel", None)
    return PANELS.index(panel) if panel in PANELS else -1


def _without_panel(parameter: inspect.Parameter) -> inspect.Parameter:
    kind, info = get_args(parameter.annotation)
    alone = copy(info)
    alone.rich_help_panel = None
    return parameter.replace(annotation=Annotated[kind, alone])


def _parameters(function: Callable[..., Any]) -> Iterator[inspect.Parameter]:
    """The options of a signature as typer reads them."""
    options = getattr(function, "options", function)
    for name, parameter in inspect.signature(options).parameters.items():
        if get_origin(parameter.annotation) is not Annotated:
            continue  # an option of the terminal
        kind, option, *_ = get_args(parameter.annotation)
        match option:
            case Argument():
                words = list[str] if get_origin(kind) is list else str
                argument = typer.Argument(help=option.help, metavar=option.metavar, **_completing(option))
                yield _parameter(name, Annotated[words, argument], parameter.default)
            case Option():
                yield _parameter(name, *_typed(name, parameter.default, option))


def _typed(name: str, default: Any, option: Option) -> tuple[Any, Any]:
    """(annotation, default) of an option: a flag, or a text."""
    flag = isinstance(default, bool)
    more: dict[str, Any] = {} if flag else {"metavar": option.metavar}
    if option.envvar:
        more["envvar"] = option.envvar
    info = typer.Option(
        ranges.flag(name),
        *option.flags,
        help=option.help,
        rich_help_panel=option.panel,
        show_envvar=False,
        **_completing(option),
        **more,
    )
    return Annotated[bool if flag else str, info], default if flag else ranges.text(default)


def _completing(option: Option | Argument) -> dict[str, Any]:
    return {"autocompletion": COMPLETIONS[option.completion]} if option.completion else {}


def _parameter(name: str, annotation: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def _method(incomplete: str) -> list[str]:
    """Methods that begin so."""
    from stabkit.methods import KEYS

    return [key for key in KEYS if key.startswith(incomplete)]


def _methods(incomplete: str) -> list[str]:
    """Lists of methods and their sets whose last word begins so."""
    before, comma, word = incomplete.rpartition(",")
    sets = [] if comma else ["papers", "2026", "all"]
    return [f"{before}{comma}{name}" for name in (*sets, *_method("")) if name.startswith(word)]


def _items(incomplete: str) -> list[str]:
    """Items of `stabkit paper` that begin so."""
    from stabkit.paper.items import BY_KEY

    return [key for key in ("ls", "all", *BY_KEY) if key.startswith(incomplete)]


COMPLETIONS: Mapping[str, Callable[[str], list[str]]] = {"method": _method, "methods": _methods, "items": _items}
"""What a shell offers after Tab, by what has been typed of it."""
