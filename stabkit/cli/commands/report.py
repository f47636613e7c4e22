"""`stabkit report`: finished runs as one page, every figure as files; a page for each watch of a user's training."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from stabkit.cli import console
from stabkit.cli.commands import lookup
from stabkit.cli.commands.train import again
from stabkit.errors import StabkitError, UsageError
from stabkit.options import stored
from stabkit.report import files
from stabkit.report.own import watch
from stabkit.report.summary import summarise
from stabkit.storage.folder import reports


def run(named: Sequence[str], store: str, out: str, figures: str, *, all_figures: bool = False) -> None:
    """Render the runs named, or all of the store."""
    home = stored.source(named, store)
    stored_runs, watches = lookup.both(home, named)
    pages = []
    for own in watches:
        try:
            pages.append(watch.write(own, home.out, again()))
        except Exception as error:  # values of the right types that no watch has, a full disk: no other page is lost
            ours = isinstance(error, StabkitError)
            if ours and own is watches[-1] and not pages:
                raise
            why = str(error) if ours else f"its contents are not those of a watch ({type(error).__name__})"
            console.warn(f"no page for {own.watch_id}: {why}")
            continue
        console.say(f"report: {pages[-1]}")
    if not stored_runs and pages and (named or not home.ids()):
        if out or figures:
            console.warn("--out and --figures are for runs; a watch has its page, with every figure, under reports/")
        return
    if not stored_runs:
        which = "none of the named runs" if named else f"no run in {home.runs}"
        raise UsageError(f"{which} can be read; `stabkit runs verify` says why")
    path = Path(out) if out else reports(home.out) / "report.html"
    if figures:
        count = files.write_pictures(stored_runs, Path(figures))
        console.say(f"{count} figures, each as SVG, PNG, PDF and CSV: {figures}")
    page = files.write_page(summarise(stored_runs), path.absolute(), again(), all_figures=all_figures)
    console.say(f"report: {page}")
