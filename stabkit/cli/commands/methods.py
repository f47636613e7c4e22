"""`stabkit methods`: formulas, sources, every constant, what each adds to the model, and the claims that it carries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from stabkit import methods as table
from stabkit.cli import console
from stabkit.errors import ContractBroken, UsageError
from stabkit.methods import constants, formula, support
from stabkit.methods.base import Method, Role, Site, defined, sites
from stabkit.methods.groups import group_of
from stabkit.methods.today import OUT
from stabkit.methods.wirings import named
from stabkit.options import model, own
from stabkit.report.json_document import SCHEMA, text
from stabkit.spec import depth_text
from stabkit.storage.folder import write_file

NAMES = {"query": "W_Q", "key": "W_K", "value": "W_V", "out": "W_O", "up": "W₁", "down": "W₂"}
PROFILED = (
    "a sweep's first model: base initialisation xavier_normal, 64-128-2, no dropout; synthetic task, 512 tokens a "
    "batch, seed 0 (fairseq_uniform, dropout and wider layers give other ω)"
)
"""What profiles are read from."""
Profiles = Mapping[tuple[int, int], Mapping[str, float]]
"""{(N, M): {site name: ω}}, of a method that profiles, where it alone is asked for."""


def methods(name: str, depths: Sequence[tuple[int, int]], *, json: bool, markdown: str = "") -> None:
    """`methods`: the table of all, or of a set by its name; with a method's its constants at each of the depths."""
    keys = table.SETS.get(name or "all", ())
    name = "" if keys else name
    own_one = own.method(name, own.Files()) if name else None
    key, options = table.parse(name) if name and not own_one else ("", {})
    chosen = [table.build(each, {}) for each in keys] or [own_one[1] if own_one else table.build(key, options)]
    if name and (reasons := [reason for n, m in depths if (reason := chosen[0].undefined(n, m))]):
        raise UsageError(f"{chosen[0].label} is not defined for these --depths: {reasons[0]}")
    profiling = key and chosen[0].calibrate and not markdown
    if profiling:
        from stabkit.training.profile import profiled  # torch: not for a table
    profiles = {depth: profiled(key, options, *depth) for depth in depths} if profiling else {}
    if markdown:
        pages(chosen, depths, Path(markdown))
    elif json:
        out = [{"key": key, **one._asdict()} for key, one in OUT.items()] if len(chosen) > 1 else []
        rows = [_document(each, depths, profiles) for each in chosen]
        console.document(text({"schema": SCHEMA, "methods": rows, "out": out}))
    elif name:
        _one(chosen[0], depths, profiles)
    else:
        _all(chosen, depths)


def check(word: str, named: str, *, json: bool) -> None:
    """`methods check`: the contract, a line a sentence; raises ContractBroken where one does not hold."""
    if word != "check":
        raise UsageError(f"`stabkit methods` takes one name; got {word} and {named} (`methods check NAME` checks one)")
    if not named:
        raise UsageError("`stabkit methods check` needs a method: a name, or ./my.py:function")
    files = own.Files()
    if len(found := model.named(named, files)) > 1:
        raise UsageError("`stabkit methods check` takes one method")
    ((chosen, method),) = found
    from stabkit.training import contract  # torch

    lines = []
    for checked in contract.method(chosen, method, files.texts):
        lines.append(checked)
        if not json:
            why = f": {checked.broke}" if checked.broke else ""
            console.say(f"{'breaks' if checked.broke else 'holds '}  {checked.what}{why}")
    broken = sum(bool(checked.broke) for checked in lines)
    if json:
        console.document(text({"schema": SCHEMA, "key": chosen.key, "checks": [asdict(checked) for checked in lines]}))
    if broken:
        raise ContractBroken(f"{method.label} breaks {broken} of {len(lines)} checks of the contract")
    if not json:
        console.say(f"{method.label} meets the contract: {formula.text(method)}")


def _all(chosen: Sequence[Method], depths: Sequence[tuple[int, int]]) -> None:
    """Every method in a few lines, by group, then all constants beside each other."""
    for group in dict.fromkeys(group_of(method) for method in chosen):
        console.say(f"{group}")
        for method in (each for each in chosen if group_of(each) == group):
            console.say(f"  {method.key}  ({method.label})")
            console.say(f"    {formula.text(method)}")
            for line in _constants(method):
                console.say(f"    {line}")
            console.say(f"    source: {method.source}")
            for name, values in _options(method).items():
                console.say(f"    option {name}: {', '.join(values)} (default {values[0]})")
            if carried := _claims(method):
                console.say(f"    claims: {', '.join(claim['id'] for claim in carried)}")
    console.say()
    for n, m in depths:
        rows = []
        for method in chosen:
            if method.undefined(n, m):
                rows.append((method.label, "not defined", "", ""))
                continue
            stacks = constants.by_stack(n, m).values()
            scales = " | ".join(dict.fromkeys(_scales(method, own) for own in stacks))
            gains = " | ".join(dict.fromkeys(_ends([method.gain(site, _last(site)) for site in own]) for own in stacks))
            rows.append((method.label, scales, gains, f"{constants.added(method, n, m):+,}"))
        console.table(
            f"At {depth_text(n, m)} (encoder | decoder, first … last sub-layer); parameters added to Post-LN's "
            "(64-128-2)",
            ("method", "ω (α), and γ where there is one", "gain (β) of W_O, W₂, on xavier_normal", "parameters"),
            rows,
        )
    if len(chosen) > 1:
        console.say("\n".join(["Not here yet:", *(f"  {line}" for line in _out()), ""]))
    console.say("`stabkit methods NAME --depths 100x100` prints every constant of one method; `--json` prints all.")


