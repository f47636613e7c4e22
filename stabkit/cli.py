"""The command line: parse → call one function → print. Heavy imports stand inside the commands."""

from __future__ import annotations

import importlib
import io
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from stabkit import console
from stabkit.errors import FailedRuns, StabkitError, StoreError, UsageError
from stabkit.options import COMMANDS, PAPER, Arch, Dtype, Json, Out, taking

app = typer.Typer(
    name="stabkit",
    help="Will this residual, normalisation and initialisation scheme stay stable at this depth, and if not, "
    "which link of the chain breaks?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"auto_envvar_prefix": "STABKIT", "help_option_names": ["-h", "--help"]},
)
runs_app = typer.Typer(help="List, show and remove finished runs.", no_args_is_help=True)
app.add_typer(runs_app, name="runs")


def _version(value: bool) -> None:
    if value:
        from stabkit import __version__

        console.say(f"stabkit {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


@app.command()
@taking(COMMANDS["sweep"])
def sweep(ctx: typer.Context, **options: Any) -> None:
    """Train every method at every depth and say which stay stable: a verdict table and an HTML report.

    The same command again trains nothing; a wider grid trains only what is missing.
    """
    from stabkit import flags

    _train(ctx, flags.sweep)


@app.command()
@taking(COMMANDS["ablate"])
def ablate(ctx: typer.Context, **options: Any) -> None:
    """Scale α and β (DeepNet Fig. 9): what breaks when the shortcut or the initialisation is off?

    Without --alpha-scale and --beta-scale each is scaled by 0.25, 0.5, 1, 2 and 4 in turn: nine runs.
    """
    from stabkit import flags

    _train(ctx, flags.ablate)


@app.command()
@taking(COMMANDS["slope"])
def slope(ctx: typer.Context, **options: Any) -> None:
    """Make one tiny SGD step and say how far it moves the output: the methods ranked at every depth, no training.

    ‖ΔF‖/η as η → 0, the linear regime of DeepNet's theorems. A minute for all methods up to 50 layers.
    """
    from stabkit import flags

    _train(ctx, flags.slope)


@app.command()
@taking(COMMANDS["landscape"])
def landscape(ctx: typer.Context, **options: Any) -> None:
    """Draw the loss around a trained model, beside another's: how smooth is it, and by whose ruler?

    Surfaces and cuts along random directions under three rulers, and the path of training in its own plane.
    """
    from stabkit import flags, machine

    if ctx.params["weights"] and not ctx.params["factory"]:
        raise UsageError("--weights is for the model of --factory")
    alone = [name for name in ("between", "factory") if ctx.params[name]]
    aside = [f"--{name.replace('_', '-')}" for name in ("json", "dry_run") if ctx.params[name]]
    if len(alone) > 1 or (alone and aside):
        raise UsageError(f"--{alone[0]} does not go with {'--factory' if len(alone) > 1 else aside[0]}")
    if ctx.params["between"] and not ctx.params["print_config"]:
        _between(ctx.params)
        return
    if ctx.params["factory"] and not ctx.params["print_config"]:
        from stabkit import own_model

        text = {name: str(value) for name, value in ctx.params.items()}
        own_model.draw(text["factory"], text["weights"], flags.surfaces(text, 0, "cpu"), machine.output(text["out"]))
        return
    _train(ctx, flags.landscape)


def _train(ctx: typer.Context, request: Callable[[Any], Any]) -> None:
    """What commands that train share: print the configuration, or make the request and run it."""
    params = ctx.params
    if params["print_config"]:
        _print_config(params)
        return
    given = {name for name in params if ctx.get_parameter_source(name).name != "DEFAULT"}  # type: ignore[union-attr]
    asked = request({**params, "given": given})
    for note in asked.notes:
        console.warn(note)
    if params["dry_run"]:
        _show(asked, json=params["json"])
    else:
        _run(asked, _again(), **{name: params[name] for name in ("json", "quiet", "yes", "retry_failed")})


def _print_config(params: Any) -> None:
    """`--print-config`: what `--config` reads."""
    from stabkit import config

    aside = ("config", "print_config", "dry_run", "json", "quiet", "retry_failed", "yes", "items")
    console.document(config.write({name: value for name, value in params.items() if name not in aside}))


def _show(request: Any, *, json: bool) -> None:
    """`--dry-run`: what would run and what it would cost; of a huge grid the cost alone."""
    from stabkit import present
    from stabkit import request as requests
    from stabkit import sweep as engine
    from stabkit.store import Store

    if len(request) > requests.MANY_RUNS:
        present.budget(requests.budget(request), request.workers, json=json)
        return
    specs = request.specs()
    present.plan(specs, engine.plan(specs, Store(request.out), repair=False), request.workers, json=json)


def _run(request: Any, command: str, *, json: bool, quiet: bool, yes: bool, retry_failed: bool) -> None:
    """Train what is missing, measure what is asked for, render, print."""
    from stabkit import carry, document, present
    from stabkit import request as requests
    from stabkit.signals import Signals
    from stabkit.store import Store

    if not yes:
        requests.check(request)
    store = Store(request.out)
    threading.Thread(target=importlib.import_module, args=("stabkit.report.html",), daemon=True).start()
    with store.writing(), Signals(command):
        done = carry.out(request, store, quiet=quiet, retry_failed=retry_failed)
        from stabkit.claims import findings

        claimed = findings(done.runs, done.surfaces)
        path = store.out / "reports" / present.report_name(request.specs(), done.surfaces)
        page = present.write(done.runs, done.failed, claimed, path, command, done.surfaces)
    if json:
        console.document(document.sweep(done.runs, done.failed, claimed, page, done.surfaces))
    else:
        present.slopes(done.runs)
        present.verdict(done.runs, done.failed)
        present.quality(done.runs)
        present.roughness(done.runs, done.surfaces)
        present.claims(claimed)
        console.say()
        console.say(f"report: {page}")
    for spec, reason in done.untranslated:
        console.warn(f"{spec.run_id} is {reason}")
    if done.untranslated:
        raise FailedRuns(
            f"{len(done.untranslated)} of {len(done.runs)} runs were not translated; the report is without"
        )
    if done.failed:
        raise FailedRuns(
            f"{len(done.failed)} of {len(request.specs())} runs have no result; the report says why; the same command "
            "with --retry-failed tries them again"
        )


def _between(params: dict[str, Any]) -> None:
    """The line or triangle between stored runs: nothing is trained."""
    from stabkit import carry, flags, listing, present
    from stabkit import landscape as engine
    from stabkit.claims import findings
    from stabkit.signals import Signals

    store = _home(str(params["out"]))
    runs = [listing.wanted(store, name.strip()) for name in str(params["between"]).split(",")]
    model = runs[0].spec.model
    request: Any = flags.landscape({**params, **flags.depth(model.encoder_layers, model.decoder_layers)})
    with store.writing(), Signals(_again()):
        surfaces = carry.surfaces(request, engine.between(runs, request.surfaces), quiet=params["quiet"])
    path = store.out / "reports" / present.report_name([run.spec for run in runs], surfaces, "between")
    console.say(f"report: {present.write(runs, [], findings(runs, surfaces), path, _again(), surfaces)}")


@app.command()
@taking(PAPER, items=True)
def paper(ctx: typer.Context, items: list[str], **options: Any) -> None:
    """Rerun figures and tables of the papers: `paper ls` names them, `paper fig9` runs one, `paper all` every one.

    One page: the paper's picture in words, ours, what was scaled down, the claims with their verdicts.
    """
    from stabkit.paper import command

    params = ctx.params
    if params["print_config"]:
        _print_config(params)
    elif params["items"] == ["ls"]:
        command.ls(json=params["json"])
    else:
        for name in ("budget", *command.REPLACED):
            if not params[name] and ctx.get_parameter_source(name).name == "COMMANDLINE":  # type: ignore[union-attr]
                raise UsageError(f"--{name} has an empty value; leave it out, or give it one")
        command.run(params, _again())


@app.command()
def report(
    runs: Annotated[
        list[str] | None, typer.Argument(help="Run ids, their beginnings, or run folders; default: all.")
    ] = None,
    out: Annotated[str, typer.Option("--out", help="The HTML file to write.")] = "",
    figures: Annotated[str, typer.Option(help="A directory for every figure as SVG, PNG, PDF and CSV.")] = "",
    store: Annotated[str, typer.Option(envvar="STABKIT_HOME", help="Where runs/ is; default: here.")] = "",
) -> None:
    """Render finished runs as one HTML file."""
    from stabkit import listing, present
    from stabkit.claims import findings

    home = _source(runs or [], store)
    found = listing.find(home, runs or [], whole=True)
    if not found:
        which = "none of the runs named" if runs else f"no run in {home.runs}"
        raise UsageError(f"{which} can be read; `stabkit runs verify` says why")
    path = Path(out) if out else home.out / "reports" / "report.html"
    if figures:
        count = present.pictures(found, Path(figures))
        console.say(f"{count} figures, each as SVG, PNG, PDF and CSV: {figures}")
    page = present.write(found, [], findings(found), path.absolute(), _again())
    console.say(f"report: {page}")


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
    from stabkit import export as door
    from stabkit import listing

    kind, table = door.kind(to), door.table(what)
    found = listing.find(_source(runs or [], store), runs or [], whole=True)
    door.export(found, kind, Path(out) if out else None, table)


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
    from stabkit import fold as door
    from stabkit import listing

    store = _home(out)
    found = listing.one(store, run)
    where = Path(to) if to else door.home(store.out, found)
    door.show(door.save(found, where, dtype), where, json=json)


@runs_app.command("ls")
def runs_ls(out: Out = "", json: Json = False) -> None:
    """List finished runs: id, outcome, steps, loss, seconds."""
    from stabkit import listing

    listing.listing(listing.find(_home(out), []), json=json)


@runs_app.command("show")
def runs_show(
    run: Annotated[str, typer.Argument(help="A run id or its beginning.")], out: Out = "", json: Json = False
) -> None:
    """Show one run: what it was, how it ended, its chain, where it ran."""
    from stabkit import listing

    listing.show(listing.one(_home(out), run), json=json)


@runs_app.command("verify")
def runs_verify(out: Out = "", json: Json = False) -> None:
    """Check every run's files against their checksums, and repair nothing."""
    from stabkit import listing

    listing.verify(_home(out), json=json)


@runs_app.command("rm")
def runs_rm(
    runs: Annotated[list[str], typer.Argument(help="Run ids or their beginnings; each must name exactly one run.")],
    out: Out = "",
) -> None:
    """Remove runs from the store."""
    from stabkit import listing

    store = _home(out)
    with store.writing():
        for run_id in dict.fromkeys(listing.one_id(store, run) for run in runs):
            store.remove(run_id)
            console.say(f"removed {run_id}")


@app.command()
def methods(
    model: Annotated[str, typer.Argument(help="One method, for its constants.")] = "",
    depths: Annotated[str, typer.Option(help="Depths for the constants.")] = "18",
    arch: Arch = "encoder-decoder",
    json: Json = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print a page to link to, a heading a method.")] = False,
) -> None:
    """The methods: formula, source, options, parameters added, claims; with a name, every constant at each depth."""
    from stabkit import catalogue, ranges

    pairs = ranges.depths("--depths", depths, ranges.stacks("--arch", arch))
    catalogue.methods(model, pairs, json=json, markdown=markdown)


@app.command()
def audit(
    factory: Annotated[str, typer.Argument(help="package.module:function that returns a model or (model, inputs).")],
    method: Annotated[str, typer.Option(help="The recipe: a method, options after a colon: admin:omega=closed.")],
    depths: Annotated[str, typer.Option(help="Layers that the model is said to have: 18x12, or 18 for 18x18.")],
    arch: Annotated[
        str, typer.Option(help="encoder-decoder, encoder-only or decoder-only (then --depths is one number).")
    ] = "encoder-decoder",
    json: Json = False,
) -> None:
    """Compare your own model with a method's recipe: run it once, measure it, say what is violated.

    Finds sub-layers, norms, scales and matrices in the forward pass, by no name. Exits with 6 on a violation.
    """
    from stabkit import audit as door
    from stabkit import methods as table
    from stabkit.audit import command
    from stabkit.errors import RecipeViolated

    recipe = table.build(*table.parse(method))
    n, m = command.depth(depths, arch)
    model, inputs = command.model(factory)
    found = door.audit(model, recipe, n, m, inputs)
    command.show(found, factory, json=json)
    if count := len(found.findings):
        raise RecipeViolated(f"{recipe.label}'s recipe is violated in {count} point{'s' * (count > 1)}")


def _source(runs: list[str], store: str) -> Any:
    """The store that names refer to; when all are folders, any."""
    from stabkit.store import Store

    folders = [run for run in runs if os.path.isfile(os.path.join(run, "spec.json"))]
    return Store(Path(store or ".")) if folders and len(folders) == len(runs) else _home(store)


def _home(out: str) -> Any:
    from stabkit.store import Store

    home = Path(out or ".")
    if not (home / "runs").is_dir():
        raise UsageError(f"there are no runs in {home.resolve()}; --out names the directory that holds runs/")
    return Store(home)


def _again() -> str:
    """The command as it can be typed again."""
    import shlex

    return shlex.join(["stabkit", *sys.argv[1:]])


def main() -> None:
    """The entry point: every StabkitError and every slip of the command line is one red line and its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that cannot show ‖ΔF‖ gets its code
    try:
        code = app(standalone_mode=False)
        if code == 130:
            console.error("interrupted")  # typer turns an early Ctrl-C into a code of its own
    except typer.TyperException as error:
        console.error(_sentence(error))
        code = 2
    except StabkitError as error:
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
    return " ".join(str(error.format_message()).split())
