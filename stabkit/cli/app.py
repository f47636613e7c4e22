"""The command line: parse → call one function → print. Heavy imports stand inside the commands.

What trains, probes or audits, and `paper`, have their options in `options/commands.py`; `report`, `export`, `runs`,
`methods` and `schema` have theirs here, written in the same way. No `from __future__ import annotations`: options are
read as they are.
"""

from typing import Annotated

import typer

from stabkit import api
from stabkit.cli import console
from stabkit.cli.command import PROBING, TRAINING, Invocation, command, direct
from stabkit.cli.help import ROOT, Commands
from stabkit.errors import UsageError
from stabkit.options.commands import AllFigures, Arch, LogOptions, Out, PaperOptions
from stabkit.options.option import HOME, OUT, TRAIN, Argument, Option

app = typer.Typer(
    name="stabkit",
    help="Will this residual, normalisation and initialisation scheme stay stable at this depth, and if not, "
    "which link of the chain breaks?",
    cls=Commands,
    epilog=ROOT,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"auto_envvar_prefix": "STABKIT", "help_option_names": ["-h", "--help"]},
)
runs_app = typer.Typer(cls=Commands, help="List, show and remove finished runs.", no_args_is_help=True)
app.add_typer(runs_app, name="runs")


def _version(value: bool) -> None:
    if value:
        from stabkit.version import __version__

        console.say(f"stabkit {__version__}")
        raise typer.Exit


Version = Annotated[
    bool,
    typer.Option("--version", callback=_version, is_eager=True, allow_from_autoenv=False, help="Print the version."),
]


Runs = Annotated[list[str], Argument("Run ids, their beginnings, or run folders; default: all.", "RUNS")]
OneRun = Annotated[str, Argument("A run id or its beginning; `stabkit runs ls` lists them.", "RUN")]
Store = Annotated[str, Option("Folder that holds runs/; default: this one.", OUT, "DIR", envvar=HOME)]


@app.callback()
def _root(version: Version = False) -> None:
    pass


@command(app, api.sweep)
def _sweep(invocation: Invocation) -> None:
    from stabkit.cli.commands.train import train

    train(invocation, api.sweep)


@command(app, api.ablate)
def _ablate(invocation: Invocation) -> None:
    from stabkit.cli.commands.train import train

    train(invocation, api.ablate)


@command(app, api.transfer, (*TRAINING, "strict_drift"))
def _transfer(invocation: Invocation) -> None:
    from stabkit.cli.commands.transfer import carried

    carried(invocation)


@command(app, api.landscape)
def _landscape(invocation: Invocation) -> None:
    from stabkit.cli.commands.train import train

    train(invocation, api.landscape)


@command(app, PaperOptions)
def _paper(invocation: Invocation) -> None:
    from stabkit.cli.commands import paper
    from stabkit.cli.commands.train import again, print_config

    params = invocation.params
    if params["print_config"]:
        print_config(params)
    elif params["items"] == ["ls"]:
        paper.ls(json=params["json"])
    else:
        for name in ("budget", *paper.REPLACED):
            if not params[name] and name in invocation.typed:
                raise UsageError(f"--{name} has an empty value; leave it out, or give it one")
        paper.run(params, again())


@direct(app)
def report(
    runs: Runs = [],  # noqa: B006  # read, never written to
    *,
    out: Annotated[str, Option("The HTML file to write.", OUT, "FILE")] = "",
    figures: Annotated[str, Option("Directory to write each figure to, as SVG, PNG, PDF and CSV.", OUT, "DIR")] = "",
    all_figures: AllFigures = False,
    store: Store = "",
) -> None:
    """Render finished runs as one HTML file."""
    from stabkit.cli.commands import report

    report.run(runs, store, out, figures, all_figures=all_figures)


@direct(app)
def export(
    runs: Runs = [],  # noqa: B006
    *,
    to: Annotated[str, Option("csv or jsonl.", OUT)] = "csv",
    out: Annotated[str, Option("The file to write; default: standard output.", OUT, "FILE")] = "",
    store: Store = "",
) -> None:
    """Write everything recorded as one long table: run, step, probe, site, value.

    A site is a place in the model, `decoder.18.ffn`, or `state`, the output; behind @ stands what else is read there.
    Of the probe `update`, `state` is ‖ΔF‖ from the start, `state@step` that of one update.
    """
    from stabkit.cli.commands import export

    export.run(runs, store, to, out)


@direct(runs_app, ("json",), "ls")
def runs_ls(*, out: Out = "", json: bool = False) -> None:
    """List finished runs (id, outcome, steps, loss, seconds), and watches of your own trainings."""
    from stabkit.cli.commands import lookup, runs
    from stabkit.options import stored

    store = stored.home(str(out or ""))
    if json:
        runs.listing_as_json(*lookup.both(store, []))
    else:
        runs.listing(lookup.lines(store), lookup.watches(store, []))
        runs.in_progress(store)


@direct(runs_app, ("json",), "show")
def runs_show(run: OneRun, *, out: Out = "", json: bool = False) -> None:
    """Show one run or watch: what it was, how it ended, its chain, where it ran."""
    from stabkit.cli.commands import runs
    from stabkit.options import stored

    runs.show(stored.either(stored.home(str(out or "")), run), json=json)


@direct(runs_app, ("json",), "verify")
def runs_verify(*, out: Out = "", json: bool = False) -> None:
    """Check the files of everything stored against their checksums, and repair nothing."""
    from stabkit.cli.commands import runs
    from stabkit.options import stored

    runs.verify(stored.home(str(out or "")), json=json)


@direct(runs_app, name="rm")
def runs_rm(
    runs: Annotated[list[str], Argument("Run ids or their beginnings; each must name exactly one run.", "RUNS")],
    *,
    out: Out = "",
) -> None:
    """Remove runs or watches from the store."""
    from stabkit.cli.commands.runs import remove
    from stabkit.options import stored

    remove(stored.home(str(out or "")), runs)


@direct(app, ("json",))
def methods(
    model: Annotated[str, Argument("A method, to show its constants; ./my.py:function is your own.", "METHOD")] = "",
    *,
    depths: Annotated[str, Option("Depths for the constants.", TRAIN, "DEPTHS")] = "18",
    arch: Arch = "encoder-decoder",
    json: bool = False,
) -> None:
    """The methods: formula, source, options, parameters added, claims; with a name, every constant at each depth."""
    from stabkit.cli.commands import methods
    from stabkit.options import ranges

    pairs = ranges.depths("--depths", depths, ranges.stacks("--arch", arch))
    methods.methods(model, pairs, json=json)


@direct(app)
def schema(
    document: Annotated[
        list[str],
        Argument("A command, or a name from the list: probe, sweep-dry-run.", "COMMAND"),
    ] = [],  # noqa: B006
) -> None:
    """The JSON Schema of what a command prints with `--json`; without a command, the list of schemas."""
    from stabkit.cli.commands import schema

    schema.show("-".join(document))


@command(app, api.probe, PROBING)
def _probe(invocation: Invocation) -> None:
    from stabkit.cli.commands.probe import probe

    probe(invocation)


@command(app, api.audit, ("json",))
def _audit(invocation: Invocation) -> None:
    from stabkit.own.factory import refuse_missing

    refuse_missing("FACTORY", invocation.given["factory"])  # before torch
    from stabkit.cli.commands.audit import audit

    audit(invocation.given, json=invocation.flag("json"))


@command(app, LogOptions, ("json", "follow"))
def _log(invocation: Invocation) -> None:
    from stabkit.cli.commands.log import log

    log(invocation)
