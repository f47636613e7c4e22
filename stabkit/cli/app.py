"""The command line: parse → call one function → print. Heavy imports stand inside the commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from stabkit.cli import console
from stabkit.cli.flags import Arch, Dtype, Json, Out
from stabkit.cli.front.help import ROOT, Commands
from stabkit.cli.options import COMMANDS, PAPER, taking
from stabkit.errors import UsageError

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


@app.callback()
def _root(version: Version = False) -> None:
    pass


@app.command()
@taking(COMMANDS["sweep"])
def sweep(ctx: typer.Context, **options: Any) -> None:
    """Train every method at every depth and say which stay stable: a verdict table and an HTML report.

    The same command again trains nothing; a wider grid trains only what is missing.
    """
    from stabkit.cli.commands.train import train
    from stabkit.cli.parsing import grids

    train(ctx, grids.sweep)


@app.command()
@taking(COMMANDS["ablate"])
def ablate(ctx: typer.Context, **options: Any) -> None:
    """Scale α and β (DeepNet Fig. 9): what breaks when the shortcut or the initialisation is off?

    Without --alpha-scale and --beta-scale each is scaled by 0.25, 0.5, 1, 2 and 4 in turn: nine runs.
    """
    from stabkit.cli.commands.train import train
    from stabkit.cli.parsing import grids

    train(ctx, grids.ablate)


@app.command()
@taking(COMMANDS["slope"])
def slope(ctx: typer.Context, **options: Any) -> None:
    """Make one tiny SGD step and say how far it moves the output: the methods ranked at every depth, no training.

    ‖ΔF‖/η as η → 0, the linear regime of DeepNet's theorems. A minute for all methods up to 50 layers.
    """
    from stabkit.cli.commands.train import train
    from stabkit.cli.parsing import grids

    train(ctx, grids.slope)


@app.command()
@taking(COMMANDS["tolerance"])
def tolerance(ctx: typer.Context, **options: Any) -> None:
    """Find the highest rate that each method tolerates at each depth, by forecasts from sixteen updates.

    A coarse grid on one seed, then halving on three: without warm-up, to a factor 1.25.
    """
    from stabkit.cli.commands.tolerance import tolerated

    tolerated(ctx.params)


@app.command()
@taking(COMMANDS["landscape"])
def landscape(ctx: typer.Context, **options: Any) -> None:
    """Draw the loss around a trained model, beside another's: how smooth is it, and by whose ruler?

    Surfaces and cuts along random directions under three rulers, and the path of training in its own plane.
    """
    from stabkit.cli.commands.train import train
    from stabkit.cli.parsing import landscape as landscape_options
    from stabkit.cli.parsing import machine

    params = ctx.params
    if params["weights"] and not params["factory"]:
        raise UsageError("--weights is for the model of --factory")
    alone = [name for name in ("between", "factory") if params[name]]
    aside = [f"--{name.replace('_', '-')}" for name in ("json", "dry_run") if params[name]]
    if len(alone) > 1 or (alone and aside):
        raise UsageError(f"--{alone[0]} does not go with {'--factory' if len(alone) > 1 else aside[0]}")
    if not alone or params["print_config"]:
        train(ctx, landscape_options.landscape)
        return
    from stabkit.cli.commands import landscape

    if params["between"]:
        landscape.between(params)
    else:
        text = {name: str(value) for name, value in params.items()}
        wanted = landscape_options.surfaces(text, 0, "cpu")
        landscape.own(text["factory"], text["weights"], wanted, machine.output(text["out"]))


@app.command()
@taking(PAPER, names=("items",))
def paper(ctx: typer.Context, items: list[str], **options: Any) -> None:
    """Rerun figures and tables of the papers: `paper ls` names them, `paper fig9` runs one, `paper all` every one.

    One page: the paper's picture in words, ours, what was scaled down, the claims with their verdicts.
    """
    from stabkit.cli.commands import paper
    from stabkit.cli.commands.train import again, print_config

    params = ctx.params
    if params["print_config"]:
        print_config(params)
    elif params["items"] == ["ls"]:
        paper.ls(json=params["json"])
    else:
        for name in ("budget", *paper.REPLACED):
            if not params[name] and ctx.get_parameter_source(name).name == "COMMANDLINE":  # type: ignore[union-attr]
                raise UsageError(f"--{name} has an empty value; leave it out, or give it one")
        paper.run(params, again())


@app.command()
def report(
    runs: Annotated[
        list[str] | None, typer.Argument(help="Run ids, their beginnings, or run folders; default: all.")
    ] = None,
    out: Annotated[str, typer.Option("--out", help="The HTML file to write.")] = "",
    figures: Annotated[str, typer.Option(help="A directory for every figure as SVG, PNG, PDF and CSV.")] = "",
    store: Annotated[str, typer.Option(envvar="STABKIT_HOME", help="Where runs/ is; default: here.")] = "",
    open: Annotated[bool, typer.Option("--open", help="Show the page in a browser.")] = False,
) -> None:
    """Render finished runs as one HTML file."""
    from stabkit.cli.commands import report

    report.run(runs or [], store, out, figures, show=open)


@app.command()
def export(
    runs: Annotated[
        list[str] | None, typer.Argument(help="Run ids, their beginnings, or run folders; default: all.")
    ] = None,
    what: Annotated[str, typer.Option(help="records, or translations (of `sweep --bleu`).")] = "records",
    to: Annotated[str, typer.Option(help="csv or jsonl.")] = "csv",
    out: Annotated[str, typer.Option("--out", help="The file to write; default: standard output.")] = "",
    store: Annotated[str, typer.Option(envvar="STABKIT_HOME", help="Where runs/ is; default: here.")] = "",
) -> None:
    """Write everything that was recorded as one long table: run, step, probe, site, value; or what was translated."""
    from stabkit.cli.commands import export

    export.run(runs or [], store, to, what, out)


@app.command()
def fold(
    run: Annotated[str, typer.Argument(help="A run id or its beginning.")],
    out: Out = "",
    to: Annotated[str, typer.Option(help="The directory to write to; default: OUT/folded/RUN.")] = "",
    dtype: Dtype = "float64",
    json: Json = False,
) -> None:
    """Turn trained ADMIN or DeepNorm weights into a plain Post-LN model with the same outputs, for torch.nn's layers.

    Writes model.safetensors and a config.json that says what it is; the outputs are compared in float64 first.
    """
    from stabkit.cli.commands import fold, names

    store = names.home(out)
    found = names.one(store, run)
    where = Path(to) if to else fold.home(store.out, found)
    fold.show(fold.save(found, where, dtype), where, json=json)


@runs_app.command("ls")
def runs_ls(out: Out = "", json: Json = False) -> None:
    """List finished runs (id, outcome, steps, loss, seconds), and watches of your own trainings."""
    from stabkit.cli.commands import names, runs

    runs.listing(*names.both(names.home(out), []), json=json)


@runs_app.command("show")
def runs_show(
    run: Annotated[str, typer.Argument(help="A run id or its beginning.")], out: Out = "", json: Json = False
) -> None:
    """Show one run or watch: what it was, how it ended, its chain, where it ran."""
    from stabkit.cli.commands import names, runs

    runs.show(names.either(names.home(out), run), json=json)


@runs_app.command("verify")
def runs_verify(out: Out = "", json: Json = False) -> None:
    """Check the files of every run and watch against their checksums, and repair nothing."""
    from stabkit.cli.commands import names, runs

    runs.verify(names.home(out), json=json)


@runs_app.command("rm")
def runs_rm(
    runs: Annotated[list[str], typer.Argument(help="Run ids or their beginnings; each must name exactly one run.")],
    out: Out = "",
) -> None:
    """Remove runs or watches from the store."""
    from stabkit.cli.commands import names
    from stabkit.cli.commands.runs import remove

    remove(names.home(out), runs)


@app.command()
def methods(
    model: Annotated[str, typer.Argument(help="One method, for its constants; or check, and what to check.")] = "",
    checked: Annotated[str, typer.Argument(metavar="[METHOD]", help="After check: a method, ./my.py:function.")] = "",
    depths: Annotated[str, typer.Option(help="Depths for the constants.")] = "18",
    arch: Arch = "encoder-decoder",
    json: Json = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print a page to link to, a heading a method.")] = False,
) -> None:
    """The methods: formula, source, options, parameters added, claims; with a name, every constant at each depth.

    `check ./my.py:function` tries a method of your own against the contract that all keep; exits with 6 if it breaks.
    """
    from stabkit.cli import ranges
    from stabkit.cli.commands import methods

    if model == "check" or checked:
        methods.check(model, checked, json=json)
        return
    pairs = ranges.depths("--depths", depths, ranges.stacks("--arch", arch))
    methods.methods(model, pairs, json=json, markdown=markdown)


@app.command()
@taking(COMMANDS["probe"], names=("factory",))
def probe(ctx: typer.Context, factory: str, **options: Any) -> None:
    """Probe your own model over depths before you train it: which link of the chain breaks, if any?

    factory(depth) returns a model, (model, loss) or (model, loss, optimizer). Exits with 7 where a link fails.
    """
    from stabkit.cli.commands import probe
    from stabkit.cli.commands.train import again

    probe.probe(ctx.params, again())


@app.command()
def audit(
    factory: Annotated[
        str, typer.Argument(help="package.module:function that returns a model, (model, inputs) or (model, loss).")
    ],
    method: Annotated[
        str, typer.Option(help="The recipe, as admin:omega=closed; left out: the one that fits best.")
    ] = "",
    depths: Annotated[
        str, typer.Option(help="Layers that it is said to have: 18x12, or 18 for 18x18; left out: those found.")
    ] = "",
    arch: Annotated[
        str, typer.Option(help="encoder-decoder, encoder-only or decoder-only; left out: what is found.")
    ] = "",
    json: Json = False,
) -> None:
    """Compare your own model with a method's recipe: run it once, measure it, say what is violated.

    Finds sub-layers, norms, scales and matrices in the forward pass, by no name. Exits with 6 on a violation.
    """
    from stabkit.cli.commands import audit

    audit.audit(factory, method, depths, arch, json=json)
