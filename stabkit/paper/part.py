"""An item as it was run: what its section of the page is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from stabkit.claims import Finding, findings
from stabkit.paper.item import Item
from stabkit.results.run import Run
from stabkit.results.surface import Surface
from stabkit.spec import RunSpec


@dataclass(frozen=True, kw_only=True, eq=False)
class Part:
    """An item, its commands and what they left."""

    item: Item
    commands: tuple[str, ...]
    instead: str = ""
    """`--depths 2 --steps 3` where they replaced the item's own; else nothing."""
    notes: tuple[str, ...] = ()
    """What its commands left out, and why."""
    stopped: str = ""
    """Why it was not run to its end; else nothing."""
    runs: Sequence[Run] = ()
    failed: Sequence[tuple[RunSpec, str]] = ()
    surfaces: Sequence[Surface] = ()

    @cached_property
    def findings(self) -> dict[str, Finding]:
        """Its claims and those beside them, judged on its own runs."""
        asked = (*self.item.claims, *self.item.beside)
        return {one.claim.key: one for one in findings(self.runs, self.surfaces) if one.claim.key in asked}

    def judged(self) -> list[Finding]:
        """The claims that are the item's own."""
        return [self.findings[key] for key in self.item.claims]
