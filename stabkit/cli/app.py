"""The command line: parse → call one function → print. Heavy imports stand inside the commands.

A command that has a function in `api.py` takes its options from there; `report`, `export`, `fold`, `runs` and `methods`
read a store or a table, and have theirs here. No `from __future__ import annotations`: `paper`'s options are read as
they are.
"""

from pathlib import Path
from typing import Annotated, Any

import typer

from stabkit import api
from stabkit.cli import console
from stabkit.cli.command import PROBING, Invocation, command
from stabkit.cli.help import ROOT, Commands
from stabkit.errors import UsageError
from stabkit.options.option import HOME, LONG, ON, OUT, TRAIN, Argument, Option

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
    bool, typer.Option("--version", callback=_version, is_eager=True, allow_from_autoenv=False, help="Print it.")
]


def _option(help: str, metavar: str = "WORD", **more: Any) -> Any:
    return typer.Option(help=help, metavar=metavar, show_envvar=False, **more)


Runs = Annotated[
    list[str] | None,
    typer.Argument(help="Run ids, their beginnings, or run folders; default: all.", metavar="RUNS"),
]
OneRun = Annotated[str, typer.Argument(help="A run id or its beginning.", metavar="RUN")]
Store = Annotated[str, _option("Where runs/ is; default: here.", "DIR", envvar=HOME)]
Out = Annotated[str, _option("Where runs/ and reports/ are; default: here.", "DIR", envvar=HOME)]
Dtype = Annotated[str, _option("float32 or float64.")]
Arch = Annotated[str, _option("encoder-decoder, encoder-only or decoder-only.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.", show_envvar=False)]


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


@command(app, api.slope)
def _slope(invocation: Invocation) -> None:
    from stabkit.cli.commands.train import train

    train(invocation, api.slope)


@command(app, api.tolerance)
def _tolerance(invocation: Invocation) -> None:
    from stabkit.cli.commands.tolerance import tolerated

    tolerated(invocation)


@command(app, api.landscape)
def _landscape(invocation: Invocation) -> None:
    from stabkit.cli.commands.landscape import landscape

    landscape(invocation)


def paper(
    items: Annotated[
        list[str], Argument("ls, items such as fig9 table1 admin-table3, or all.", "ITEMS", completion="items")
    ],
    *,
    depths: Annotated[str, Option("Instead of the items' own: a smaller version of all.", TRAIN, "DEPTHS")] = "",
    data: api.Data = None,
    source: api.Source = None,
    target: api.Target = None,
    vocab: api.Vocab = 2000,
    seeds: Annotated[str, Option("Instead of the items' own.", ON, "SEEDS")] = "",
    steps: Annotated[str, Option("Instead of the items' own.", LONG, "UPDATES")] = "",
    budget: Annotated[
        str, Option("Time that the whole may take: 45m, 2h; the cheapest items first.", LONG, "TIME")
    ] = "",
    whole: Annotated[bool, Option("All items in one file, in place of an index and a page each.", OUT)] = False,
    out: api.Out = None,
    workers: api.Workers = "auto",
    device: api.Device = "auto",
    executor: api.Executor = "processes",
    scheduler: api.Scheduler = None,
    checkpoint_every: api.CheckpointEvery = "auto",
    run_timeout: api.RunTimeout = 0.0,
    retry_failed: api.RetryFailed = False,
    yes: api.Yes = False,
) -> None:
    """Rerun figures and tables of the papers: `paper ls` names them, `paper fig9` runs one, `paper all` every one.

    One page: the paper's picture in words, ours, what was scaled down, the claims with their verdicts.
    """


@command(app, paper)
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


@app.command()
def report(
    runs: Runs = None,
    out: Annotated[str, _option("The HTML file to write.", "FILE")] = "",
    figures: Annotated[str, _option("A directory for every figure as SVG, PNG, PDF and CSV.", "DIR")] = "",
    store: Store = "",
    open: Annotated[bool, typer.Option("--open", help="Show the page in a browser.", show_envvar=False)] = False,
) -> None:
    """Render finished runs as one HTML file."""
    from stabkit.cli.commands import report

    report.run(runs or [], store, out, figures, show=open)


