"""`stabkit methods`: formulas, sources, every constant, what each adds to the model, and the claims that it carries."""

from __future__ import annotations

from collections.abc import Sequence

from stabkit import methods as table
from stabkit.cli import console
from stabkit.errors import UsageError
from stabkit.methods import constants, formula
from stabkit.methods.base import Method, sites
from stabkit.methods.constants import ScaleJson
from stabkit.methods.groups import group_of
from stabkit.methods.recent import OUT
from stabkit.methods.wirings import named
from stabkit.options import own
from stabkit.report import methods_document
from stabkit.report.json_document import text
from stabkit.report.methods_document import Profiles
from stabkit.spec import depth_text

NAMES = {"query": "W_Q", "key": "W_K", "value": "W_V", "out": "W_O", "up": "W₁", "down": "W₂"}


def methods(name: str, depths: Sequence[tuple[int, int]], *, json: bool) -> None:
    """`methods`: all, or a set by its name; with a method's its constants at each of the depths."""
    keys = table.SETS.get(name or "all", ())
    name = "" if keys else name
    own_one = own.method(name, own.Files()) if name else None
    key, options = table.parse(name) if name and not own_one else ("", {})
    chosen = [table.build(each, {}) for each in keys] or [own_one[1] if own_one else table.build(key, options)]
    if name and (reasons := [reason for n, m in depths if (reason := chosen[0].undefined(n, m))]):
        raise UsageError(f"{chosen[0].label} is not defined for these --depths: {reasons[0]}")
    profiling = key and chosen[0].calibrate
    if profiling:
        from stabkit.training.profile import profiled  # torch: not for a table
    profiles = {depth: profiled(key, options, *depth) for depth in depths} if profiling else {}
    if json:
        console.document(text(methods_document.methods(chosen, depths, profiles)))
    elif name:
        _one(chosen[0], depths, profiles)
    else:
        _all(chosen)


def _all(chosen: Sequence[Method]) -> None:
    """Every method in a few lines, by group."""
    for group in dict.fromkeys(group_of(method) for method in chosen):
        console.say(f"{group}")
        for method in (each for each in chosen if group_of(each) == group):
            _line(1, f"{method.key}  ({method.label})")
            _formula(2, method)
            if carried := methods_document.claims(method):
                _line(2, f"claims: {', '.join(claim['id'] for claim in carried)}")
    console.say()
    if len(chosen) > 1:
        console.say("\n".join(["Not here yet:", *(f"  {line}" for line in _out()), ""]))
    console.say("`stabkit methods NAME --depths 100x100` prints every constant of one method; `--json` prints all.")


def _line(level: int, text: str) -> None:
    """A line of the result at a level, broken at the terminal's width."""
    console.paragraph("  " * level + text, "  " * (level + 1))


def _formula(level: int, method: Method, depths: Sequence[tuple[int, int]] = ()) -> None:
    """Formula, constants, source and options."""
    _line(level, formula.text(method))
    for line in _constants(method, depths):
        _line(level, line)
    _line(level, f"source: {method.source}")
    for name, values in methods_document.options(method).items():
        _line(level, f"option {name}: {', '.join(values)} (default {values[0]})")


def _one(method: Method, depths: Sequence[tuple[int, int]], profiles: Profiles) -> None:
    """One method: everything that its slots say, at each depth."""
    console.say(f"{method.key}  ({'; '.join(dict.fromkeys((method.label, group_of(method))))})")
    _formula(1, method, depths)
    for words in _recipe(method):
        _line(1, f"its own recipe: {words}")
    _line(1, f"audit {methods_document.audited(method)}")
    for claim in methods_document.claims(method):
        _line(1, f"claim {claim['id']}: {claim['sentence']} ({claim['source']})")
    console.say()
    for n, m in depths:
        rows = []
        for row in constants.of_depth(method, n, m, profiles.get((n, m))):
            gains = ", ".join(f"{NAMES[role]} {_ends(span)}" for role, span in row["gains"].items())
            rows.append((row["stack"], row["kind"], _shown(row["omega"]), _shown(row["gamma"]), gains, row["norms"]))
        more = f"{constants.added(method, n, m):+,} parameters compared with Post-LN (64-128-2)"
        console.table(
            f"{depth_text(n, m)}, first … last layer; {more}",
            ("stack", "sub-layer", "ω (α)", "γ", "gain (β) on xavier_normal", "norms, shifts, head scales"),
            rows,
        )
        if profiles:
            _line(1, f"ω profiled on {methods_document.PROFILED}")
        first, *_ = method_sites = sites(n, m, constants.WIDTH)
        ends = {stack: method.final(stack) or "nothing" for stack in dict.fromkeys(site.stack for site in method_sites)}
        _line(1, f"after the {', after the '.join(f'{stack}: {end}' for stack, end in ends.items())}")
        _line(1, f"embedding × {method.gain(first, 'embedding'):.4f}; wiring: {named(method.wiring)}")
        console.say()


def _constants(method: Method, depths: Sequence[tuple[int, int]] = ()) -> list[str]:
    """The author's words for the constants, what they come to, and what they were derived for."""
    stated = [f"constants: {method.constants}"] if method.constants else []
    for n, m in depths or formula.shown(method):
        stated += [f"at {depth_text(n, m)}: {words}" for words in (formula.values(method, n, m),) if words]
        stated += [f"at {depth_text(n, m)}: {words}" for words in (formula.factors(method, n, m),) if words]
    return stated + ([f"derived for {' and '.join(method.assumes)}"] if method.assumes else [])


def _out() -> list[str]:
    return [f"{one.label}: `{one.formula}`. It needs {one.needs} ({one.source})." for one in OUT.values()]


def _recipe(method: Method) -> list[str]:
    """Its own recipe and where that is from; nothing where no paper gives one."""
    recipe = method.recipe
    return [] if recipe is None else [f"{table.recipe_words(recipe)} ({recipe.source})"]


def _shown(value: ScaleJson | str) -> str:
    """ω or γ of a row: its ends, and what it is if not a fixed number."""
    if isinstance(value, str):
        return value
    words = [
        "vector" if value["vector"] else "",
        "trained" if value["trainable"] else "",
        "one per layer" if value["shared"] == "layer" else "",
    ]
    return " ".join(word for word in (_ends(value["init"]), *words) if word)


def _ends(values: Sequence[float]) -> str:
    """`0.2608`, or from the first to the last where they differ."""
    first, last = map(_number, (values[0], values[-1]))
    return first if first == last else f"{first} … {last}"


def _number(value: float) -> str:
    return f"{value:.4f}" if not value or abs(value) >= 1e-3 else f"{value:.3g}"