def pages(chosen: Sequence[Method], depths: Sequence[tuple[int, int]], folder: Path) -> None:
    """The same as Markdown, for docs: `methods.md` with a line a method, `methods/KEY.md` with all of one."""
    lines = [
        "# Methods",
        "",
        "Written by `stabkit methods --markdown docs --depths 18,100`. The residual of every sub-layer of every "
        "method:",
        "",
        "    y = N_out( ω·x + γ·N_branch( G( κ·N_in(x) ) ) )",
        "",
        "Gains multiply the base initialisation, which all methods of a comparison share unless `--recipe paper` is "
        "asked for. The page of a method has its constants at 18 and 100 layers, its options and its claims.",
        "",
        "| method | group | residual | source |",
        "|---|---|---|---|",
        *(
            f"| [{method.label}](methods/{method.key}.md) | {group_of(method)} | `{_cell(formula.text(method))}` | "
            f"{_cell(method.source)} |"
            for method in chosen
        ),
        "",
        "## Not here yet",
        "",
        *(f"- {line}" for line in _out()),
        "",
        "```{toctree}",
        ":hidden:",
        "",
        *(f"methods/{method.key}" for method in chosen),
        "```",
    ]
    write_file(folder / "methods.md", ("\n".join(lines) + "\n").encode())
    for method in chosen:
        write_file(folder / "methods" / f"{method.key}.md", (_page(method, depths) + "\n").encode())


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _page(method: Method, depths: Sequence[tuple[int, int]]) -> str:
    lines = [f"# {method.label}", "", f"`{method.key}`, {group_of(method)}. `{formula.text(method)}`", ""]
    lines += [f"- Source: {method.source}"]
    lines += [f"- {line[0].upper()}{line[1:]}" for line in _constants(method)]
    for name, values in _options(method).items():
        lines.append(f"- Option `{name}`: {', '.join(f'`{value}`' for value in values)} (the first is the default)")
    lines += [f"- Its own recipe: {words}" for words in _recipe(method)]
    lines += [f"- `{name}` {line}" for name, line in _able(method)]
    gains = tuple(NAMES.values())
    head = ("depth", "stack", "sub-layer", "ω (α)", "γ", *gains, "norms, shifts, head scales", "parameters")
    lines += ["", "## Constants", "", "Parameters are those added to Post-LN of the same depth (64-128-2).", ""]
    lines += [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for n, m in depths:
        if reason := method.undefined(n, m):
            lines.append(f"| {depth_text(n, m)} | not defined: {reason} |" + " |" * (len(head) - 2))
            continue
        for i, row in enumerate(constants.of_depth(method, n, m)):
            spans = (_ends(row["gains"][role]) if role in row["gains"] else "" for role in NAMES)
            first = (depth_text(n, m), f"{constants.added(method, n, m):+,}") if i == 0 else ("", "")
            cells = (row["stack"], row["kind"], _shown(row["omega"]), _shown(row["gamma"]), *spans, row["norms"])
            lines.append(f"| {first[0]} | {' | '.join(cells)} | {first[1]} |")
    if claimed := _claims(method):
        lines += ["", "## Claims that its runs test", ""]
        lines += [f"- `{claim['id']}`: {claim['sentence']} ({claim['source']})" for claim in claimed]
    return "\n".join(lines)


def _one(method: Method, depths: Sequence[tuple[int, int]], profiles: Profiles) -> None:
    """One method: everything that its slots say, at each depth."""
    console.say(f"{method.key}  ({method.label}; {group_of(method)})")
    console.say(f"  {formula.text(method)}")
    for line in _constants(method, depths):
        console.say(f"  {line}")
    console.say(f"  source: {method.source}")
    for name, values in _options(method).items():
        console.say(f"  option {name}: {', '.join(values)} (default {values[0]})")
    for name, line in (*(("its own recipe:", words) for words in _recipe(method)), *_able(method)):
        console.say(f"  {name} {line}")
    for claim in _claims(method):
        console.say(f"  claim {claim['id']}: {claim['sentence']} ({claim['source']})")
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
            console.say(f"  ω profiled on {PROFILED}")
        first, *_ = method_sites = sites(n, m, constants.WIDTH)
        ends = {stack: method.final(stack) or "nothing" for stack in dict.fromkeys(site.stack for site in method_sites)}
        console.say(f"  after the {', after the '.join(f'{stack}: {end}' for stack, end in ends.items())}")
        console.say(f"  embedding × {method.gain(first, 'embedding'):.4f}; wiring: {named(method.wiring)}")
        console.say()


def _document(method: Method, depths: Sequence[tuple[int, int]], profiles: Profiles) -> dict[str, Any]:
    """Everything of one method as JSON values."""
    return {
        "key": method.key,
        "label": method.label,
        "group": group_of(method),
        "formula": formula.text(method),
        "scales": method.constants,
        "derived_for": list(method.assumes),
        "source": method.source,
        "options": _options(method),
        "recipe": None if method.recipe is None else asdict(method.recipe),
        "factors": {depth_text(n, m): formula.factors(method, n, m) for n, m in depths if not method.undefined(n, m)},
        "claims": _claims(method),
        "able": dict(_able(method)),
        "wiring": named(method.wiring),
        "depths": [
            {"depth": depth_text(n, m), "undefined": reason}
            if (reason := method.undefined(n, m))
            else {
                "depth": depth_text(n, m),
                "parameters_added": constants.added(method, n, m),
                "embedding": method.gain(sites(n, m, constants.WIDTH)[0], "embedding"),
                "constants": constants.of_depth(method, n, m, profiles.get((n, m))),
                **({"profiled": PROFILED} if profiles else {}),
            }
            for n, m in depths
        ],
    }


def _constants(method: Method, depths: Sequence[tuple[int, int]] = ()) -> list[str]:
    """The author's words for the constants, what they come to, and what they were derived for."""
    stated = [f"constants: {method.constants}"] if method.constants else []
    for n, m in depths or formula.shown(method):
        stated += [f"at {depth_text(n, m)}: {words}" for words in (formula.values(method, n, m),) if words]
        stated += [f"at {depth_text(n, m)}: {words}" for words in (formula.factors(method, n, m),) if words]
    return stated + ([f"derived for {' and '.join(method.assumes)}"] if method.assumes else [])


def _out() -> list[str]:
    return [f"{one.label}: `{one.formula}`. It needs {one.needs} ({one.source})." for one in OUT.values()]


def _able(method: Method) -> tuple[tuple[str, str], ...]:
    """(command, what it can do for this method)."""
    return support.told(method, sites(*defined(method, 6), constants.WIDTH))


def _options(method: Method) -> dict[str, tuple[str, ...]]:
    """The options of a built-in method."""
    return table.options(method.key) if method.key in table.KEYS else {}


def _recipe(method: Method) -> list[str]:
    """Its own recipe and where that is from; nothing where no paper gives one."""
    recipe = method.recipe
    return [] if recipe is None else [f"{table.recipe_words(recipe)} ({recipe.source})"]


def _claims(method: Method) -> list[dict[str, str]]:
    from stabkit.claims import EVERY  # pandas: not for `--help`

    carried = [claim for claim in EVERY if method.key in claim.methods]
    return [
        {"id": claim.key, "sentence": claim.sentence, "source": claim.source, "weight": claim.weight}
        for claim in carried
    ]


def _shown(value: Any) -> str:
    """ω or γ of a row: its ends, and what it is if not a fixed number."""
    if isinstance(value, str):
        return value
    words = [
        "vector" if value["vector"] else "",
        "trained" if value["trainable"] else "",
        "one per layer" if value["shared"] == "layer" else "",
    ]
    return " ".join(word for word in (_ends(value["init"]), *words) if word)


def _scales(method: Method, group: Sequence[Site]) -> str:
    """ω of a stack, and γ where it is not 1."""
    omega = "profiled" if method.calibrate else _ends([method.omega(site).init for site in group])
    gammas = [method.gamma(site) for site in group]
    trained = " trained" if any(scale.trainable for scale in gammas) else ""
    plain = not trained and all(scale.init == 1 for scale in gammas)
    return omega if plain else f"{omega}, γ {_ends([scale.init for scale in gammas])}{trained}"


def _last(site: Site) -> Role:
    """The role of a branch's last map."""
    return "down" if site.kind == "ffn" else "out"


def _ends(values: Sequence[float]) -> str:
    """`0.2608`, or from the first to the last where they differ."""
    first, last = map(_number, (values[0], values[-1]))
    return first if first == last else f"{first} … {last}"


def _number(value: float) -> str:
    return f"{value:.4f}" if not value or abs(value) >= 1e-3 else f"{value:.3g}"