@app.command()
def export(
    runs: Runs = None,
    what: Annotated[str, _option("records, or translations (of `sweep --bleu`).")] = "records",
    to: Annotated[str, _option("csv or jsonl.")] = "csv",
    out: Annotated[str, _option("The file to write; default: standard output.", "FILE")] = "",
    store: Store = "",
) -> None:
    """Write everything that was recorded as one long table: run, step, probe, site, value; or what was translated."""
    from stabkit.cli.commands import export

    export.run(runs or [], store, to, what, out)


@app.command()
def fold(
    run: OneRun,
    out: Out = "",
    to: Annotated[str, _option("The directory to write to; default: OUT/folded/RUN.", "DIR")] = "",
    dtype: Dtype = "float64",
    json: Json = False,
) -> None:
    """Turn trained ADMIN or DeepNorm weights into a plain Post-LN model with the same outputs, for torch.nn's layers.

    Writes model.safetensors and a config.json that says what it is; the outputs are compared in float64 first.
    """
    from stabkit.cli.commands import fold
    from stabkit.options import stored

    store = stored.home(out)
    chosen = stored.one(store, run)
    where = Path(to) if to else fold.home(store.out, chosen)
    fold.show(fold.save(chosen, where, dtype), where, json=json)


@runs_app.command("ls")
def runs_ls(out: Out = "", json: Json = False) -> None:
    """List finished runs (id, outcome, steps, loss, seconds), and watches of your own trainings."""
    from stabkit.cli.commands import lookup, runs
    from stabkit.options import stored

    runs.listing(*lookup.both(stored.home(out), []), json=json)


@runs_app.command("show")
def runs_show(run: OneRun, out: Out = "", json: Json = False) -> None:
    """Show one run or watch: what it was, how it ended, its chain, where it ran."""
    from stabkit.cli.commands import runs
    from stabkit.options import stored

    runs.show(stored.either(stored.home(out), run), json=json)


@runs_app.command("verify")
def runs_verify(out: Out = "", json: Json = False) -> None:
    """Check the files of every run and watch against their checksums, and repair nothing."""
    from stabkit.cli.commands import runs
    from stabkit.options import stored

    runs.verify(stored.home(out), json=json)


@runs_app.command("rm")
def runs_rm(
    runs: Annotated[
        list[str], typer.Argument(help="Run ids or their beginnings; each must name exactly one run.", metavar="RUNS")
    ],
    out: Out = "",
) -> None:
    """Remove runs or watches from the store."""
    from stabkit.cli.commands.runs import remove
    from stabkit.options import stored

    remove(stored.home(out), runs)


@app.command()
def methods(
    model: Annotated[
        str, typer.Argument(metavar="METHOD", help="One method, for its constants; or check, and what to check.")
    ] = "",
    checked: Annotated[str, typer.Argument(metavar="METHOD", help="After check: a method, ./my.py:function.")] = "",
    depths: Annotated[str, _option("Depths for the constants.", "DEPTHS")] = "18",
    arch: Arch = "encoder-decoder",
    json: Json = False,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print a page to link to, a heading a method.", show_envvar=False)
    ] = False,
) -> None:
    """The methods: formula, source, options, parameters added, claims; with a name, every constant at each depth.

    `check ./my.py:function` tries a method of your own against the contract that all keep; exits with 6 if it breaks.
    """
    from stabkit.cli.commands import methods
    from stabkit.options import ranges

    if model == "check" or checked:
        methods.check(model, checked, json=json)
        return
    pairs = ranges.depths("--depths", depths, ranges.stacks("--arch", arch))
    methods.methods(model, pairs, json=json, markdown=markdown)


@command(app, api.probe, PROBING)
def _probe(invocation: Invocation) -> None:
    from stabkit.cli.commands.probe import probe

    probe(invocation)


@command(app, api.audit, ("json",))
def _audit(invocation: Invocation) -> None:
    from stabkit.cli.commands.audit import audit

    audit(invocation.given, json=invocation.flag("json"))
