"""`stabkit methods`: formulas, sources, options and constants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stabkit import console
from stabkit import methods as table
from stabkit.document import SCHEMA, text
from stabkit.methods.base import sites


def methods(model: str, depths: Sequence[tuple[int, int]], *, json: bool) -> None:
    """`methods`: the table; with a name its constants at each depth."""
    if model:
        key, options = table.parse(model)
        rows = [row for depth in depths for row in _constants(key, options, *depth)]
    else:
        rows = []
    chosen = [table.build(*table.parse(model))] if model else list(table.DEFAULTS)
    if json:
        body = {
            "schema": SCHEMA,
            "methods": [
                {
                    "key": m.key,
                    "label": m.label,
                    "group": m.group,
                    "formula": m.formula,
                    "source": m.source,
                    "options": table.options(m.key),
                }
                for m in chosen
            ],
            **({"constants": rows} if model else {}),
        }
        console.document(text(body))
        return
    for m in chosen:
        console.say(f"{m.key}  ({m.label})")
        console.say(f"  {m.formula}")
        console.say(f"  source: {m.source}")
        for name, values in table.options(m.key).items():
            console.say(f"  option {name}: {', '.join(values)} (default {values[0]})")
    if rows:
        console.say()
        console.table(
            "Constants: shortcut scale (ω, α) and initial gain (β), first to last layer",
            tuple(rows[0]),
            [tuple(_span(v) for v in row.values()) for row in rows],
        )


def _constants(key: str, options: dict[str, str], n: int, m: int) -> list[dict[str, Any]]:
    """A row a stack: ω and the gains of W_Q and W_K, and of the other weights, in the first and the last layer."""
    method = table.build(key, options)
    rows = []
    for stack in ("encoder", "decoder"):
        own = [site for site in sites(n, m, 64) if site.stack == stack]
        first, last = own[0], own[-1]
        omega: Any = "profiled" if method.calibrate else [method.omega(first).init, method.omega(last).init]
        rows.append(
            {
                "depth": f"{n}L-{m}L",
                "stack": stack,
                "shortcut": omega,
                "query, key": [method.gain(first, "query"), method.gain(last, "query")],
                "value, out, ffn": [method.gain(first, "out"), method.gain(last, "out")],
            }
        )
    return rows


def _span(value: Any) -> str:
    if isinstance(value, list):
        first, last = (f"{v:.4f}" for v in value)
        return first if first == last else f"{first} … {last}"
    return str(value)
