"""`stabkit report`: finished runs as one page, every figure as files; a page for each watch of a user's training."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from stabkit.claims import findings
from stabkit.cli import console
from stabkit.cli.commands import names
from stabkit.cli.commands.train import again
from stabkit.errors import StoreError, UsageError
from stabkit.report import files
from stabkit.report.own import watch
from stabkit.storage.watched import WatchShelf


def run(named: Sequence[str], store: str, out: str, figures: str) -> None:
    """Render the runs named, or all of the store."""
    base = Path(store or ".")
    shelf = WatchShelf(base)
    watches = [own for own in shelf.ids() if not named or own in named]
    unread: list[StoreError] = []
    for own in watches:
        try:
            console.say(f"report: {watch.write(shelf.load(own), base, again())}")
        except StoreError as error:
            unread.append(error)
            console.warn(str(error))
    named = [one for one in named if one not in watches]
    if watches and not named and not (base / "runs").is_dir():
        if len(unread) == len(watches):
            raise unread[0]
        return
    home = names.source(named, store)
    found = names.find(home, named)
    if not found:
        which = "none of the runs named" if named else f"no run in {home.runs}"
        raise UsageError(f"{which} can be read; `stabkit runs verify` says why")
    path = Path(out) if out else home.out / "reports" / "report.html"
    if figures:
        count = files.write_pictures(found, Path(figures))
        console.say(f"{count} figures, each as SVG, PNG, PDF and CSV: {figures}")
    page = files.write_page(found, [], findings(found), path.absolute(), again())
    console.say(f"report: {page}")
